package main

import (
	"cmp"
	"errors"
	"fmt"

	"stopgate/gate"
	"stopgate/wire"
)

// recordedEvent is the event of a record, as its caller's protocol has it, with as
// much of the conversation as there was.
func recordedEvent(r gate.Record) (ev gate.Event, err error) {
	if members(r.Payload) == nil {
		return ev, errors.New("its payload is no JSON object")
	}
	asked := r.Asked
	if asked == nil {
		asked = &gate.Asked{}
	}
	protocol, known := wire.Find(cmp.Or(r.Protocol, gate.Native))
	if !known {
		return ev, fmt.Errorf("its protocol %.60q is unknown", r.Protocol)
	}
	opt := wire.Options{Agent: cmp.Or(asked.Agent, r.Agent), Event: hostEvent(r), Tool: r.Tool, Session: r.Session}
	if asked.Transcript != nil {
		opt.Transcript = asked.Transcript.Session
	}
	ev, err = protocol.Decode(r.Payload, opt)
	if err == nil && ev.Name != r.Event {
		err = fmt.Errorf("its payload is about %.60q, and it is recorded as %.60q", ev.Name, r.Event)
	}
	ev.Projects = asked.Projects
	ev.TranscriptMark, ev.HostVersion = asked.Transcript, cmp.Or(ev.HostVersion, gate.PlainVersion(r.HostVersion))
	return ev, err
}

// hostEvent is what a host calls a recorded event, where its payload does not say.
func hostEvent(r gate.Record) string {
	if r.Event == gate.Start && r.Protocol != gate.Native {
		return "SessionStart"
	}
	if r.Protocol == string(gate.Antigravity) {
		return map[gate.EventName]string{gate.PreToolUse: "pre_tool_execution", gate.PostToolUse: "post_tool_execution"}[r.Event]
	}
	return string(r.Event)
}
