package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stopgate/gate"
	"stopgate/redact"
	"stopgate/wire"
)

// decodeFile is the event of an event_file: an event, or a recorded evaluation.
func (s *suite) decodeFile(data []byte, protocol string) (gate.Event, error) {
	fields := members(data)
	switch {
	case fields == nil:
		return gate.Event{}, errors.New("is no JSON object, want an event or a recorded evaluation")
	case fields["evaluation_id"] != nil:
		return s.decodeRecord(data)
	case fields["hook_event_name"] == nil && fields["value"] != nil && fields["next"] != nil:
		return gate.Event{}, errors.New("is a list of evaluations, want one as GET /v1/evaluations/ID gives it")
	}
	if e := answeredError(fields["error"]); e != nil && fields["hook_event_name"] == nil {
		return gate.Event{}, fmt.Errorf("is a server's error and no evaluation: %s: %.200s; curl -sf writes none", e.Code, e.Message)
	}
	return s.decodeEvent(data, protocol)
}

// answeredError is the error of an answer's body (DESIGN §5); nil: it is none.
func answeredError(body json.RawMessage) *gate.Error {
	var e gate.Error
	if ok := json.Unmarshal(body, &e) == nil && e.Code != ""; ok {
		return &e
	}
	return nil
}

// placesOfThen are the members of a payload that name a place on the machine of then.
var placesOfThen = []string{"execution_summary", "transcript_path", "agent_transcript_path", "cwd"}

// decodeRecord is the event of a recorded evaluation, as it was asked, by the
// agent under test. What only the machine of then has, it does not name: where its
// conversation lay, and in which directory the agent worked. Nor is it asked about
// with marks in the place of its secrets: a hook that looks for a token would let
// pass what it had blocked.
func (s *suite) decodeRecord(data []byte) (gate.Event, error) {
	var r gate.Record
	if err := json.Unmarshal(data, &r); err != nil {
		return gate.Event{}, fmt.Errorf("recorded evaluation cannot be read: %w", err)
	}
	fields := members(r.Payload)
	if fields == nil {
		return gate.Event{}, errors.New("recorded evaluation has no payload that is a JSON object")
	}
	if redact.Marked(r.Payload) {
		return gate.Event{}, errors.New("secrets were taken out of its payload when it was stored, and hooks would be asked about the marks: " +
			"put a made-up value of the same form in the place of each [redacted:…]")
	}
	native := r.Protocol == "" || r.Protocol == gate.Native
	if native && !slices.Contains(agentNames(s.specs), r.Agent) {
		delete(fields, "agent_name")
	}
	for _, name := range placesOfThen { // hooks of claude-code get what its payload has
		delete(fields, name)
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return gate.Event{}, err
	}
	var ev gate.Event
	if !native {
		ev, err = s.decodeHost(r.Protocol, body, wire.Options{Event: hostEvent(r), Tool: r.Tool, Session: r.Session})
	} else if body, err = s.withAgent(body); err == nil {
		ev, err = wire.DecodeNative(body)
	}
	ev.TranscriptPath, ev.Cwd = "", "" // of hosts that call them otherwise
	return ev, err
}

// formatOf is how a conversation's file is to be read for an event of a host: as one of
// the host's session files, unless it is text, or messages {role, content}, of which
// no host's file is made.
func formatOf(file []byte, host string) string {
	first := file
	for line := range bytes.Lines(file) {
		if first = bytes.TrimSpace(line); len(first) > 0 {
			break
		}
	}
	if strings.HasPrefix(string(first), "{") && memberText(first, "role") == "" {
		return host
	}
	return ""
}
