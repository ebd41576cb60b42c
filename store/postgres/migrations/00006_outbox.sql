-- +goose Up

-- Where records are sent. Times are Unix milliseconds of this server.
CREATE TABLE stopgate.sinks (
    name    BYTEA  PRIMARY KEY,
    seen    BIGINT NOT NULL,            -- when a replica last had the sink configured
    dropped BIGINT NOT NULL DEFAULT 0,  -- records deleted before the sink had them
    holder  BYTEA  NOT NULL DEFAULT '', -- the replica that delivers
    lease   BIGINT NOT NULL DEFAULT 0   -- until when
);

-- One row per record and sink that does not have it yet. Places are given at the
-- insertion and seen at the commit, so one may be seen after a higher one: rows
-- are deleted one by one, and no place is remembered as reached.
CREATE TABLE stopgate.outbox (
    place BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sink  BYTEA  NOT NULL,
    seq   BIGINT NOT NULL -- evaluations.seq
);
CREATE INDEX outbox_sink ON stopgate.outbox (sink, place);
CREATE INDEX outbox_seq ON stopgate.outbox (seq);

-- When a text was last added to, so that the oldest can go where there are too many.
ALTER TABLE stopgate.texts ADD COLUMN touched BIGINT NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
