-- +goose Up

-- The agents that a session belongs to: those of its events, and those it was
-- claimed for before its first.
CREATE TABLE session_agents (
    session TEXT NOT NULL,
    agent   TEXT NOT NULL,
    PRIMARY KEY (session, agent)
) WITHOUT ROWID;
INSERT INTO session_agents
    SELECT session, agent FROM evaluations WHERE session <> ''
    UNION SELECT session, agent FROM counts;

-- API keys, revoked ones included. Times are Unix milliseconds, 0 for never.
CREATE TABLE keys (
    seq        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    name       TEXT    NOT NULL,
    hash       BLOB    NOT NULL, -- SHA-256 of the secret
    scopes     TEXT    NOT NULL, -- JSON
    agents     TEXT    NOT NULL, -- JSON
    created    INTEGER NOT NULL,
    created_by TEXT    NOT NULL,
    expires    INTEGER NOT NULL,
    revoked    INTEGER NOT NULL,
    used       INTEGER NOT NULL
);
CREATE UNIQUE INDEX keys_name ON keys (name) WHERE revoked = 0;

-- One row per change, written in the change's transaction.
CREATE TABLE audit (
    seq        INTEGER PRIMARY KEY,
    at         INTEGER NOT NULL, -- Unix milliseconds
    action     TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    session    TEXT    NOT NULL,
    key_id     TEXT    NOT NULL,
    before     INTEGER NOT NULL, -- versions; 0 for none
    after      INTEGER NOT NULL,
    by         TEXT    NOT NULL,
    credential TEXT    NOT NULL,
    address    TEXT    NOT NULL
);
CREATE INDEX audit_session ON audit (session) WHERE session <> '';
