-- +goose Up

-- Sessions that were erased, by the SHA-256 of their names, so that what was
-- being judged then does not bring one back. seq is never used again.
CREATE TABLE erasures (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    session BLOB    NOT NULL UNIQUE,
    at      INTEGER NOT NULL -- Unix milliseconds
);

-- When the claim was made, or last found to be needed: Unix milliseconds.
ALTER TABLE session_agents ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
UPDATE session_agents SET at = unixepoch() * 1000;
CREATE INDEX session_agents_at ON session_agents (at);
