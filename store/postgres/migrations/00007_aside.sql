-- +goose Up

-- The sink refuses the record itself, and those after it do not wait for it.
ALTER TABLE stopgate.outbox ADD COLUMN aside BOOLEAN NOT NULL DEFAULT FALSE;
DROP INDEX stopgate.outbox_sink;
CREATE INDEX outbox_sink ON stopgate.outbox (sink, aside, place);
