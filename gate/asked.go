package gate

import "maps"

// Asked is what hooks were asked with that the request does not say, so that an
// evaluation can be made again as it was then.
type Asked struct {
	// Agent is whose hooks were to be asked, as the caller named it, where the
	// record has another: that of a sub-agent.
	Agent string `json:"agent,omitempty"`
	// The counts as hooks were told them; see [Counts].
	StopRejections   int    `json:"stop_rejections,omitempty"`
	PromptRejections int    `json:"prompt_rejections,omitempty"`
	Started          bool   `json:"started,omitempty"`
	LastAnswer       string `json:"last_answer,omitempty"`
	// Projects are where hooks found their scripts; nil: no hook started a process.
	Projects Projects `json:"projects,omitempty"`
	// Switched are the agent-level hooks that were switched in the session.
	Switched map[string]bool `json:"switched_hooks,omitempty"`
	// Transcript is how much of the conversation there was; nil: there was none
	// to be read, or the request holds it.
	Transcript *TranscriptMark `json:"transcript,omitempty"`
}

// Counts are those that hooks were told.
func (a *Asked) Counts() Counts {
	return Counts{StopRejections: a.StopRejections, PromptRejections: a.PromptRejections, Started: a.Started, LastAnswer: a.LastAnswer}
}

// TranscriptMark knows a conversation again that has grown since.
type TranscriptMark struct {
	// Session under which it was uploaded, where that is not the event's.
	Session string `json:"session,omitempty"`
	// Bytes of the file that were there, and the SHA-256 sum of the last 4 KiB of
	// them in hexadecimal digits.
	Bytes int64  `json:"bytes"`
	Tail  string `json:"tail"`
}

// ReadElsewhere is the session whose uploaded conversation the record's hooks read
// in the place of its own, and which their reasons may quote; empty: none.
func (r *Record) ReadElsewhere() string {
	if r.Asked == nil || r.Asked.Transcript == nil || r.Asked.Transcript.Session == r.Session {
		return ""
	}
	return r.Asked.Transcript.Session
}

// Marked may be implemented by a [Transcript] of a file that goes on growing.
type Marked interface {
	// Mark is how much of the file the transcript is; ok is false where it is of
	// no file that stays.
	Mark() (m TranscriptMark, ok bool)
}

// Marker may be implemented by [Transcripts]: it looks where the conversation of
// an event that no hook is about ends, without reading it.
type Marker interface {
	// Mark is nil where there is no conversation; an error means that it could not
	// be looked for.
	Mark(ev *Event) (*TranscriptMark, error)
}

// markUnread keeps where the conversation of a Stop ends that no hook is about:
// such Stops are what a new hook is tried on. Tool calls, which are many, are not
// slowed by it.
func (e *evaluation) markUnread() {
	marker, ok := e.gate.Transcripts.(Marker)
	if !ok || e.ev.Name.hookEvent() != Stop {
		return
	}
	m, err := marker.Mark(e.ev)
	if e.known = err == nil; m != nil {
		e.markAs(*m)
	}
}

// markRead keeps how much of the conversation hooks could read.
func (e *evaluation) markRead(t Transcript) {
	e.known = true
	if marked, ok := t.(Marked); ok && e.ev.InlineTranscript == nil { // which is in the payload
		if m, ok := marked.Mark(); ok {
			e.markAs(m)
		}
	}
}

func (e *evaluation) markAs(m TranscriptMark) {
	m.Session = e.ev.TranscriptSession
	e.mark = &m
}

// asked is for the record; nil where nobody looked.
func (e *evaluation) asked() *Asked {
	if !e.known {
		return nil
	}
	seen := e.seen.opened(e.ev)
	a := &Asked{StopRejections: seen.StopRejections, PromptRejections: seen.PromptRejections, Started: seen.Started,
		LastAnswer: seen.LastAnswer, Projects: e.ev.Projects, Switched: maps.Clone(e.switched), Transcript: e.mark}
	if e.agent != e.ev.Agent {
		a.Agent = e.agent
	}
	return a
}
