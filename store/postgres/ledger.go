package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
	"stopgate/store/record"
)

const (
	countsKey    = `sha256(session) = sha256($1) AND sha256(agent) = sha256($2) AND sha256(sub_agent) = sha256($3)`
	selectCounts = `SELECT stops, prompts, started, prompt_id, reason, context, answer, same FROM stopgate.counts WHERE ` + countsKey
)

// Counts reads what the key holds, and the session's last erasure. Without a session
// there is no ledger.
func (s *Store) Counts(ctx context.Context, key gate.LedgerKey) (counts gate.Counts, last gate.Erasure, err error) {
	if key.Session == "" {
		return counts, gate.NeverErased, nil
	}
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		var both pgx.Batch
		both.Queue(selectErasure, bytesOf(key.Session))
		both.Queue(selectCounts, bytesOf(key.Session), bytesOf(key.Agent), bytesOf(key.SubAgent))
		answers := conn.SendBatch(ctx, &both)
		if last, err = scanErasure(answers.QueryRow()); err == nil {
			counts, err = scanCounts(answers.QueryRow())
		}
		return cmp.Or(err, answers.Close())
	})
	return counts, last, err
}

// scanCounts is the row's counts; the zero value where there is none.
func scanCounts(row pgx.Row) (c gate.Counts, err error) {
	err = row.Scan(&c.StopRejections, &c.PromptRejections, &c.Started, (*text)(&c.LastPromptID), (*text)(&c.LastReason),
		(*text)(&c.LastContext), (*text)(&c.LastAnswer), &c.SameReason)
	if errors.Is(err, pgx.ErrNoRows) {
		return gate.Counts{}, nil
	}
	return c, err
}

// Commit stores one decision. Settle is called first without a transaction; if
// the counts have changed since c.Seen it is called again inside it, where it
// holds up other commits of its session. A Settle that panics fails its own
// commit only.
//
// [gate.ErrStale]: as c.Stale says. [gate.ErrErased]: as c.Erasure. CodeConflict:
// the key in c.Idempotency was answered by another; CodeIdempotencyMismatch: it
// belongs to another body. In all these cases nothing was stored.
func (s *Store) Commit(ctx context.Context, c gate.Commit) error {
	w := &commit{Commit: c}
	if c.Idempotency.Key != (gate.IdempotencyKey{}) {
		w.claim = claimOf(c.Idempotency)
	}
	if err := w.settle(c.Seen); err != nil {
		return err
	}
	err := s.write(ctx, w.apply)
	if _, ok := errors.AsType[*unknownError](err); ok {
		// The same again finds the record if the commit came about: it waits
		// for the same locks.
		w.unknown = true
		again := s.write(context.WithoutCancel(ctx), w.apply)
		if _, refused := errors.AsType[*gate.Error](again); again == nil || refused {
			return again
		}
	}
	return err
}

// commit is a gate.Commit with its record ready to be written.
type commit struct {
	gate.Commit
	claim   keyClaim    // the zero value: no key
	settled gate.Counts // what next and row were settled with
	next    gate.Counts
	row     record.Row
	unknown bool         // it was committed before, or not
	erased  gate.Erasure // the session's last, as it is; looked up where Erasure is set
}

// settle asks for what is to be stored with these counts, and encodes it.
func (w *commit) settle(now gate.Counts) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("store commit: Settle panicked: %v", p)
		}
	}()
	next, decided := w.Settle(now)
	w.settled, w.next = now, next
	w.row, err = record.Encode(&decided, w.row)
	return err
}

func (w *commit) apply(ctx context.Context, tx pgx.Tx) error {
	key, now, stored, err := w.look(ctx, tx)
	if err != nil || stored {
		return err
	}
	if w.erased > w.Erasure {
		return gate.ErrErased
	}
	has, err := w.claim.held(key)
	if err != nil {
		return err
	}
	if has.evaluation != "" {
		return gate.Errorf(gate.CodeConflict, "idempotency key was answered by another request meanwhile")
	}
	if now != w.Seen && w.Stale != nil && w.Stale(now) {
		return gate.ErrStale
	}
	if now != w.settled {
		if err := w.settle(now); err != nil {
			return err
		}
	}
	var batch pgx.Batch
	seqTaken := insertRecord(&batch, &w.row, w.row.Seq, w.row.Head, w.claim.id)
	if w.row.Session != "" {
		joinSession(&batch, w.row.Session, w.row.Agent, w.Projects)
	}
	if w.Key.Session != "" && w.next != now {
		writeCounts(&batch, w.Key, w.next)
	}
	if w.claim.id != nil {
		w.claim.answer(&batch, has, w.row.ID)
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	if *seqTaken {
		return insertLater(ctx, tx, &w.row, w.claim.id)
	}
	return nil
}

// look takes the locks that the commit needs and reads what it builds on: its
// key's row, and the counts as they are. stored: it is in the store already.
//
// Without a session there is nothing to count, and no lock but the record's own.
func (w *commit) look(ctx context.Context, tx pgx.Tx) (key keyRow, now gate.Counts, stored bool, err error) {
	var batch pgx.Batch
	if w.claim.id != nil {
		lock(&batch, lockOf("key", string(w.claim.id)))
	}
	w.erased = 0
	if w.Erasure != 0 {
		lookForErasure(&batch, w.row.Session, &w.erased)
	}
	now = w.Seen // until the row says otherwise: an earlier try may have settled with other counts
	if w.Key.Session == "" {
		lock(&batch, lockOf("record", w.row.ID))
	} else {
		lock(&batch, lockOf("counts", w.Key.Session, w.Key.Agent, w.Key.SubAgent))
		batch.Queue(selectCounts, bytesOf(w.Key.Session), bytesOf(w.Key.Agent), bytesOf(w.Key.SubAgent)).QueryRow(func(row pgx.Row) (err error) {
			now, err = scanCounts(row)
			return err
		})
	}
	if w.unknown {
		batch.Queue(`SELECT EXISTS (SELECT FROM stopgate.evaluations WHERE id = $1)`, bytesOf(w.row.ID)).QueryRow(func(row pgx.Row) error {
			return row.Scan(&stored)
		})
	}
	if w.claim.id != nil {
		w.claim.look(&batch, &key)
	}
	err = tx.SendBatch(ctx, &batch).Close()
	return key, now, stored, err
}

// writeCounts keeps no row for the zero value, which is what a key without a
// row holds.
func writeCounts(batch *pgx.Batch, key gate.LedgerKey, n gate.Counts) {
	session, agent, subAgent := bytesOf(key.Session), bytesOf(key.Agent), bytesOf(key.SubAgent)
	if n == (gate.Counts{}) {
		batch.Queue(`DELETE FROM stopgate.counts WHERE `+countsKey, session, agent, subAgent)
		return
	}
	batch.Queue(`INSERT INTO stopgate.counts (session, agent, sub_agent, stops, prompts, started, prompt_id, reason, context, answer, same)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (sha256(session), sha256(agent), sha256(sub_agent)) DO UPDATE SET stops = excluded.stops, prompts = excluded.prompts,
			started = excluded.started, prompt_id = excluded.prompt_id, reason = excluded.reason, context = excluded.context,
			answer = excluded.answer, same = excluded.same`,
		session, agent, subAgent, n.StopRejections, n.PromptRejections, n.Started, bytesOf(n.LastPromptID), bytesOf(n.LastReason),
		bytesOf(n.LastContext), bytesOf(n.LastAnswer), n.SameReason)
}
