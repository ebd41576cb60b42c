package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"stopgate/gate"
	"stopgate/wire"
)

// placed is an input whose conversation lies at the same place each time.
func placed(in gate.Input) gate.Input {
	path, raw := in.Transcript.Path(), in.Transcript.RawPath()
	at := placedTranscript{Transcript: in.Transcript, path: "/conversation.txt"}
	in.Context = moved(in.Context, path, at.path)
	if raw == path {
		at.raw = at.path
	} else if raw != "" {
		at.raw = "/conversation.raw"
		in.Context = moved(in.Context, raw, at.raw)
	}
	in.Transcript = at
	return in
}

// moved names another path in a hook's context. Paths of ours are random words,
// which nothing else in it is.
func moved(context []byte, from, to string) []byte {
	quoted, err := gate.PlainJSON(from)
	if err != nil {
		return context
	}
	return bytes.ReplaceAll(context, quoted, []byte(`"`+to+`"`))
}

type placedTranscript struct {
	gate.Transcript
	path, raw string
}

func (t placedTranscript) Path() string    { return t.path }
func (t placedTranscript) RawPath() string { return t.raw }

// Attach implements [gate.Transcripts]: what there was to be read then.
func (a *again) Attach(ctx context.Context, ev *gate.Event) (gate.Transcript, error) {
	if ev.InlineTranscript != nil {
		own := *ev
		own.Session = "" // it is nobody's but this event's
		t, err := a.app.transcripts.Attach(ctx, &own)
		return a.orLost(ctx, t, err)
	}
	if ev.Session == "" && ev.TranscriptPath == "" && ev.TranscriptSession == "" {
		return nil, nil
	}
	switch asked := a.record.Asked; {
	case asked == nil:
		return a.orLost(ctx, nil, errors.New("the record does not say how much of the conversation there was"))
	case asked.Transcript == nil:
		return nil, nil
	case ev.TranscriptSession == "" && ev.TranscriptPath != "":
		t, err := a.app.transcripts.Attach(ctx, ev)
		return a.orLost(ctx, t, err)
	}
	t, err := a.source.conversation(ctx, a.record, ev)
	if marked, ok := t.(markedTranscript); ok && err == nil {
		if !a.command.Redacted {
			return &lostTranscript{of: a, why: a.secretsGone().Message, marked: marked.Transcript}, nil
		}
		t = marked.Transcript
	}
	return a.orLost(ctx, t, err)
}

// orLost is a conversation, or one in the place of it that nobody can read and
// that notices if somebody wants to.
func (a *again) orLost(ctx context.Context, t gate.Transcript, err error) (gate.Transcript, error) {
	if err == nil && t == nil {
		err = errors.New("it is not there")
	}
	if err == nil {
		return t, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	text := strings.TrimPrefix(whole(err), string(gate.TranscriptUnreadable)+": ")
	return &lostTranscript{of: a, why: text}, nil
}

// findAnswer looks for an answer that the payload lacks where the record's
// conversation ends.
func (a *again) findAnswer(ctx context.Context, ev *gate.Event) {
	sought, missing := wire.AnswerSought(*ev)
	if !missing {
		return
	}
	err := errors.New("the host does not show it")
	if (sought.Session != "" || sought.Path != "") && ev.TranscriptMark != nil {
		ev.FinalOutput, err = a.source.answer(ctx, ev, sought.Since)
	}
	ev.AnswerUnknown = err != nil
}

// lostTranscript is a conversation that there was.
type lostTranscript struct {
	of  *again
	why string
	// marked is what is left of it, where it is secrets that are lost; nil: all is.
	marked gate.Transcript
}

var _ interface {
	gate.Transcript
	gate.Recalling
} = (*lostTranscript)(nil)

func (l *lostTranscript) fail() *gate.Failure {
	met := &obstacle{Code: string(gate.TranscriptUnreadable), Message: l.why}
	if l.marked != nil {
		met.Code = secretsGone
	}
	l.of.first.CompareAndSwap(nil, met)
	return &gate.Failure{Code: gate.TranscriptUnreadable, Message: l.why}
}

// Path is that of what is left.
func (l *lostTranscript) Path() string {
	if l.marked != nil {
		return l.marked.Path()
	}
	return ""
}

// RawPath is that of what is left.
func (l *lostTranscript) RawPath() string {
	if l.marked != nil {
		return l.marked.RawPath()
	}
	return ""
}

// Close ends what is left of it.
func (l *lostTranscript) Close() error {
	if l.marked != nil {
		return l.marked.Close()
	}
	return nil
}

func (l *lostTranscript) ReadFile(context.Context, int, int) (string, error) {
	return "", l.fail()
}

func (l *lostTranscript) GrepSearch(context.Context, gate.Grep) (string, error) { return "", l.fail() }

func (l *lostTranscript) Outline(context.Context, int) (string, bool, error) {
	return "", false, l.fail()
}

// Recall implements [gate.Recalling]: conditions of rules and of `when` read a
// conversation this way, and must not take one that is gone for none.
func (l *lostTranscript) Recall(context.Context) (gate.Recalled, error) {
	return gate.Recalled{}, l.fail()
}

func (l *lostTranscript) Fingerprint(context.Context) (sum [32]byte, ok bool) {
	_ = l.fail() // it has been noticed
	return sum, false
}

// past is the store of one evaluation: what a record says of the moment before it.
type past struct {
	noStore
	counts   gate.Counts
	switched map[string]bool
	waived   bool // an override let the session stop
}

// newPast takes what an old record does not say from what came of it: a rejected
// Stop was not the first if the next one was not the second; hooks of the agent
// level that took part were active.
func newPast(r gate.Record) past {
	p := past{switched: map[string]bool{}, waived: slices.ContainsFunc(r.Hooks, overridden)}
	if r.Asked != nil {
		p.counts, p.switched = r.Asked.Counts(), r.Asked.Switched
		return p
	}
	if (r.Event == gate.Stop || r.Event == gate.SubagentStop) && r.Outcome == gate.Block {
		p.counts.StopRejections = max(r.StopRejectionCount-1, 0)
		p.counts.PromptRejections = p.counts.StopRejections
	}
	for _, v := range r.Hooks {
		if v.Level == gate.AgentLevel {
			p.switched[v.Name] = true
		}
	}
	return p
}

// Counts implements [gate.Ledger].
func (p past) Counts(context.Context, gate.LedgerKey) (gate.Counts, gate.Erasure, error) {
	return p.counts, gate.NeverErased, nil
}

// Active implements [gate.Activations].
func (p past) Active(context.Context, string) (map[string]bool, error) { return p.switched, nil }

// Override implements [gate.Overrides]: one that was in force then is.
func (p past) Override(ctx context.Context, session string) (gate.Override, error) {
	if !p.waived {
		return p.noStore.Override(ctx, session)
	}
	return gate.Override{Session: session, Agents: []string{"*"}, Until: time.Now().Add(gate.MaxOverride)}, nil
}

func overridden(v gate.Verdict) bool { return v.Has(gate.Overridden) }

// waivedThen tells of hooks that an override left unasked what it was.
func waivedThen(d gate.Decision, r gate.Record) {
	then := slices.IndexFunc(r.Hooks, overridden)
	for i := range d.Hooks {
		if then >= 0 && overridden(d.Hooks[i]) {
			d.Hooks[i].Reason = r.Hooks[then].Reason
		}
	}
}
