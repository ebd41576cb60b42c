-- +goose Up

-- The agents that a session belongs to: those of its events, and those it was
-- claimed for before its first.
CREATE TABLE stopgate.session_agents (
    session BYTEA NOT NULL,
    agent   BYTEA NOT NULL
);
CREATE UNIQUE INDEX session_agents_key ON stopgate.session_agents (sha256(session), sha256(agent));
INSERT INTO stopgate.session_agents
    SELECT session, agent FROM stopgate.evaluations WHERE session <> ''
    UNION SELECT session, agent FROM stopgate.counts;

-- API keys, revoked ones included, in the order in which they were made. Times
-- are Unix milliseconds, 0 for never.
CREATE TABLE stopgate.keys (
    seq        BIGINT PRIMARY KEY,
    id         BYTEA  NOT NULL UNIQUE,
    name       BYTEA  NOT NULL,
    hash       BYTEA  NOT NULL, -- SHA-256 of the secret
    scopes     BYTEA  NOT NULL, -- JSON
    agents     BYTEA  NOT NULL, -- JSON
    created    BIGINT NOT NULL,
    created_by BYTEA  NOT NULL,
    expires    BIGINT NOT NULL,
    revoked    BIGINT NOT NULL,
    used       BIGINT NOT NULL
);
CREATE UNIQUE INDEX keys_name ON stopgate.keys (name) WHERE revoked = 0;

-- One row per change, written in the change's transaction. Who writes holds a
-- lock, so that the order of seq is that of the commits.
CREATE TABLE stopgate.audit (
    seq        BIGINT PRIMARY KEY,
    at         BIGINT NOT NULL, -- Unix milliseconds
    action     BYTEA  NOT NULL,
    kind       BYTEA  NOT NULL,
    name       BYTEA  NOT NULL,
    session    BYTEA  NOT NULL,
    key_id     BYTEA  NOT NULL,
    before     BIGINT NOT NULL, -- versions; 0 for none
    after      BIGINT NOT NULL,
    by         BYTEA  NOT NULL,
    credential BYTEA  NOT NULL,
    address    BYTEA  NOT NULL
);
CREATE INDEX audit_session ON stopgate.audit (sha256(session)) WHERE session <> '';
