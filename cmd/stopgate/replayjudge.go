package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/recording"
	"stopgate/redact"
)

// replayer puts recorded evaluations to drafts.
type replayer struct {
	command   replayCommand
	app       *app
	drafts    []*draft // the draft, and what it is compared with, if that is not the record
	source    source
	recording *recording.Recording // nil: neither kept nor replayed
	shows     *redact.Redactor     // takes secrets out of what is printed
	hides     *redact.Redactor     // from judges, as the server file says; nil: nothing
	// workspaces are the roots of those that scripts see by the server file; none:
	// it lets them see none, or was not given.
	workspaces []string
	unfound    atomic.Pointer[error] // why a judge's model is none; nil: none was wanting
}

// open finds the recording and the evaluations.
func (r *replayer) open(p process, cfg config.Server) (err error) {
	c := r.command
	if r.shows, err = redactorOf(cfg); err != nil {
		return err
	}
	if cfg.Redaction.ModelInput {
		r.hides = r.shows
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
	Line    int    `json:"line,omitempty"` // of the export, where that is what is wrong
}

func (o *obstacle) Error() string { return o.Code + ": " + o.Message }

// Codes of obstacles beside those of failures.
const (
	badLine     = "bad_line"     // a line of an export is no record, or contradicts another
	badRecord   = "bad_record"   // its payload is no event
	secretsGone = "redacted"     // hooks would see marks where they saw secrets
	workspace   = "workspace"    // a script may look at its agent's directory
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
	marked bool                     // secrets were taken out of what hooks are asked, and --redacted does not say to ask all the same
	first  atomic.Pointer[obstacle] // that a hook has met
	blind  atomic.Bool              // a script was asked that may have looked at its agent's directory
}

// judgement is what a draft decides.
type judgement struct {
	gate.Decision
	blind    bool     // scripts may have looked at a directory that they do not see
	inactive []string // on-demand hooks about the event that were not switched on
}

// judge is what a draft decides on a recorded evaluation. An error is an
// [*obstacle], or one that ends the run.
func (r *replayer) judge(ctx context.Context, d *draft, rec gate.Record) (judgement, error) {
	a := &again{replayer: r, record: rec, marked: !r.command.Redacted && redact.Marked(rec.Payload)}
	ev, err := recordedEvent(rec)
	if err != nil {
		return judgement{}, &obstacle{Code: badRecord, Message: whole(err)}
	}
	g, err := a.gate(d)
	if err != nil {
		return judgement{}, err
	}
	specs, _ := d.about(rec.Agent)
	if a.marked && slices.ContainsFunc(specs, func(s *gate.Spec) bool { return picksByInput(s, rec) }) {
		return judgement{}, a.secretsGone()
	}
	g.FindAnswer(ctx, &ev)
	decision, err := g.Decide(ctx, ev, gate.Options{Specs: specs, AllActive: r.command.AllActive})
	if ctx.Err() != nil {
		return judgement{}, ctx.Err()
	}
	if r.recording != nil {
		if err := r.recording.Err(); err != nil {
			return judgement{}, exit{exitInternal, err}
		}
	}
	if err != nil {
		return judgement{}, &obstacle{Code: badRecord, Message: whole(err)}
	}
	if o := a.obstacle(decision); o != nil {
		return judgement{}, o
	}
	if r.command.Replay != "" {
		unmeasured(decision)
	}
	waivedThen(decision, rec)
	return judgement{decision, a.blind.Load(), inactive(specs, &ev, decision)}, nil
}

// unmeasured leaves out how long judges took that were answered from a recording.
func unmeasured(d gate.Decision) {
	for i := range d.Hooks {
		if v := &d.Hooks[i]; v.Type == gate.PromptHook {
			v.DurationMS = 0
		}
	}
}

// gate is the one of the straight path, whose ledger is what the record says and
// whose conversation is that of then.
func (a *again) gate(d *draft) (gate.Gate, error) {
	options := a.app.judging
	options.DailyTokens, options.Model = 0, a.findModel
	if a.recording != nil {
		a.take = a.recording.Take(fmt.Sprintf("%q by %s", a.record.EvaluationID, d.name))
		if options.Model = a.take.Record(a.findModel); a.command.Replay != "" {
			options.Model = a.take.Replay()
		}
	}
	judge, err := prompthooks.New(options) // its own: what it remembers reaches no other
	if err != nil {
		return gate.Gate{}, err
	}
	var judged gate.Evaluator = judge
	if a.hides != nil {
		judged = a.hides.Evaluator(judge)
	}
	g := *a.app.gate
	g.Store, g.Transcripts, g.FindAnswer = newPast(a.record), a, a.findAnswer
	g.Evaluators = map[gate.HookType]gate.Evaluator{
		gate.PromptHook:  a.unmarked(a.withConversation(judged, func(*gate.Hook) bool { return true })),
		gate.CommandHook: a.unmarked(a.withConversation(a.inNoWorkspace(a.app.runner), scriptReads)),
		gate.RuleHook:    a.unmarked(a.app.gate.Evaluators[gate.RuleHook]),
		gate.HTTPHook:    a.unmarked(a.overHTTP(a.app.gate.Evaluators[gate.HTTPHook])),
	}
	return g, nil
}

// findModel finds a model when a judge needs it, and not before.
func (r *replayer) findModel(name string) (prompthooks.Model, string, error) {
	model, deployment, err := r.app.models.find(name)
	if err != nil {
		r.unfound.CompareAndSwap(nil, &err)
	}
	return model, deployment, err
}

// inactive are the on-demand hooks about an event that were not asked, since the
// session had not switched them on.
func inactive(specs []*gate.Spec, ev *gate.Event, d gate.Decision) (names []string) {
	for _, s := range specs {
		for i := range s.Hooks {
			h := &s.Hooks[i]
			asked := slices.ContainsFunc(d.Hooks, func(v gate.Verdict) bool { return v.Name == h.Name })
			if (s.Kind == gate.HookSpec || s.Name == ev.Agent) && h.Activation == gate.OnDemand && h.Concerns(ev) && !asked {
				names = append(names, h.Name)
			}
		}
	}
	return names
}

// obstacle is what kept the draft's hooks from being asked; nil: nothing did.
func (a *again) obstacle(d gate.Decision) *obstacle {
	if met := a.first.Load(); met != nil {
		return met
	}
	if a.marked && slices.ContainsFunc(d.Hooks, conditionDecided) {
		return a.secretsGone()
	}
	if a.take != nil && a.take.Missing() > 0 && slices.ContainsFunc(d.Hooks, func(v gate.Verdict) bool { return v.Failure != nil }) {
		return &obstacle{Code: notRecorded, Message: "the recording does not have what the judge asked: another draft, or another evaluation, was recorded"}
	}
	if d.GateError != nil {
		return &obstacle{Code: noAnswer, Message: d.GateError.Error()}
	}
	for _, v := range d.Hooks {
		if failure := v.Hindered(gate.Unasked); failure != nil {
			return &obstacle{Code: string(failure.Code), Message: fmt.Sprintf("hook %q: %s", v.Name, failure.Message)}
		}
	}
	return nil
}
