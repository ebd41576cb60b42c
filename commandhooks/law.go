package commandhooks

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"stopgate/gate"
)

// ending is how a hook's main process ended and what it said.
type ending struct {
	timedOut bool          // killed because its time was up
	cutShort bool          // … though that was not its own time, but the gate's
	after    time.Duration // how long it ran
	// overMemory is the limit in bytes that all its processes together passed,
	// for which it was killed; 0: they did not.
	overMemory int64
	signal     string // name of the signal that ended it; empty: it exited
	code       int    // exit code, when it exited by itself
	// unsure: the sandbox reports a death by signal as the exit code 128 + n,
	// as a shell does, so that signal may be a code of the script's own.
	unsure         bool
	lost           bool // it was not shown its transcript
	stdout, stderr text
	// lacked is what it did not find by the gate's doing; nil: it found everything, or
	// that is its own fault.
	lacked *lack
}

// text is what was kept of one stream.
type text struct {
	kept []byte
	cut  bool // there was more
}

// judge reads an ending by the law of the hook's dialect. It is a function of
// values.
func judge(h *gate.Hook, event gate.EventName, e ending) gate.Verdict {
	v := e.lacked.settled(h, e.verdict(h, event))
	if e.lost {
		v.Notes = append(v.Notes, gate.TranscriptLost)
	}
	v.Evidence = e.evidence()
	return v
}

func (e ending) verdict(h *gate.Hook, event gate.EventName) gate.Verdict {
	switch h.Dialect { // to whom no end is like another
	case gate.AXCode:
		return e.axCodeVerdict(h)
	case gate.ClaudeCode:
		return e.claudeCode(h.Event)
	}
	if v, ended := e.ended(); !ended {
		return v
	}
	if h.Dialect == gate.Antigravity {
		return e.antigravity(event)
	}
	return e.azure(event)
}

// ended reports whether the hook ended by itself; if not, why not.
func (e ending) ended() (gate.Verdict, bool) {
	switch {
	case e.timedOut:
		return noVerdict(gate.Timeout, "the hook did not end in time and was killed after %s", e.after.Round(time.Millisecond)), false
	case e.overMemory > 0:
		return noVerdict(gate.Signalled, "the hook passed its memory limit of %d MiB, all its processes taken together, and was killed%s", e.overMemory>>20, e.lastWords()), false
	case e.signal != "" && e.unsure:
		return noVerdict(gate.Signalled, "the hook was ended by %s, or exited with %d itself%s", e.signal, e.code, e.lastWords()), false
	case e.signal != "":
		return noVerdict(gate.Signalled, "the hook was ended by %s%s", e.signal, e.lastWords()), false
	}
	return gate.Verdict{}, true
}

// azure is the exit-code law of spec/azure.md 41.
func (e ending) azure(event gate.EventName) gate.Verdict {
	switch {
	case e.code == 2:
		// Always a block: what stands on standard output cannot soften it.
		return gate.Verdict{Outcome: gate.Block, Reason: strings.TrimSpace(clean(e.stderr.kept))}
	case e.code != 0:
		return noVerdict(gate.NonzeroExit, "the hook exited with %d%s", e.code, e.lastWords())
	case e.stdout.cut:
		return noVerdict(gate.OutputTooLarge, "the hook wrote more than %d bytes to standard output", keepBytes)
	}
	answer := bytes.TrimSpace(e.stdout.kept)
	if len(answer) == 0 {
		return gate.Verdict{Outcome: gate.Allow}
	}
	v, err := gate.ReadAnswer(event, answer)
	if err != nil {
		return noVerdict(gate.BadOutput, "standard output is no answer: %v: %q", err, head(clean(answer), 80))
	}
	return v
}

// evidence keeps what the hook said, whatever it came to: standard error of a
// hook that exits 0 is here and nowhere else (spec/azure.md 44).
func (e ending) evidence() *gate.Evidence {
	ev := &gate.Evidence{Signal: e.signal, Stdout: gate.CutEvidence(clean(e.stdout.kept)), Stderr: gate.CutEvidence(clean(e.stderr.kept))}
	if !e.timedOut && (e.signal == "" || e.unsure) {
		ev.ExitCode = &e.code
	}
	if e.lacked != nil {
		ev.Missing = &e.lacked.Unseen
	}
	return ev
}

// lastWords is the line of standard error that says what went wrong: the last,
// which is where shells and Python say it, or the first that speaks of an error,
// where where it happened stands behind it, as of node and Ruby.
func (e ending) lastWords() string {
	said := strings.TrimSpace(clean(e.stderr.kept))
	line := strings.TrimSpace(said[strings.LastIndexByte(said, '\n')+1:])
	if behind.MatchString(line) {
		line = cmp.Or(strings.TrimSpace(speaksOfError.FindString(said)), line)
	}
	if line == "" {
		return ""
	}
	return ": " + head(line, 200)
}

var (
	behind        = regexp.MustCompile(`^(?:Node\.js v\d|at |from |thrown in )`)
	speaksOfError = regexp.MustCompile(`(?m)^.*(?:\w*(?:Error|Exception)\b(?: \[\w+\])?:|\(\w*Error\)|\bException in ).*$`)
)

// clean makes text of hostile bytes: records and answers are UTF-8.
func clean(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// head is the first n characters of s.
func head(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return fmt.Sprintf("%.*s…", n, s)
}
