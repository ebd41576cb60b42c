package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"iter"

	"github.com/jackc/pgx/v5"

	"stopgate/gate"
	"stopgate/store/record"
)

// Texts hands each text of another keeper to put, and gives up at its first
// error.
type Texts func(put func(key [32]byte, form string, r io.ReaderAt, n int64) error) error

// Import takes over everything that another store and its texts hold, in one
// transaction: all of it, or nothing. step is called after each row and each
// text. A database that holds anything already is CodeConflict, and is left as
// it is.
//
// Other replicas may run meanwhile; what they write waits, and fails if that is
// long.
func (s *Store) Import(ctx context.Context, dump record.Dump, texts Texts, step func()) error {
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return explain(err)
	}
	w := taking{store: s, tx: tx, step: step}
	if err := run(ctx, tx, func(ctx context.Context, _ pgx.Tx) error { return w.everything(ctx, dump, texts) }); err != nil {
		abandon(ctx, tx)
		return explain(err)
	}
	return explain(s.commitTx(ctx, tx))
}

// taking is an import under way.
type taking struct {
	store *Store
	tx    pgx.Tx
	step  func()
}

// contents are the tables that hold something once stopgate was used.
const contents = `stopgate.counts, stopgate.evaluations, stopgate.evaluation_hooks, stopgate.specs, stopgate.activations, stopgate.idempotency, stopgate.texts, stopgate.text_chunks,
	stopgate.session_agents, stopgate.keys, stopgate.audit, stopgate.overrides, stopgate.sinks, stopgate.outbox`

