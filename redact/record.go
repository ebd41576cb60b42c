package redact

import (
	"slices"

	"stopgate/gate"
	"stopgate/internal/jsonscan"
)

// Record is the record, redacted: payload, reasons, contexts, messages, failures
// and evidence. Names and ids stay. rec itself is not changed.
func (r *Redactor) Record(rec gate.Record) gate.Record {
	rec = r.told(rec)
	rec.Payload = r.JSON(rec.Payload)
	for i := range rec.Hooks {
		rec.Hooks[i].Evidence = r.evidence(rec.Hooks[i].Evidence)
	}
	return rec
}

// told redacts what the agent is told, and leaves payload and evidence. The hooks
// of the record are its own.
func (r *Redactor) told(rec gate.Record) gate.Record {
	rec.Reason, rec.AdditionalContext = r.Text(rec.Reason), r.Text(rec.AdditionalContext)
	rec.GateError = r.failure(rec.GateError)
	rec.Messages = slices.Clone(rec.Messages)
	for i := range rec.Messages {
		rec.Messages[i].Content = r.Text(rec.Messages[i].Content)
	}
	rec.Hooks = slices.Clone(rec.Hooks)
	for i := range rec.Hooks {
		v := &rec.Hooks[i]
		v.Reason, v.AdditionalContext, v.Failure = r.Text(v.Reason), r.Text(v.AdditionalContext), r.failure(v.Failure)
	}
	return rec
}

func (r *Redactor) failure(f *gate.Failure) *gate.Failure {
	if f == nil {
		return nil
	}
	return &gate.Failure{Code: f.Code, Message: r.Text(f.Message)}
}

func (r *Redactor) evidence(e *gate.Evidence) *gate.Evidence {
	if e == nil {
		return nil
	}
	c := *e
	c.Stdout, c.Stderr = r.maybeJSON(e.Stdout), r.maybeJSON(e.Stderr)
	if m := e.Missing; m != nil {
		c.Missing = &gate.Unseen{Path: r.Text(m.Path), Said: r.Text(m.Said), Why: r.Text(m.Why)}
	}
	c.Steps = slices.Clone(e.Steps)
	for i := range c.Steps {
		s := &c.Steps[i]
		s.Input, s.Text = r.maybeJSON(s.Input), r.maybeJSON(s.Text)
	}
	c.Quotes = slices.Clone(e.Quotes)
	for i := range c.Quotes {
		c.Quotes[i].Quote = r.Text(c.Quotes[i].Quote)
	}
	return &c
}

// maybeJSON redacts a text that programs may want to read as JSON.
func (r *Redactor) maybeJSON(text string) string {
	if text != "" && (text[0] == '{' || text[0] == '[') && jsonscan.Valid([]byte(text)) {
		return string(r.JSON([]byte(text)))
	}
	return r.Text(text)
}

func (r *Redactor) summary(s gate.RecordSummary) gate.RecordSummary {
	s.Reason = r.Text(s.Reason)
	s.GateError = r.failure(s.GateError)
	return s
}
