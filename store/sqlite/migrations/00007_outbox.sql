-- +goose Up

-- Where records are sent. seen is when a server last had the sink configured.
CREATE TABLE sinks (
    name    TEXT    PRIMARY KEY,
    seen    INTEGER NOT NULL,           -- Unix milliseconds
    dropped INTEGER NOT NULL DEFAULT 0  -- records deleted before the sink had them
) WITHOUT ROWID;

-- One row per record and sink that does not have it yet. place is the order of
-- the commits, and is never used again: a sink that confirms late confirms no
-- other record.
CREATE TABLE outbox (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    sink  TEXT    NOT NULL,
    seq   INTEGER NOT NULL -- evaluations.seq
);
CREATE INDEX outbox_sink ON outbox (sink, place);
CREATE INDEX outbox_seq ON outbox (seq);

-- A trigger, and not a statement of the program: a process that knows of no
-- sinks, as a hook that shares the file with a server, feeds them too. Without
-- sinks it comes down to a look at an empty table.
-- +goose StatementBegin
CREATE TRIGGER evaluations_outbox AFTER INSERT ON evaluations
BEGIN
    INSERT INTO outbox (sink, seq) SELECT name, new.seq FROM sinks;
END;
-- +goose StatementEnd
