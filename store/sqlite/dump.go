package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"

	"stopgate/store/record"
)

// Dump hands out everything that the store holds, as it is now; done ends it.
// What is written meanwhile is not in it.
func (s *Store) Dump(ctx context.Context) (dump record.Dump, done func() error, err error) {
	tx, err := s.reads.BeginTx(ctx, nil)
	if err != nil {
		return dump, nil, explain(err)
	}
	for table, n := range map[string]*int64{"counts": &dump.Rows.Counts, "evaluations": &dump.Rows.Evaluations, "evaluation_hooks": &dump.Rows.Hooks,
		"specs": &dump.Rows.Specs, "activations": &dump.Rows.Activations, "idempotency": &dump.Rows.Keys,
		"session_agents": &dump.Rows.Claims, "keys": &dump.Rows.APIKeys, "audit": &dump.Rows.Changes,
		"overrides": &dump.Rows.Overrides, "sinks": &dump.Rows.Sinks, "outbox": &dump.Rows.Unsent} {
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM `+table).Scan(n); err != nil {
			return dump, nil, explain(errors.Join(err, tx.Rollback()))
		}
	}
	dump.Counts = each(ctx, tx, `SELECT session, agent, sub_agent, stops, prompts, started, prompt_id, reason, context, answer, same FROM counts`,
		func(c *record.Counts) []any {
			return []any{&c.Session, &c.Agent, &c.SubAgent, &c.StopRejections, &c.PromptRejections, &c.Started,
				&c.LastPromptID, &c.LastReason, &c.LastContext, &c.LastAnswer, &c.SameReason}
		})
	dump.Evaluations = each(ctx, tx, `SELECT `+listColumns+`, json_extract(CAST(e.head AS TEXT), '$.dry_run') IS NOT NULL, e.idempotency, e.evidence, e.payload
		FROM evaluations AS e ORDER BY e.seq`,
		func(e *record.Evaluation) []any {
			return []any{&e.Seq, &e.ID, &e.Agent, &e.Session, &e.Event, &e.Decision, &e.Head, &e.DryRun, &e.Idempotency, &e.Evidence, &e.Payload}
		})
	dump.Hooks = each(ctx, tx, `SELECT seq, hook FROM evaluation_hooks`,
		func(h *record.Hook) []any { return []any{&h.Seq, &h.Name} })
	dump.Specs = each(ctx, tx, `SELECT seq, born, `+specColumns+` FROM specs ORDER BY seq`,
		func(v *record.Spec) []any {
			return []any{&v.Seq, &v.Born, &v.Kind, &v.Name, (*[]byte)(&v.Document), &v.Version, &v.ETag, &v.By, &v.At, &v.Deleted}
		})
	dump.Activations = each(ctx, tx, `SELECT session, hook, active, by, at FROM activations`,
		func(a *record.Activation) []any { return []any{&a.Session, &a.Hook, &a.Active, &a.By, &a.At} })
	dump.Keys = each(ctx, tx, `SELECT id, body, reserved, lease, evaluation FROM idempotency`,
		func(k *record.Key) []any { return []any{&k.ID, &k.Body, &k.Reserved, &k.Lease, &k.Evaluation} })
	dump.Claims = each(ctx, tx, `SELECT session, agent, at, projects FROM session_agents`,
		func(c *record.Claim) []any { return []any{&c.Session, &c.Agent, &c.At, &c.Projects} })
	dump.APIKeys = each(ctx, tx, `SELECT seq, id, name, hash, scopes, agents, created, created_by, expires, revoked, used FROM keys`,
		func(k *record.APIKey) []any {
			return []any{&k.Seq, &k.ID, &k.Name, &k.Hash, &k.Scopes, &k.Agents, &k.Created, &k.CreatedBy, &k.Expires, &k.Revoked, &k.LastUsed}
		})
	dump.Changes = each(ctx, tx, `SELECT seq, at, action, kind, name, session, key_id, before, after, by, credential, address, reason, until FROM audit`,
		func(c *record.Change) []any {
			return []any{&c.Seq, &c.At, &c.Action, &c.Kind, &c.Name, &c.Session, &c.KeyID, &c.Before, &c.After, &c.By, &c.Credential, &c.From, &c.Reason, &c.Until}
		})
	dump.Overrides = each(ctx, tx, `SELECT session, `+overrideColumns+` FROM overrides`,
		func(o *record.Override) []any {
			return []any{&o.Session, &o.Reason, &o.By, &o.Agents, &o.Since, &o.Until}
		})
	dump.Sinks = each(ctx, tx, `SELECT name, seen, dropped FROM sinks`,
		func(k *record.Sink) []any { return []any{&k.Name, &k.Seen, &k.Dropped} })
	dump.Unsent = each(ctx, tx, `SELECT sink, seq, aside FROM outbox ORDER BY place`,
		func(u *record.Unsent) []any { return []any{&u.Sink, &u.Seq, &u.Aside} })
	return dump, tx.Rollback, nil
}

// each is the rows of a query, read into what fields points at.
func each[T any](ctx context.Context, tx *sql.Tx, query string, fields func(*T) []any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		rows, err := tx.QueryContext(ctx, query)
		if err != nil {
			yield(none, explain(err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var row T
			if err := rows.Scan(fields(&row)...); err != nil {
				yield(none, explain(err))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(none, explain(err))
		}
	}
}
