-- +goose Up

-- 1: the sink refuses the record itself, and those after it do not wait for it.
ALTER TABLE outbox ADD COLUMN aside INTEGER NOT NULL DEFAULT 0;
DROP INDEX outbox_sink;
CREATE INDEX outbox_sink ON outbox (sink, aside, place);
