-- +goose Up

-- How many rejections in a row gave the reason in `reason`.
ALTER TABLE counts ADD COLUMN same INTEGER NOT NULL DEFAULT 0;
