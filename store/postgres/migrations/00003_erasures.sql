-- +goose Up

-- Sessions that were erased, by the SHA-256 of their names, so that what was
-- being judged then does not bring one back. seq is never used again.
CREATE SEQUENCE stopgate.erasure_seq;
CREATE TABLE stopgate.erasures (
    session BYTEA  PRIMARY KEY,
    seq     BIGINT NOT NULL,
    at      BIGINT NOT NULL -- Unix milliseconds
);

-- When the claim was made, or last found to be needed: Unix milliseconds.
ALTER TABLE stopgate.session_agents ADD COLUMN at BIGINT NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
CREATE INDEX session_agents_at ON stopgate.session_agents (at);
