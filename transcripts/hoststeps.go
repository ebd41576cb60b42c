package transcripts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// step is one thing that happens in a conversation, whatever host wrote it down.
type step struct {
	kind    stepKind
	role    string // says, shows, calls: who
	message string // says, shows: id of the message; those that share it are one
	text    string // says, results
	shown   string // shows: what it is
	toolCall
	failed bool // results: the call failed
	again  bool // results: a copy of what the host may have written before
}

type stepKind int

const (
	says    stepKind = iota // text
	shows                   // an image, a file
	calls                   // a tool
	results                 // what a tool gave; ID, and Name if the host says it
	hears                   // the host's own words in the user's place: not shown
)

const (
	user      = "user"
	assistant = "assistant"
)

// rendering appends steps to a view, with one marker per message.
type rendering struct {
	open  string // id of the message that the last line belongs to
	role  string // its role
	calls map[string]pendingCall
}

type pendingCall struct {
	name     string
	answered bool
}

func (r *rendering) append(b []byte, s step) []byte {
	switch s.kind {
	case says, shows:
		if s.message == "" || s.message != r.open || s.role != r.role {
			b = appendMark(b, label(s.role))
		}
		r.open, r.role = s.message, s.role
		if s.kind == shows {
			return append(b, notShown(s.shown)+"\n"...)
		}
		return appendText(b, s.text, "")
	case calls:
		r.open = ""
		r.remember(s.ID, s.name())
		return appendCall(b, s.role, s.toolCall)
	case results:
		r.open = ""
		return r.appendResult(b, s)
	}
	return b
}

func (r *rendering) appendResult(b []byte, s step) []byte {
	name := s.Name
	if c, known := r.calls[s.ID]; known {
		if s.again && c.answered {
			return b
		}
		c.answered = true
		r.calls[s.ID] = c
		if name == "" {
			name = c.name
		}
	}
	failed := ""
	if s.failed {
		failed = "failed"
	}
	b = appendMark(b, "tool", optional(name), inBrackets(s.ID), failed)
	return appendText(b, cutResult(spread(s.text)), "")
}

// remember keeps a call until its result comes. Results follow soon, so that
// all are forgotten when there are too many.
func (r *rendering) remember(id, name string) {
	const most = 1000
	if id == "" {
		return
	}
	if len(r.calls) >= most || r.calls == nil {
		r.calls = map[string]pendingCall{}
	}
	r.calls[strings.Clone(id)] = pendingCall{name: label(name)}
}

func notShown(what string) string { return "[" + label(what) + " part, not shown]" }

// What is shown of a tool's result: the most that Claude Code, by default, shows
// its own model of a command's output, and a little. The end counts as well:
// that is where tests say how they went.
const (
	resultHead = 24 << 10
	resultTail = 8 << 10
)

// cutResult is the text with its middle left out if it is longer than
// resultHead and resultTail together, and a line that says so.
func cutResult(text string) string {
	if len(text) <= resultHead+resultTail {
		return text
	}
	head, tail := resultHead, len(text)-resultTail
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[… %d of the result's %d bytes left out …]\n%s", text[:head], tail-head, len(text), text[tail:])
}

// spread is a result that is a JSON object or array with one field a line, so
// that a search hits the field and not the whole; any other text as it is.
func spread(text string) string {
	const most, deep = 256 << 10, 32 // so that what comes of it is bounded too
	trimmed := strings.TrimSpace(text)
	if len(trimmed) > most || len(trimmed) < 2 || trimmed[0] != '{' && trimmed[0] != '[' || nesting(trimmed) > deep {
		return text
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(trimmed), "", " ") != nil {
		return text
	}
	return b.String()
}

// nesting is how deep the brackets of a JSON text go, those in strings counted
// too.
func nesting(text string) int {
	depth, deepest := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// resultText is a tool's result as text: a string, an array of parts, or any
// other value as its JSON.
func resultText(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return string(compactJSON(raw))
	}
	lines := make([]string, len(parts))
	for i, p := range parts {
		lines[i] = partText(p)
	}
	return strings.Join(lines, "\n")
}

func partText(raw json.RawMessage) string {
	var p struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	var text string
	switch {
	case json.Unmarshal(raw, &text) == nil:
		return text
	case json.Unmarshal(raw, &p) != nil:
		return string(compactJSON(raw))
	case p.Text != nil:
		return *p.Text
	case p.Type != "":
		return notShown(p.Type)
	}
	return string(compactJSON(raw))
}