func (w *taking) everything(ctx context.Context, dump record.Dump, texts Texts) error {
	if _, err := w.tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil { // the source may be slow
		return err
	}
	if _, err := w.tx.Exec(ctx, `LOCK TABLE `+contents+` IN SHARE ROW EXCLUSIVE MODE`); err != nil {
		return err
	}
	var used bool
	err := w.tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM stopgate.counts) OR EXISTS (SELECT FROM stopgate.evaluations)
		OR EXISTS (SELECT FROM stopgate.specs) OR EXISTS (SELECT FROM stopgate.activations)
		OR EXISTS (SELECT FROM stopgate.idempotency) OR EXISTS (SELECT FROM stopgate.texts)
		OR EXISTS (SELECT FROM stopgate.session_agents) OR EXISTS (SELECT FROM stopgate.keys) OR EXISTS (SELECT FROM stopgate.audit)
		OR EXISTS (SELECT FROM stopgate.overrides)
		OR EXISTS (SELECT FROM stopgate.outbox)`).Scan(&used)
	if err != nil {
		return err
	}
	if used {
		return gate.Errorf(gate.CodeConflict, "database %s is in use already: nothing was moved into it; name an empty one", w.store.where)
	}
	if err := w.rows(ctx, dump); err != nil {
		return err
	}
	count, bytes, err := w.texts(ctx, texts)
	if err != nil {
		return err
	}
	return w.verify(ctx, dump.Rows, count, bytes)
}

func (w *taking) rows(ctx context.Context, dump record.Dump) error {
	if err := take(ctx, w, "counts", []string{"session", "agent", "sub_agent", "stops", "prompts", "started", "prompt_id", "reason", "context", "answer", "same"},
		dump.Counts, func(c record.Counts) []any {
			return []any{bytesOf(c.Session), bytesOf(c.Agent), bytesOf(c.SubAgent), c.StopRejections, c.PromptRejections, c.Started,
				bytesOf(c.LastPromptID), bytesOf(c.LastReason), bytesOf(c.LastContext), bytesOf(c.LastAnswer), c.SameReason}
		}); err != nil {
		return err
	}
	if err := take(ctx, w, "evaluations", []string{"seq", "id", "agent", "session", "event", "decision", "dry_run", "head", "idempotency", "evidence", "payload"},
		dump.Evaluations, func(e record.Evaluation) []any {
			return []any{e.Seq, bytesOf(e.ID), bytesOf(e.Agent), bytesOf(e.Session), bytesOf(e.Event), bytesOf(e.Decision), e.DryRun,
				e.Head, e.Idempotency, e.Evidence, e.Payload}
		}); err != nil {
		return err
	}
	if err := take(ctx, w, "evaluation_hooks", []string{"seq", "hook"},
		dump.Hooks, func(h record.Hook) []any { return []any{h.Seq, sumOf(h.Name)} }); err != nil {
		return err
	}
	if err := take(ctx, w, "specs", []string{"seq", "kind", "name", "version", "etag", "document", "by", "at", "deleted", "born"},
		dump.Specs, func(v record.Spec) []any {
			return []any{v.Seq, bytesOf(string(v.Kind)), bytesOf(v.Name), v.Version, bytesOf(v.ETag), []byte(v.Document), bytesOf(v.By), v.At, v.Deleted, v.Born}
		}); err != nil {
		return err
	}
	if err := take(ctx, w, "activations", []string{"session", "hook", "active", "by", "at"},
		dump.Activations, func(a record.Activation) []any {
			return []any{bytesOf(a.Session), bytesOf(a.Hook), a.Active, bytesOf(a.By), a.At}
		}); err != nil {
		return err
	}
	if err := take(ctx, w, "idempotency", []string{"id", "body", "reserved", "lease", "evaluation"},
		dump.Keys, func(k record.Key) []any { return []any{k.ID, k.Body, k.Reserved, k.Lease, k.Evaluation} }); err != nil {
		return err
	}
	if err := w.sinks(ctx, dump); err != nil {
		return err
	}
	return w.access(ctx, dump)
}

// sinks takes over what is still to be sent. The sinks themselves may be here
// already: a replica has started.
func (w *taking) sinks(ctx context.Context, dump record.Dump) error {
	for sink, err := range dump.Sinks {
		if err != nil {
			return err
		}
		if _, err := w.tx.Exec(ctx, `INSERT INTO stopgate.sinks AS s (name, seen, dropped) VALUES ($1, $2, $3)
			ON CONFLICT (name) DO UPDATE SET dropped = s.dropped + excluded.dropped`, bytesOf(sink.Name), sink.Seen, sink.Dropped); err != nil {
			return err
		}
		w.step()
	}
	return take(ctx, w, "outbox", []string{"sink", "seq", "aside"}, dump.Unsent, func(u record.Unsent) []any { return []any{bytesOf(u.Sink), u.Seq, u.Aside} })
}

// access takes over who may do what, and who has changed what.
func (w *taking) access(ctx context.Context, dump record.Dump) error {
	if err := take(ctx, w, "session_agents", []string{"session", "agent", "at", "projects"},
		dump.Claims, func(c record.Claim) []any {
			return []any{bytesOf(c.Session), bytesOf(c.Agent), c.At, bytesOf(c.Projects)}
		}); err != nil {
		return err
	}
	if err := take(ctx, w, "keys", []string{"seq", "id", "name", "hash", "scopes", "agents", "created", "created_by", "expires", "revoked", "used"},
		dump.APIKeys, func(k record.APIKey) []any {
			return []any{k.Seq, bytesOf(k.ID), bytesOf(k.Name), k.Hash, k.Scopes, k.Agents, k.Created, bytesOf(k.CreatedBy), k.Expires, k.Revoked, k.LastUsed}
		}); err != nil {
		return err
	}
	if err := take(ctx, w, "overrides", []string{"session", "reason", "by", "agents", "since", "until"},
		dump.Overrides, func(o record.Override) []any {
			return []any{bytesOf(o.Session), bytesOf(o.Reason), bytesOf(o.By), o.Agents, o.Since, o.Until}
		}); err != nil {
		return err
	}
	return take(ctx, w, "audit", []string{"seq", "at", "action", "kind", "name", "session", "key_id", "before", "after", "by", "credential", "address", "reason", "until"},
		dump.Changes, func(c record.Change) []any {
			return []any{c.Seq, c.At, bytesOf(string(c.Action)), bytesOf(c.Kind), bytesOf(c.Name), bytesOf(c.Session), bytesOf(c.KeyID), c.Before, c.After,
				bytesOf(c.By), bytesOf(c.Credential), bytesOf(c.From), bytesOf(c.Reason), c.Until}
		})
}

// take copies one table.
func take[T any](ctx context.Context, w *taking, table string, columns []string, rows iter.Seq2[T, error], values func(T) []any) error {
	next, stop := iter.Pull2(rows)
	defer stop()
	_, err := w.tx.CopyFrom(ctx, pgx.Identifier{"stopgate", table}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		row, err, more := next()
		if !more || err != nil {
			return nil, err
		}
		w.step()
		return values(row), nil
	}))
	if err != nil {
		return fmt.Errorf("table %s: %w", table, err)
	}
	return nil
}

func (w *taking) texts(ctx context.Context, texts Texts) (count, bytes int64, err error) {
	err = texts(func(key [32]byte, form string, r io.ReaderAt, n int64) error {
		text := addition{store: w.store, tx: w.tx, key: key, id: []byte(rand.Text())}
		state, err := text.begin(ctx, form)
		if err == nil {
			_, err = text.add(ctx, state, form, r, n)
		}
		count, bytes = count+1, bytes+n
		w.step()
		return err
	})
	return count, bytes, err
}

// verify counts what is there now, before it is committed.
func (w *taking) verify(ctx context.Context, want record.Rows, wantTexts, wantBytes int64) error {
	var have record.Rows
	var texts, bytes int64
	err := w.tx.QueryRow(ctx, `SELECT (SELECT count(*) FROM stopgate.counts), (SELECT count(*) FROM stopgate.evaluations),
		(SELECT count(*) FROM stopgate.evaluation_hooks), (SELECT count(*) FROM stopgate.specs), (SELECT count(*) FROM stopgate.activations),
		(SELECT count(*) FROM stopgate.idempotency), (SELECT count(*) FROM stopgate.texts), (SELECT coalesce(sum(bytes), 0)::bigint FROM stopgate.texts),
		(SELECT count(*) FROM stopgate.session_agents), (SELECT count(*) FROM stopgate.keys), (SELECT count(*) FROM stopgate.audit),
		(SELECT count(*) FROM stopgate.overrides),
		(SELECT count(*) FROM stopgate.outbox)`).
		Scan(&have.Counts, &have.Evaluations, &have.Hooks, &have.Specs, &have.Activations, &have.Keys, &texts, &bytes,
			&have.Claims, &have.APIKeys, &have.Changes, &have.Overrides, &have.Unsent)
	if err != nil {
		return err
	}
	have.Sinks = want.Sinks // there may be others
	if have != want || texts != wantTexts || bytes != wantBytes {
		return fmt.Errorf("store has %+v and %d texts of %d bytes, and its source %+v and %d of %d: nothing was kept",
			have, texts, bytes, want, wantTexts, wantBytes)
	}
	return nil
}
