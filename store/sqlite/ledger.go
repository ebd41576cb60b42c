package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"stopgate/gate"
	"stopgate/store/record"
)

const selectCounts = `SELECT stops, prompts, started, prompt_id, reason, context, answer, same FROM counts
	WHERE session = ? AND agent = ? AND sub_agent = ?`

const selectLoop = `SELECT coalesce((SELECT seq FROM erasures WHERE session = ?1), 0) AS erasure,
	EXISTS (SELECT 1 FROM counts WHERE session = ?2 AND agent = ?3 AND sub_agent = ?4) AS counted`

// Counts reads what the key holds, and the session's last erasure. Without a session
// there is no ledger.
func (s *Store) Counts(ctx context.Context, key gate.LedgerKey) (c gate.Counts, last gate.Erasure, err error) {
	if key.Session == "" {
		return c, gate.NeverErased, nil
	}
	var at [2]driver.Value
	if _, err := s.lookups.row(ctx, at[:], selectLoop, sumOf(key.Session), key.Session, key.Agent, key.SubAgent); err != nil {
		return c, gate.NeverErased, err
	}
	last = gate.NeverErased + gate.Erasure(at[0].(int64))
	if at[1].(int64) == 0 { // as most are, and the columns of nothing cost as much
		return c, last, nil
	}
	var row countsRow
	found, err := s.lookups.row(ctx, row[:], selectCounts, key.Session, key.Agent, key.SubAgent)
	if found {
		c = row.counts()
	}
	return c, last, err
}

// Commit stores one decision. Settle is called in the caller's goroutine
// first; if the counts have changed since c.Seen, it is called again in the
// writer's goroutine, inside the transaction, where it holds up every other
// write. A Settle that panics fails its own commit only.
//
// [gate.ErrStale]: as c.Stale says. [gate.ErrErased]: as c.Erasure. CodeConflict:
// the key in c.Idempotency was answered by another; CodeIdempotencyMismatch: it
// belongs to another body. In all these cases nothing was stored.
func (s *Store) Commit(ctx context.Context, c gate.Commit) error {
	w := &commit{Commit: c, at: s.opt.Now().UnixMilli()}
	if c.Idempotency.Key != (gate.IdempotencyKey{}) {
		w.claim = claimOf(c.Idempotency, s.opt.Now())
	}
	if err := w.settle(c.Seen); err != nil {
		return err
	}
	return s.writer.do(ctx, w)
}

// commit is a gate.Commit with its record ready to be written.
type commit struct {
	gate.Commit
	claim   keyClaim    // the zero value: no key
	settled gate.Counts // what next and row were settled with
	next    gate.Counts
	row     record.Row
	at      int64 // Unix milliseconds
}

func (w *commit) size() int { return w.row.Size() }

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

func (w *commit) apply(c *conn) error {
	there, err := w.look(c)
	if err != nil {
		return err
	}
	if w.Erasure != 0 && there.erasure > w.Erasure {
		return gate.ErrErased
	}
	var key holding
	if w.claim.id != nil {
		if key, err = w.claim.unanswered(c); err != nil {
			return err
		}
	}
	// Seen, until the row says otherwise: an earlier try may have settled with
	// counts that were rolled back.
	now := w.Seen
	if w.Key.Session != "" {
		now = there.counts
	}
	if now != w.Seen && w.Stale != nil && w.Stale(now) {
		return gate.ErrStale
	}
	if now != w.settled {
		if err := w.settle(now); err != nil {
			return err
		}
	}
	if err := insert(c, &w.row, w.claim.id); err != nil {
		return err
	}
	if w.row.Session != "" && (!there.joined || w.Projects != nil) {
		if err := joinSession(c, w.row.Session, w.row.Agent, w.at, record.EncodeProjects(w.Projects)); err != nil {
			return err
		}
	}
	if w.Key.Session != "" && w.next != now {
		if err := writeCounts(c, w.Key, w.next); err != nil {
			return err
		}
	}
	if w.Key.Session != "" && w.Key.Session == w.row.Session && w.Key.Agent == w.row.Agent {
		c.idle.set(w.Key, w.next == gate.Counts{})
	}
	if w.claim.id != nil {
		return w.claim.answer(c, key, w.row.ID)
	}
	return nil
}

// known is what the store holds that a commit builds on.
type known struct {
	erasure gate.Erasure // 0: none is remembered
	counts  gate.Counts
	joined  bool // the session belongs to the agent already
}

const selectKnown = `SELECT (SELECT seq FROM erasures WHERE session = ?1) AS erasure,
	EXISTS (SELECT 1 FROM session_agents WHERE session = ?2 AND agent = ?3) AS joined,
	EXISTS (SELECT 1 FROM counts WHERE session = ?4 AND agent = ?5 AND sub_agent = ?6) AS counted`

// look reads it in one statement: of most events there is no erasure and no count,
// and each further statement costs more than what it finds.
func (w *commit) look(c *conn) (k known, err error) {
	if w.row.Session == "" && w.Key.Session == "" {
		return known{}, nil
	}
	if w.Erasure == 0 && c.idle.has(w.Key) && w.Key.Session == w.row.Session && w.Key.Agent == w.row.Agent {
		return known{joined: true}, nil
	}
	var sum any // NULL: not asked for
	if w.Erasure != 0 {
		sum = sumOf(w.row.Session)
	}
	var v [3]driver.Value
	if _, err := c.row(v[:], selectKnown, sum, w.row.Session, w.row.Agent, w.Key.Session, w.Key.Agent, w.Key.SubAgent); err != nil {
		return known{}, err
	}
	if seq, found := v[0].(int64); found {
		k.erasure = gate.NeverErased + gate.Erasure(seq)
	}
	k.joined = v[1].(int64) != 0
	if v[2].(int64) != 0 {
		k.counts, err = readCounts(c, w.Key)
	}
	return k, err
}

func readCounts(c *conn, key gate.LedgerKey) (gate.Counts, error) {
	var row countsRow
	found, err := c.row(row[:], selectCounts, key.Session, key.Agent, key.SubAgent)
	if !found {
		return gate.Counts{}, err
	}
	return row.counts(), nil
}

// countsRow are the columns of selectCounts.
type countsRow [8]driver.Value

func (v *countsRow) counts() gate.Counts {
	return gate.Counts{StopRejections: int(v[0].(int64)), PromptRejections: int(v[1].(int64)), Started: v[2].(int64) != 0,
		LastPromptID: v[3].(string), LastReason: v[4].(string), LastContext: v[5].(string), LastAnswer: v[6].(string),
		SameReason: int(v[7].(int64))}
}

// writeCounts keeps no row for the zero value, which is what a key without a
// row holds.
func writeCounts(c *conn, key gate.LedgerKey, n gate.Counts) error {
	if n == (gate.Counts{}) {
		return c.exec(`DELETE FROM counts WHERE session = ? AND agent = ? AND sub_agent = ?`, key.Session, key.Agent, key.SubAgent)
	}
	return c.exec(`INSERT OR REPLACE INTO counts (session, agent, sub_agent, stops, prompts, started, prompt_id, reason, context, answer, same)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		key.Session, key.Agent, key.SubAgent, int64(n.StopRejections), int64(n.PromptRejections), asInt(n.Started), n.LastPromptID, n.LastReason, n.LastContext, n.LastAnswer, int64(n.SameReason))
}

func asInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
