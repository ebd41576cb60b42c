-- +goose Up

-- JSON: the directory of the agent's project by dialect, as of the session's first
-- event; empty: none is known yet.
ALTER TABLE session_agents ADD COLUMN projects TEXT NOT NULL DEFAULT '';
