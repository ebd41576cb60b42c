package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/klauspost/compress/s2"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"stopgate/gate"
)

// row is a record as the table evaluations holds it. What a filter needs is a
// column; the rest of what lists show, and all of a record that is short, is
// JSON in head; evidence and payload are compressed. S2 was chosen since it
// takes 0.6 µs for 433 bytes, where zstd takes 10 and flate 13.
type row struct {
	seq                                 int64
	id, agent, session, event, decision string
	head, evidence, payload             []byte
	hooks                               []string
}

// head is the JSON part, without what is zero.
type head struct {
	Nanos              *int64         `json:"at,omitempty"` // the record's time, if seq is not it
	SubAgent           string         `json:"sub_agent,omitempty"`
	Protocol           string         `json:"protocol,omitempty"`
	HostVersion        string         `json:"host_version,omitempty"`
	HostUntried        string         `json:"host_untried,omitempty"`
	Tool               string         `json:"tool,omitempty"`
	DryRun             bool           `json:"dry_run,omitempty"`
	DurationMS         int64          `json:"duration_ms,omitempty"`
	Reason             string         `json:"reason,omitempty"`
	AdditionalContext  string         `json:"additional_context,omitempty"`
	Messages           []gate.Message `json:"messages,omitempty"`
	Forced             bool           `json:"forced,omitempty"`
	Degraded           bool           `json:"degraded,omitempty"`
	StopHookActive     bool           `json:"stop_hook_active,omitempty"`
	StopRejectionCount int            `json:"stop_rejection_count,omitempty"`
	GateError          *gate.Failure  `json:"gate_error,omitempty"`
	Hooks              []gate.Verdict `json:"hooks,omitempty"` // without evidence
}

// encode makes the row of a record, in the buffers of one that is no longer
// needed.
func encode(r *gate.Record, old row) (row, error) {
	if r.EvaluationID == "" {
		return row{}, errors.New("store record has no evaluation id")
	}
	out := row{seq: nanos(r.Time), id: r.EvaluationID, agent: r.Agent, session: r.Session,
		event: string(r.Event), decision: string(r.Outcome)}
	h := headOf(r)
	var err error
	if out.head, err = json.Marshal(&h); err != nil {
		return row{}, fmt.Errorf("store record %q: %w", r.EvaluationID, err)
	}
	if out.evidence, err = encodeEvidence(r.Hooks); err != nil {
		return row{}, fmt.Errorf("store record %q: %w", r.EvaluationID, err)
	}
	if len(r.Payload) > 0 {
		out.payload = s2.Encode(old.payload[:cap(old.payload)], r.Payload)
	}
	seen := map[string]bool{}
	for i := range h.Hooks {
		if name := h.Hooks[i].Name; !seen[name] {
			seen[name] = true
			out.hooks = append(out.hooks, name)
		}
	}
	return out, nil
}

