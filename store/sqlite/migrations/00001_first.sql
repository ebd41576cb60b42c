-- +goose Up

-- One row per agent (and sub-agent) in a session whose counts are not zero.
CREATE TABLE counts (
    session   TEXT    NOT NULL,
    agent     TEXT    NOT NULL,
    sub_agent TEXT    NOT NULL,
    stops     INTEGER NOT NULL,
    prompts   INTEGER NOT NULL,
    started   INTEGER NOT NULL,
    prompt_id TEXT    NOT NULL,
    reason    TEXT    NOT NULL,
    context   TEXT    NOT NULL,
    answer    TEXT    NOT NULL,
    PRIMARY KEY (session, agent, sub_agent)
) WITHOUT ROWID;

-- One row per evaluation. seq is its time in Unix nanoseconds, moved on by as
-- little as makes it unique: the table itself is in the order in which lists
-- show it, new rows go to its end, and a span of time is a range of keys.
-- Columns that lists do not read stand last, where a long row overflows.
CREATE TABLE evaluations (
    seq         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    agent       TEXT NOT NULL,
    session     TEXT NOT NULL,
    event       TEXT NOT NULL,
    decision    TEXT NOT NULL,
    head        BLOB NOT NULL, -- JSON
    idempotency BLOB,          -- idempotency.id of the key that it answers
    evidence    BLOB,          -- S2, JSON
    payload     BLOB           -- S2, the request as it came
);
CREATE INDEX evaluations_agent ON evaluations (agent);
CREATE INDEX evaluations_session ON evaluations (session) WHERE session <> '';
-- What did not simply pass is what people look for, and it is rare.
CREATE INDEX evaluations_decision ON evaluations (decision) WHERE decision <> 'allow';

-- The hooks that took part; an evaluation without hooks costs no row.
CREATE TABLE evaluation_hooks (
    seq  INTEGER NOT NULL,
    hook TEXT    NOT NULL,
    PRIMARY KEY (seq, hook)
) WITHOUT ROWID;
CREATE INDEX evaluation_hooks_hook ON evaluation_hooks (hook);

-- Every version of every spec, deletions included.
CREATE TABLE specs (
    seq      INTEGER PRIMARY KEY,
    kind     TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    etag     TEXT    NOT NULL,
    document BLOB,             -- NULL: a deletion
    by       TEXT    NOT NULL,
    at       INTEGER NOT NULL, -- Unix milliseconds
    deleted  INTEGER NOT NULL,
    born     INTEGER NOT NULL, -- seq of the version that created it, or created it anew
    UNIQUE (kind, name, version)
);

CREATE TABLE activations (
    session TEXT    NOT NULL,
    hook    TEXT    NOT NULL,
    active  INTEGER NOT NULL,
    by      TEXT    NOT NULL,
    at      INTEGER NOT NULL, -- Unix milliseconds
    PRIMARY KEY (session, hook)
) WITHOUT ROWID;

-- seq is the order of reservation, so that the oldest are found without an
-- index on the time.
CREATE TABLE idempotency (
    seq        INTEGER PRIMARY KEY,
    id         BLOB    NOT NULL UNIQUE, -- SHA-256 of credential and key
    body       BLOB    NOT NULL,        -- SHA-256 of the request
    reserved   INTEGER NOT NULL,        -- Unix milliseconds
    lease      INTEGER NOT NULL,        -- until when, Unix milliseconds
    evaluation TEXT                     -- NULL: not answered yet
);

-- One row that Ping writes.
CREATE TABLE probe (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at INTEGER NOT NULL
);
INSERT INTO probe VALUES (1, 0);
