-- +goose Up

-- Everything is in the schema stopgate, so that it can share a database.
--
-- What comes from callers is BYTEA, not TEXT: it may hold NUL bytes, and bytes
-- that are no UTF-8. To read it: convert_from(agent, 'UTF8'). It is of any
-- length too, which an index entry is not: indices hold its SHA-256.

-- One row per agent (and sub-agent) in a session whose counts are not zero.
CREATE TABLE stopgate.counts (
    session   BYTEA   NOT NULL,
    agent     BYTEA   NOT NULL,
    sub_agent BYTEA   NOT NULL,
    stops     BIGINT  NOT NULL,
    prompts   BIGINT  NOT NULL,
    started   BOOLEAN NOT NULL,
    prompt_id BYTEA   NOT NULL,
    reason    BYTEA   NOT NULL,
    context   BYTEA   NOT NULL,
    answer    BYTEA   NOT NULL,
    same      BIGINT  NOT NULL
);
CREATE UNIQUE INDEX counts_key ON stopgate.counts (sha256(session), sha256(agent), sha256(sub_agent));

-- One row per evaluation. seq is its time in Unix nanoseconds, moved on by as
-- little as makes it unique: it is the order in which lists show them, and a
-- span of time is a range of keys.
CREATE TABLE stopgate.evaluations (
    seq         BIGINT  PRIMARY KEY,
    id          BYTEA   NOT NULL UNIQUE,
    agent       BYTEA   NOT NULL,
    session     BYTEA   NOT NULL,
    event       BYTEA   NOT NULL,
    decision    BYTEA   NOT NULL,
    dry_run     BOOLEAN NOT NULL,
    head        BYTEA   NOT NULL, -- JSON
    idempotency BYTEA,            -- idempotency.id of the key that it answers
    evidence    BYTEA,            -- S2, JSON
    payload     BYTEA             -- S2, the request as it came
);
-- What is compressed already is not tried again.
ALTER TABLE stopgate.evaluations ALTER COLUMN evidence SET STORAGE EXTERNAL;
ALTER TABLE stopgate.evaluations ALTER COLUMN payload SET STORAGE EXTERNAL;
CREATE INDEX evaluations_agent ON stopgate.evaluations (sha256(agent), seq);
CREATE INDEX evaluations_session ON stopgate.evaluations (sha256(session), seq) WHERE session <> '';
-- What did not simply pass is what people look for, and it is rare.
CREATE INDEX evaluations_decision ON stopgate.evaluations (decision, seq) WHERE decision <> 'allow';

-- The hooks that took part, each once; hook is the SHA-256 of its name.
CREATE TABLE stopgate.evaluation_hooks (
    seq  BIGINT NOT NULL REFERENCES stopgate.evaluations ON DELETE CASCADE,
    hook BYTEA  NOT NULL,
    PRIMARY KEY (seq, hook)
);
CREATE INDEX evaluation_hooks_hook ON stopgate.evaluation_hooks (hook, seq);

-- Every version of every spec, deletions included. Who writes holds a lock that
-- makes the order of seq that of the commits: whoever has seen the highest has
-- seen all.
CREATE TABLE stopgate.specs (
    seq      BIGINT  PRIMARY KEY,
    kind     BYTEA   NOT NULL,
    name     BYTEA   NOT NULL,
    version  BIGINT  NOT NULL,
    etag     BYTEA   NOT NULL,
    document BYTEA,            -- NULL: a deletion
    by       BYTEA   NOT NULL,
    at       BIGINT  NOT NULL, -- Unix milliseconds
    deleted  BOOLEAN NOT NULL,
    born     BIGINT  NOT NULL  -- seq of the version that created it, or created it anew
);
CREATE UNIQUE INDEX specs_version ON stopgate.specs (sha256(kind), sha256(name), version);

CREATE TABLE stopgate.activations (
    session BYTEA   NOT NULL,
    hook    BYTEA   NOT NULL,
    active  BOOLEAN NOT NULL,
    by      BYTEA   NOT NULL,
    at      BIGINT  NOT NULL -- Unix milliseconds
);
CREATE UNIQUE INDEX activations_key ON stopgate.activations (sha256(session), sha256(hook));

CREATE TABLE stopgate.idempotency (
    id         BYTEA  PRIMARY KEY, -- SHA-256 of credential and key
    body       BYTEA  NOT NULL,    -- SHA-256 of the request
    reserved   BIGINT NOT NULL,    -- Unix milliseconds
    lease      BIGINT NOT NULL,    -- until when, Unix milliseconds
    evaluation BYTEA               -- NULL: not answered yet
);
CREATE INDEX idempotency_reserved ON stopgate.idempotency (reserved);

-- Long texts (transcripts), named by a hash. A text that was erased and begun
-- anew is of another generation.
CREATE SEQUENCE stopgate.text_generations;
CREATE TABLE stopgate.texts (
    key        BYTEA  PRIMARY KEY,
    generation BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    form       BYTEA  NOT NULL  -- what its owner says of it
);

-- A text in pieces, as they were added. addition is of one piece's making, so
-- that whoever lost the answer can tell whether it was theirs.
CREATE TABLE stopgate.text_chunks (
    key      BYTEA  NOT NULL REFERENCES stopgate.texts ON DELETE CASCADE,
    start    BIGINT NOT NULL,  -- its place in the text, in bytes
    addition BYTEA  NOT NULL,
    content  BYTEA  NOT NULL,  -- S2
    PRIMARY KEY (key, start)
);
ALTER TABLE stopgate.text_chunks ALTER COLUMN content SET STORAGE EXTERNAL;

-- One row that Ping writes.
CREATE TABLE stopgate.probe (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    at BIGINT NOT NULL
);
INSERT INTO stopgate.probe VALUES (1, 0);
