-- +goose Up

-- Sessions that may stop unasked for a while. Times are Unix milliseconds.
CREATE TABLE stopgate.overrides (
    session BYTEA  NOT NULL,
    reason  BYTEA  NOT NULL,
    by      BYTEA  NOT NULL,
    agents  BYTEA  NOT NULL, -- JSON
    since   BIGINT NOT NULL,
    until   BIGINT NOT NULL
);
CREATE UNIQUE INDEX overrides_key ON stopgate.overrides (sha256(session));

-- Of an override: why, and until when (Unix milliseconds); '' and 0 of all else.
ALTER TABLE stopgate.audit ADD COLUMN reason BYTEA NOT NULL DEFAULT '';
ALTER TABLE stopgate.audit ADD COLUMN until BIGINT NOT NULL DEFAULT 0;
