-- +goose Up

-- Sessions that may stop unasked for a while.
CREATE TABLE overrides (
    session TEXT    PRIMARY KEY,
    reason  TEXT    NOT NULL,
    by      TEXT    NOT NULL,
    agents  TEXT    NOT NULL, -- JSON
    since   INTEGER NOT NULL, -- Unix milliseconds
    until   INTEGER NOT NULL  -- Unix milliseconds
) WITHOUT ROWID;

-- Of an override: why, and until when (Unix milliseconds); '' and 0 of all else.
ALTER TABLE audit ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN until INTEGER NOT NULL DEFAULT 0;
