package config

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"stopgate/gate"
)

// DefaultCaseTimeout is how long a case may take that says nothing else: twice
// what a hook has that says nothing else.
const DefaultCaseTimeout = 2 * gate.DefaultTimeout

// TestFile is a file of `stopgate test`, as [ReadTestFile] read it. Paths in it
// are relative to its own directory.
type TestFile struct {
	Path       string
	Specs      []Named  // the files that hold the hooks; none: the one of the same name
	Agent      string   // of events that name none; empty: the only one of the files
	AllowHosts []string // hosts that http hooks of claude-code may reach
	Cases      []TestCase
}

// Place is where something stands in a file; both count from 1.
type Place struct{ Line, Column int }

// Named is a file's name, and where it is named.
type Named struct {
	Place
	Name string
}

// TestCase is one case: events in a row, and what must come of them.
type TestCase struct {
	Place
	Name    string
	Timeout time.Duration
	Events  []TestEvent
	// Series: the events were written as such, so that those without a session
	// belong to one.
	Series bool
	// Files are what lies in the working directory of the events at first, by
	// path; nil: the events have the working directory that they name.
	Files map[string]string
	// Counts says how many of the events came to which outcome; those that are
	// not named are not looked at.
	Counts map[gate.Outcome]int
	// Left says what lies in the working directory at the end; a nil text: nothing.
	Left map[string]*Text
}

// TestEvent is one event of a case, what answers there are to it, and what must
// come out.
type TestEvent struct {
	Place
	Event     json.RawMessage // as it was written; nil: EventFile has it
	EventFile Named           // an event, or a record as GET /v1/evaluations/{id} has it
	Protocol  string          // how the event is written; empty: native, or the record's own

	// Active are the hooks on demand that the session has switched on; nil: all are.
	Active []string

	Transcript     json.RawMessage // a string, or an array of messages; nil: not given
	TranscriptFile Named

	// Model has the scripted answers of models, by the name of the hook that
	// asks; those under "" are for whatever hook has none of its own.
	Model     map[string][]ModelAnswer
	Recording Named // directory of recorded answers
	Take      string

	HTTP []HTTPAnswer
	Want Want
}

// ModelAnswer is one scripted answer of a model: a text, tool calls, or neither.
type ModelAnswer struct {
	Text  string
	Calls []ModelCall
	// Failure is why there is no answer: one of model_unavailable,
	// model_rate_limited, model_refused, model_truncated.
	Failure gate.FailureCode
}

// ModelCall is one tool call of a scripted model.
type ModelCall struct {
	Name string
	Args json.RawMessage
}

// HTTPAnswer is one scripted answer to an http hook.
type HTTPAnswer struct {
	URL     string // only to requests of this URL; empty: to any
	Status  int
	Headers map[string]string
	Body    string
}

// Want is what must come of one event. What is nil is not looked at.
type Want struct {
	Place
	Decision           gate.Outcome
	Reason, Context    *Text
	Forced, Degraded   *bool
	StopHookActive     *bool
	StopRejectionCount *int
	Hooks              map[string]HookWant // all that took part
	Notes              []gate.Note         // of all hooks together, in any order
	Errors             []gate.FailureCode  // of all hooks together, in any order
	Requests           []RequestWant       // of all http hooks, in any order
}

// HookWant is what one hook must have come to.
type HookWant struct {
	Outcome         gate.Outcome
	Reason, Context *Text
	Notes           []gate.Note
	Error           gate.FailureCode // empty: not looked at
}

// RequestWant is one request of an http hook. Of Body every member must be
// there; members that it does not name are not looked at.
type RequestWant struct {
	URL     string
	Headers map[string]string
	Body    json.RawMessage
}

// Text is what a text must be: itself, but for white space round it, or
// something in it, or what a pattern finds.
type Text struct {
	is, contains string
	matches      *regexp.Regexp
	form         string // is, contains or matches
}

// Exactly is the [Text] that is s.
func Exactly(s string) *Text { return &Text{form: "is", is: s} }

// Fits reports whether a text is as it must be.
func (t *Text) Fits(text string) bool {
	switch t.form {
	case "contains":
		return strings.Contains(text, t.contains)
	case "matches":
		return t.matches.MatchString(text)
	}
	return strings.TrimSpace(text) == strings.TrimSpace(t.is)
}

// Is is the whole text, if that is what is wanted.
func (t *Text) Is() (text string, ok bool) { return t.is, t.form == "is" }

// String says what is wanted, for "want …".
func (t *Text) String() string {
	switch t.form {
	case "contains":
		return "a text that contains " + quoted(t.contains)
	case "matches":
		return "a text that matches " + quoted(t.matches.String())
	}
	return quoted(t.is)
}

// IsTestFile reports whether a file's name is that of a test file, which holds
// no specs.
func IsTestFile(name string) bool {
	return strings.HasSuffix(name, ".test.yaml") || strings.HasSuffix(name, ".test.yml")
}
