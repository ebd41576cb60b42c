package install

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"stopgate/gate"
)

const axCode = "ax-code"

// axCodeTime is what AX Code gives every hook; it cannot be set
// (spec/ax-code.md 9).
const axCodeTime = 30 * time.Second

// What AX Code does that people do not expect (spec/ax-code.md 1, 17, 21).
const (
	axCodeTrust = "AX Code ignores a project's hooks without AX_CODE_TRUST_PROJECT_CONFIG=1"
	axCodeStop  = "AX Code only watches Stop: the gate judges it and records the verdict, and cannot hold the agent there"
	axCodeKey   = "AX Code keeps STOPGATE_API_KEY from hooks, as whatever looks like a secret, unless it is started with AX_CODE_HOOKS_FULL_ENV=1"
)

// answersBy is the protocol that an entry has to name so that its answer is
// read; empty where the host reads none (spec/ax-code.md 24).
func (h Host) answersBy(event string) string {
	c, ok := h.Contract.Find(event)
	if !h.layout.flat || !ok || c.Answers.Block == "" {
		return ""
	}
	return "claude-code"
}

// flat are our entries where "hooks" is one list.
func (h Host) flat(d *document, value *hujson.Value) ([]Entry, error) {
	list, ok := value.Value.(*hujson.Array)
	if !ok {
		return nil, fmt.Errorf("%d:1: \"hooks\" is not a list, so %s reads no hook in it", d.line(value), h.Contract.Program)
	}
	var entries []Entry
	for i := range list.Elements {
		o, ok := list.Elements[i].Value.(*hujson.Object)
		if !ok {
			continue
		}
		if e, ours := h.flatEntry(o); ours {
			e.Line = d.line(&list.Elements[i])
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// flatEntry reads a hook that names its event; false: it is none of ours.
func (h Host) flatEntry(o *hujson.Object) (Entry, bool) {
	e := Entry{Event: text(o, "event"), Matcher: text(o, "matcher"), Command: text(o, "command"), Timeout: axCodeTime}
	e.unread = text(o, "protocol") != h.answersBy(e.Event) && h.answersBy(e.Event) != ""
	return e, e.readCommand(h.is)
}

// axCodeOff: what of the environment keeps AX Code from running the entries,
// and what it never does.
func axCodeOff(s switches) []Problem {
	if len(s.entries) == 0 {
		return nil
	}
	problems := []Problem{{Severity: gate.SeverityWarning, Text: axCodeStop, Do: "gate its tool calls, and read the verdicts on Stop in the record"}}
	if s.places.Getenv("AX_CODE_TRUST_PROJECT_CONFIG") != "1" {
		problems = append(problems, fails("start ax-code with AX_CODE_TRUST_PROJECT_CONFIG=1 in its environment, and doctor too", "%s, and it is not set here", axCodeTrust))
	}
	full := slices.Contains([]string{"true", "1", "yes", "on"}, strings.ToLower(s.places.Getenv("AX_CODE_HOOKS_FULL_ENV")))
	if s.places.Getenv("STOPGATE_API_KEY") != "" && !full {
		problems = append(problems, fails("start ax-code with AX_CODE_HOOKS_FULL_ENV=1, or use a server on this machine that needs no key", "%s, and it is not set here", axCodeKey))
	}
	return problems
}
