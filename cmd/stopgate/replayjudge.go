package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/recording"
)

// replayer puts recorded evaluations to drafts.
type replayer struct {
	command   replayCommand
	app       *app
	drafts    []*draft // the draft, and what it is compared with, if that is not the record
	source    source
	recording *recording.Recording // nil: neither kept nor replayed
}

// open finds the models that are needed, the recording and the evaluations.
func (r *replayer) open(p process, cfg config.Server) (err error) {
	c := r.command
	for _, d := range r.drafts {
		for _, name := range d.models(gate.EventName(c.Event)) {
			if c.Replay != "" {
				break
			}
			if _, _, err := r.app.models.find(name); err != nil {
				return exit{exitUnreachable, err}
			}
		}
	}
	if r.source, err = c.source(p, cfg, r.app); err != nil {
		return err
	}
	switch {
	case c.Record != "":
		r.recording, err = recording.Create(c.Record, secrets(cfg, p.getenv))
	case c.Replay != "":
		r.recording, err = recording.Open(c.Replay)
	}
	if err != nil {
		return exit{exitInput, err}
	}
	return nil
}

func (r *replayer) close() {
	if r.recording != nil {
		_ = r.recording.Close() // every answer is in a file of its own, closed
	}
	if r.source != nil {
		_ = r.source.close() // only read
	}
	_ = r.app.close()
}

// obstacle is why an evaluation cannot be replayed. It is an error.
type obstacle struct {
	Code    string `json:"code"` // a [gate.FailureCode] or one of the constants below
	Message string `json:"message"`
}

func (o *obstacle) Error() string { return o.Code + ": " + o.Message }

// Codes of obstacles beside those of failures.
const (
	badRecord   = "bad_record"   // it is none, or its payload is no event
	gone        = "gone"         // it was listed, and is not there
	httpNotSent = "http_hook"    // http hooks are not asked without --http
	notRecorded = "not_recorded" // the recording does not have the answers
	noAnswer    = "gate_error"   // the gate itself failed
)

// again is one evaluation on its way through a draft.
type again struct {
	*replayer
	record gate.Record
	take   *recording.Take          // nil: no recording
	first  atomic.Pointer[obstacle] // that a hook has met
}

// judge is what a draft decides on a recorded evaluation. An error is an
// [*obstacle], or one that ends the run.
func (r *replayer) judge(ctx context.Context, d *draft, rec gate.Record) (gate.Decision, error) {
	a := &again{replayer: r, record: rec}
	ev, err := recordedEvent(rec)
	if err != nil {
		return gate.Decision{}, &obstacle{badRecord, whole(err)}
	}
	g, err := a.gate(d)
	if err != nil {
		return gate.Decision{}, err
	}
	specs, _ := d.about(rec.Agent)
	g.FindAnswer(ctx, &ev)
	decision, err := g.Decide(ctx, ev, gate.Options{Specs: specs, AllActive: r.command.AllActive})
	if ctx.Err() != nil {
		return gate.Decision{}, ctx.Err()
	}
	if r.recording != nil {
		if err := r.recording.Err(); err != nil {
			return gate.Decision{}, exit{exitInternal, err}
		}
	}
	if err != nil {
		return gate.Decision{}, &obstacle{badRecord, whole(err)}
	}
	if o := a.obstacle(decision); o != nil {
		return gate.Decision{}, o
	}
	return decision, nil
}

// gate is the one of the straight path, whose ledger is what the record says and
// whose conversation is that of then.
func (a *again) gate(d *draft) (gate.Gate, error) {
	options := a.app.judging
	options.DailyTokens = 0
	if a.recording != nil {
		a.take = a.recording.Take(fmt.Sprintf("%q by %s", a.record.EvaluationID, d.name))
		if options.Model = a.take.Record(a.app.models.find); a.command.Replay != "" {
			options.Model = a.take.Replay()
		}
	}
	judge, err := prompthooks.New(options) // its own: what it remembers reaches no other
	if err != nil {
		return gate.Gate{}, err
	}
	g := *a.app.gate
	g.Store, g.Transcripts, g.FindAnswer = newPast(a.record), a, a.findAnswer
	g.Evaluators = map[gate.HookType]gate.Evaluator{
		gate.PromptHook:  a.withConversation(judge, func(*gate.Hook) bool { return true }),
		gate.CommandHook: a.withConversation(a.app.runner, scriptReads),
		gate.RuleHook:    a.app.gate.Evaluators[gate.RuleHook],
		gate.HTTPHook:    a.overHTTP(a.app.gate.Evaluators[gate.HTTPHook]),
	}
	return g, nil
}

// obstacle is what kept the draft's hooks from being asked; nil: nothing did.
func (a *again) obstacle(d gate.Decision) *obstacle {
	if met := a.first.Load(); met != nil {
		return met
	}
	if a.take != nil && a.take.Missing() > 0 && slices.ContainsFunc(d.Hooks, func(v gate.Verdict) bool { return v.Failure != nil }) {
		return &obstacle{notRecorded, "the recording does not have what the judge asked: another draft, or another evaluation, was recorded"}
	}
	if d.GateError != nil {
		return &obstacle{noAnswer, d.GateError.Error()}
	}
	for _, v := range d.Hooks {
		if v.Failure != nil && slices.Contains(gate.Unasked, v.Failure.Code) {
			return &obstacle{string(v.Failure.Code), fmt.Sprintf("hook %q: %s", v.Name, v.Failure.Message)}
		}
	}
	return nil
}

// withConversation asks hooks that read the conversation only where it is there.
// Judges are told of a place that is always the same, or a recording would not
// know their question again.
func (a *again) withConversation(e gate.Evaluator, reads func(*gate.Hook) bool) gate.Evaluator {
	return gate.EvaluatorFunc(func(ctx context.Context, in gate.Input) gate.Verdict {
		if lost, ok := in.Transcript.(*lostTranscript); ok {
			if reads(in.Hook) {
				return gate.Verdict{Outcome: gate.NoVerdict, Failure: lost.fail()}
			}
			in.Transcript = nil
		}
		if in.Hook.Type == gate.PromptHook && in.Transcript != nil {
			in = placed(in)
		}
		return e.Evaluate(ctx, in)
	})
}

// scriptReads reports whether a command hook may read the conversation: a script
// that names neither field in which its place stands does not. What another
// program does that a shell line starts nobody knows.
func scriptReads(h *gate.Hook) bool {
	return h.Script == "" || strings.Contains(h.Script, "execution_summary") || strings.Contains(h.Script, "transcript_path")
}

// overHTTP asks http hooks only if that was asked for: what they start cannot be
// undone.
func (a *again) overHTTP(e gate.Evaluator) gate.Evaluator {
	if a.command.HTTP {
		return a.withConversation(e, func(*gate.Hook) bool { return true })
	}
	return gate.EvaluatorFunc(func(_ context.Context, in gate.Input) gate.Verdict {
		o := &obstacle{httpNotSent, fmt.Sprintf("hook %q asks a server, which is done with --http only", in.Hook.Name)}
		a.first.CompareAndSwap(nil, o)
		return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.EgressDenied, Message: o.Message}}
	})
}