// nanos is a time in Unix nanoseconds, or the first or last there is: they
// reach from 1677 to 2262, and a caller may ask for what is until 9999.
func nanos(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

func headOf(r *gate.Record) head {
	h := head{SubAgent: r.SubAgent, Protocol: r.Protocol, HostVersion: r.HostVersion, HostUntried: r.HostUntried, Tool: r.Tool, DryRun: r.DryRun, DurationMS: r.DurationMS,
		Reason: r.Reason, AdditionalContext: r.AdditionalContext, Messages: r.Messages, Forced: r.Forced, Degraded: r.Degraded,
		StopHookActive: r.StopHookActive, StopRejectionCount: r.StopRejectionCount, GateError: r.GateError}
	if len(r.Hooks) > 0 {
		h.Hooks = r.WithoutEvidence().Hooks
	}
	return h
}

// encodeEvidence keeps the evidence by the hook's place; nil when there is
// none.
func encodeEvidence(verdicts []gate.Verdict) ([]byte, error) {
	found := map[int]*gate.Evidence{}
	for i := range verdicts {
		if e := verdicts[i].Evidence; e != nil {
			found[i] = e
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(found)
	return s2.Encode(nil, text), err
}

// decode makes the record of a row, as much of it as was read.
func (w *row) decode() (gate.Record, error) {
	var h head
	if err := json.Unmarshal(w.head, &h); err != nil {
		return gate.Record{}, fmt.Errorf("store record %q is damaged: %w", w.id, err)
	}
	at := w.seq
	if h.Nanos != nil {
		at = *h.Nanos
	}
	r := gate.Record{Time: time.Unix(0, at).UTC(), Agent: w.agent, Session: w.session, SubAgent: h.SubAgent,
		Event: gate.EventName(w.event), Protocol: h.Protocol, HostVersion: h.HostVersion, HostUntried: h.HostUntried, Tool: h.Tool, DryRun: h.DryRun, DurationMS: h.DurationMS,
		Decision: gate.Decision{EvaluationID: w.id, Outcome: gate.Outcome(w.decision), Reason: h.Reason,
			AdditionalContext: h.AdditionalContext, Messages: h.Messages, Forced: h.Forced, Degraded: h.Degraded,
			StopHookActive: h.StopHookActive, StopRejectionCount: h.StopRejectionCount, GateError: h.GateError, Hooks: h.Hooks}}
	if r.Messages == nil {
		r.Messages = []gate.Message{}
	}
	if r.Hooks == nil {
		r.Hooks = []gate.Verdict{}
	}
	if err := w.decodeRest(&r); err != nil {
		return gate.Record{}, fmt.Errorf("store record %q is damaged: %w", w.id, err)
	}
	return r, nil
}

func (w *row) decodeRest(r *gate.Record) error {
	if w.payload != nil {
		payload, err := s2.Decode(nil, w.payload)
		if err != nil {
			return err
		}
		r.Payload = payload
	}
	if w.evidence == nil {
		return nil
	}
	text, err := s2.Decode(nil, w.evidence)
	if err != nil {
		return err
	}
	var found map[int]*gate.Evidence
	if err := json.Unmarshal(text, &found); err != nil {
		return err
	}
	for i, e := range found {
		if i < 0 || i >= len(r.Hooks) {
			return fmt.Errorf("evidence of hook %d of %d", i, len(r.Hooks))
		}
		r.Hooks[i].Evidence = e
	}
	return nil
}

const insertEvaluation = `INSERT INTO evaluations (seq, id, agent, session, event, decision, head, idempotency, evidence, payload)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// insert writes the row, at the next free place if its moment is taken.
func (w *row) insert(c *conn, reservation []byte) error {
	seq, head := w.seq, w.head
	err := w.insertAt(c, seq, head, reservation)
	if taken(err) {
		if seq, err = nextFree(c, w.seq); err != nil {
			return err
		}
		if head, err = withTime(w.head, w.seq); err != nil {
			return err
		}
		err = w.insertAt(c, seq, head, reservation)
	}
	if err != nil {
		return err
	}
	for _, name := range w.hooks {
		if err := c.exec(`INSERT INTO evaluation_hooks (seq, hook) VALUES (?, ?)`, seq, name); err != nil {
			return err
		}
	}
	return nil
}

func (w *row) insertAt(c *conn, seq int64, head, reservation []byte) error {
	return c.exec(insertEvaluation, seq, w.id, w.agent, w.session, w.event, w.decision,
		head, blob(reservation), blob(w.evidence), blob(w.payload))
}

// taken reports whether another record has the row's very nanosecond.
func taken(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || e.Code() == sqlite3.SQLITE_CONSTRAINT_ROWID)
}

// nextFree is a free place after seq, in one look however many are taken (a
// clock may stand still): behind the last one within a millisecond, and so on
// while that lands on a full one.
func nextFree(c *conn, seq int64) (int64, error) {
	const span = int64(time.Millisecond)
	for {
		var v [1]driver.Value
		if _, err := c.row(v[:], `SELECT max(seq) FROM evaluations WHERE seq BETWEEN ? AND ?`, seq, seq+span); err != nil {
			return 0, err
		}
		last, ok := v[0].(int64)
		if !ok {
			return seq, nil
		}
		seq = last + 1
	}
}

// withTime adds the record's own time to a head.
func withTime(text []byte, nanos int64) ([]byte, error) {
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, err
	}
	h.Nanos = &nanos
	return json.Marshal(&h)
}

// blob is NULL for what is not there.
func blob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}
