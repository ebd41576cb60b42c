package wire

import (
	"bytes"
	"encoding/json"
	"time"

	"stopgate/gate"
)

// Sought says where the answer under judgement is to be found when the payload
// of a Stop has none.
type Sought struct {
	// Path of the transcript, in the event's TranscriptFormat: its last
	// assistant message is the answer. Empty, and Session too: the host shows it
	// nowhere, the answer is unknown.
	Path string
	// Since, where it is not zero, is the moment of this Stop, in whole
	// milliseconds: the answer is complete only once the transcript holds a
	// `hook.start` record whose data.input.timestamp (milliseconds, or RFC
	// 3339) is this moment. It may be late by 60 to 80 ms (EFFECTS §2).
	Since time.Time
	// Within is how long to wait for that, and for the file to appear. After
	// it the answer is unknown: `transcript_unreadable`, never an empty answer
	// (spec/claude-code.md 10).
	Within time.Duration
	// Session under which the transcript was uploaded, in the place of a Path.
	Session string
}

// AnswerSought reports whether a Stop's FinalOutput is not what the agent
// answered but merely not in the payload, and where to look for it. A payload
// that says the answer is empty or null is believed.
func AnswerSought(ev gate.Event) (Sought, bool) {
	if ev.FinalOutput != "" || ev.Probe != "" || ev.Protocol == gate.Native || ev.Name != gate.Stop && ev.Name != gate.SubagentStop {
		return Sought{}, false
	}
	m, _ := object(ev.Payload)
	for _, key := range []string{"last_assistant_message", "prompt_response", "response"} {
		if m.has(key) {
			return Sought{}, false
		}
	}
	s := Sought{Path: ev.TranscriptPath, Session: ev.TranscriptSession}
	if ev.Protocol == copilotName && s != (Sought{}) {
		s.Since, s.Within = moment(m.raw("timestamp")), time.Second
	}
	return s, true
}

// moment reads a timestamp in either of Copilot's forms; zero if it is none.
func moment(raw json.RawMessage) time.Time {
	var ms int64
	if raw != nil && json.Unmarshal(raw, &ms) == nil {
		return time.UnixMilli(ms).UTC()
	}
	var t time.Time
	if raw == nil || json.Unmarshal(raw, &t) != nil {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// probeBytes is the most that is taken of a doctor's mark, which the answer
// repeats.
const probeBytes = 64

// probeMark is the mark of `stopgate doctor`, of hosts that write their payloads
// themselves: where the payload is what a model wrote, a mark in it is none.
func probeMark(m members) string {
	var mark string
	if json.Unmarshal(m.raw("stopgate_probe"), &mark) != nil {
		return ""
	}
	return cut(mark, probeBytes)
}

// background is the agent's tasks that still run while it wants to stop, as the
// host lists them (`background_tasks`, spec/claude-code.md 11); nil: none.
func background(m members, ev *gate.Event) []json.RawMessage {
	const most = 1000 // more than any host runs
	var running []json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(m.raw("background_tasks")))
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return nil
	}
	for range most {
		var t json.RawMessage
		if !dec.More() || dec.Decode(&t) != nil {
			break
		}
		var task members
		if json.Unmarshal(t, &task) != nil {
			continue
		}
		if id := task.text("id"); ev.Name == gate.SubagentStop && id != "" && id == ev.SubAgent {
			continue // the sub-agent that is about to stop lists itself
		}
		switch task.text("status") {
		case "completed", "failed", "cancelled", "killed", "stopped":
		default:
			running = append(running, t)
		}
	}
	return running
}
