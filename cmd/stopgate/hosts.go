package main

import (
	"context"
	"errors"

	"stopgate/gate"
	"stopgate/server"
	"stopgate/wire"
)

// hostProtocol shows a protocol of package wire to the server.
type hostProtocol struct{ wire.Protocol }

func findProtocol(name string) (server.HostProtocol, bool) {
	p, ok := wire.Find(name)
	return hostProtocol{p}, ok
}

// Decode reads a host's payload.
func (p hostProtocol) Decode(payload []byte, q server.HostQuery) (gate.Event, error) {
	return p.Protocol.Decode(payload, wire.Options{Agent: q.Agent, Event: q.Event, Session: q.Session, Tool: q.Tool, Cwd: q.Cwd, Project: q.Project,
		Transcript: q.Transcript, Stale: q.Stale, Unattended: q.Unattended, UserAgent: q.UserAgent})
}

// Encode writes the host's own answer.
func (p hostProtocol) Encode(ev gate.Event, d gate.Decision) ([]byte, string) {
	a := p.Protocol.Encode(ev, d)
	return a.Body, a.ContentType
}

// findAnswer looks for the answer of a Stop in the host's transcript where the
// payload has none (spec/claude-code.md 10). What is not found is unknown,
// never empty.
func (a *app) findAnswer(ctx context.Context, ev *gate.Event) {
	sought, missing := wire.AnswerSought(*ev)
	if !missing {
		return
	}
	err := errors.New("the host does not show it")
	switch {
	case sought.Session != "":
		ev.FinalOutput, err = a.transcripts.UploadedAnswer(ctx, sought.Session, sought.Since)
	case sought.Path != "":
		ev.FinalOutput, err = a.transcripts.Answer(ctx, sought.Path, ev.TranscriptFormat, sought.Since, sought.Within)
	}
	ev.AnswerUnknown = err != nil
}
