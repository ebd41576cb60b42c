// Package record is how a store writes what it holds, the same in each: records,
// the cursors of their pages, and what keys and specs are called. So a store can
// take over the rows of another as they are.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/klauspost/compress/s2"

	"stopgate/gate"
)

// Row is a record as a table of evaluations holds it. What a filter needs is a
// column; the rest of what lists show, and all of a record that is short, is
// JSON in Head; evidence and payload are compressed. S2 was chosen since it
// takes 0.6 µs for 433 bytes, where zstd takes 10 and flate 13.
type Row struct {
	Seq                                 int64 // the record's place: its time, see [Nanos], or the next free one
	ID, Agent, Session, Event, Decision string
	DryRun                              bool // in Head too
	Head                                []byte
	Evidence, Payload                   []byte   // nil: none
	Hooks                               []string // names of those that took part, each once
}

// Size is about how many bytes the row takes.
func (w *Row) Size() int {
	return len(w.Agent) + len(w.Session) + len(w.Head) + len(w.Evidence) + len(w.Payload)
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
	Asked              *gate.Asked    `json:"asked,omitempty"`
	StopHookActive     bool           `json:"stop_hook_active,omitempty"`
	StopRejectionCount int            `json:"stop_rejection_count,omitempty"`
	GateError          *gate.Failure  `json:"gate_error,omitempty"`
	Hooks              []gate.Verdict `json:"hooks,omitempty"` // without evidence
}

// Encode makes the row of a record, in the buffers of one that is no longer
// needed.
func Encode(r *gate.Record, old Row) (Row, error) {
	if r.EvaluationID == "" {
		return Row{}, errors.New("store record has no evaluation id")
	}
	out := Row{Seq: Nanos(r.Time), ID: r.EvaluationID, Agent: r.Agent, Session: r.Session,
		Event: string(r.Event), Decision: string(r.Outcome), DryRun: r.DryRun}
	h := headOf(r)
	var err error
	if out.Head, err = json.Marshal(&h); err != nil {
		return Row{}, fmt.Errorf("store record %q: %w", r.EvaluationID, err)
	}
	if out.Evidence, err = encodeEvidence(r.Hooks); err != nil {
		return Row{}, fmt.Errorf("store record %q: %w", r.EvaluationID, err)
	}
	if len(r.Payload) > 0 {
		out.Payload = s2.Encode(old.Payload[:cap(old.Payload)], r.Payload)
	}
	seen := map[string]bool{}
	for i := range h.Hooks {
		if name := h.Hooks[i].Name; !seen[name] {
			seen[name] = true
			out.Hooks = append(out.Hooks, name)
		}
	}
	return out, nil
}

// Nanos is a time in Unix nanoseconds, or the first or last there is: they
// reach from 1677 to 2262, and a caller may ask for what is until 9999.
func Nanos(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

func headOf(r *gate.Record) head {
	h := head{SubAgent: r.SubAgent, Protocol: r.Protocol, HostVersion: r.HostVersion, HostUntried: r.HostUntried, Tool: r.Tool, DryRun: r.DryRun, DurationMS: r.DurationMS, Asked: r.Asked,
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

// Decode makes the record of a row, as much of it as was read.
func (w *Row) Decode() (gate.Record, error) {
	var h head
	if err := json.Unmarshal(w.Head, &h); err != nil {
		return gate.Record{}, fmt.Errorf("store record %q is damaged: %w", w.ID, err)
	}
	at := w.Seq
	if h.Nanos != nil {
		at = *h.Nanos
	}
	r := gate.Record{Time: time.Unix(0, at).UTC(), Agent: w.Agent, Session: w.Session, SubAgent: h.SubAgent,
		Event: gate.EventName(w.Event), Protocol: h.Protocol, HostVersion: h.HostVersion, HostUntried: h.HostUntried, Tool: h.Tool, DryRun: h.DryRun, DurationMS: h.DurationMS, Asked: h.Asked,
		Decision: gate.Decision{EvaluationID: w.ID, Outcome: gate.Outcome(w.Decision), Reason: h.Reason,
			AdditionalContext: h.AdditionalContext, Messages: h.Messages, Forced: h.Forced, Degraded: h.Degraded,
			StopHookActive: h.StopHookActive, StopRejectionCount: h.StopRejectionCount, GateError: h.GateError, Hooks: h.Hooks}}
	if r.Messages == nil {
		r.Messages = []gate.Message{}
	}
	if r.Hooks == nil {
		r.Hooks = []gate.Verdict{}
	}
	if err := w.decodeRest(&r); err != nil {
		return gate.Record{}, fmt.Errorf("store record %q is damaged: %w", w.ID, err)
	}
	return r, nil
}

func (w *Row) decodeRest(r *gate.Record) error {
	if w.Payload != nil {
		payload, err := s2.Decode(nil, w.Payload)
		if err != nil {
			return err
		}
		r.Payload = payload
	}
	if w.Evidence == nil {
		return nil
	}
	text, err := s2.Decode(nil, w.Evidence)
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

// WithTime adds the record's own time to a head whose row stands at another
// place.
func WithTime(text []byte, nanos int64) ([]byte, error) {
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, err
	}
	h.Nanos = &nanos
	return json.Marshal(&h)
}
