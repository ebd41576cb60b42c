package install

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"stopgate/gate"
)

// Problem is something that keeps a gate from gating, or may.
type Problem struct {
	Severity gate.Severity
	Text     string // what is wrong
	Do       string // what to do about it
	Line     int    // in the file it is about, from 1; 0: nowhere in particular
}

// Found are the entries of stopgate in a host's file, and what is wrong with
// them there: a key that is no event of the host's, an http hook that the host
// does not call, a matcher, a timeout or a URL that keeps it from working, a
// key under "hooks" that is no event at all. The error says where the file
// cannot be read, as line:column.
func (h Host) Found(content []byte) ([]Entry, []Problem, error) {
	d, err := parse(content)
	if err != nil {
		return nil, nil, err
	}
	entries, problems, err := h.look(d)
	if err != nil {
		return nil, nil, err
	}
	for i, e := range entries {
		problems = append(problems, h.judge(e)...)
		if slices.ContainsFunc(entries[:i], func(o Entry) bool { return o.Event == e.Event }) {
			problems = append(problems, e.warns("the gate is asked twice on "+e.Event+", and a rejection counts twice", "run stopgate init "+h.Name+" again: it leaves one entry an event"))
		}
	}
	return entries, problems, nil
}

// look finds our entries, and what of "hooks" no host reads as hooks.
func (h Host) look(d *document) ([]Entry, []Problem, error) {
	i, err := find(d.object(), "hooks")
	if err != nil {
		return nil, nil, fmt.Errorf("1:1: %w", err)
	}
	if i < 0 {
		return nil, nil, nil
	}
	value := &d.object().Members[i].Value
	if h.layout.flat {
		entries, err := h.flat(d, value)
		return entries, nil, err
	}
	hooks, ok := value.Value.(*hujson.Object)
	if !ok {
		return nil, nil, fmt.Errorf("%d:1: \"hooks\" is not an object, so %s reads no hook in it", d.line(value), h.Contract.Program)
	}
	var entries []Entry
	var problems []Problem
	for j := range hooks.Members {
		m := &hooks.Members[j]
		event := nameOf(m)
		if k, err := find(hooks, event); err != nil || k != j {
			return nil, nil, fmt.Errorf("%d:1: hooks: %w", d.line(&m.Name), err)
		}
		list, ok := m.Value.Value.(*hujson.Array)
		if !ok || slices.ContainsFunc(list.Elements, func(v hujson.Value) bool { return v.Value.Kind() != '{' }) {
			problems = append(problems, Problem{gate.SeverityWarning, fmt.Sprintf("%q under \"hooks\" is no list of hooks", event),
				"take it out: switches do not belong there, and some versions refuse the file for it", d.line(&m.Name)}) // fault gx-004
		}
		if ok {
			entries = append(entries, h.listed(d, event, list)...)
		}
	}
	return entries, problems, nil
}

// listed are our entries in an event's list.
func (h Host) listed(d *document, event string, list *hujson.Array) []Entry {
	var entries []Entry
	take := func(v *hujson.Value, matcher string) {
		if o, ok := v.Value.(*hujson.Object); ok {
			if e, ours := h.entry(o); ours {
				e.Event, e.Matcher, e.Line = event, matcher, d.line(v)
				entries = append(entries, e)
			}
		}
	}
	for i := range list.Elements {
		if !h.layout.grouped {
			if o, ok := list.Elements[i].Value.(*hujson.Object); ok {
				take(&list.Elements[i], text(o, "matcher"))
			}
			continue
		}
		hooks, matcher := group(&list.Elements[i])
		if hooks == nil {
			continue
		}
		for j := range hooks.Elements {
			take(&hooks.Elements[j], matcher)
		}
	}
	return entries
}

// group is a group's hooks and its matcher; nil: it is none.
func group(v *hujson.Value) (hooks *hujson.Array, matcher string) {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, ""
	}
	i, err := find(o, "hooks")
	if err != nil || i < 0 {
		return nil, ""
	}
	hooks, _ = o.Members[i].Value.Value.(*hujson.Array)
	return hooks, text(o, "matcher")
}

// entry reads a hook; false: it is none of ours.
func (h Host) entry(o *hujson.Object) (Entry, bool) {
	if h.layout.flat {
		return h.flatEntry(o)
	}
	e := Entry{bends: bends(o)}
	switch text(o, "type") {
	case "http":
		e.URL = text(o, "url")
		e.Timeout = h.readTimeout(number(o, h.layout.timeout), true)
		return e, e.readURL(h.is)
	case "command", "":
		if e.Command = text(o, h.layout.command); e.Command == "" {
			e.Command = text(o, "command")
		}
		e.Timeout = h.readTimeout(number(o, h.layout.timeout), false)
		return e, e.readCommand(h.is)
	}
	return e, false
}

// bends are the keys of a hook, other than init's, that decide how it is run:
// they are Claude Code's (spec/claude-code.md 1), and hosts take after it.
func bends(o *hujson.Object) []string {
	var keys []string
	for _, key := range []string{"async", "if", "args"} {
		i, err := find(o, key)
		if err != nil || i >= 0 && !void(o.Members[i].Value.Value) {
			keys = append(keys, key)
		}
	}
	return keys
}

// void: a value that asks for nothing.
func void(v hujson.ValueTrimmed) bool {
	l, ok := v.(hujson.Literal)
	return ok && (l.Kind() == 'n' || l.Kind() == 'f' || l.Kind() == '"' && l.String() == "")
}

// bent says what each of those keys does to a gate.
var bent = map[string]string{
	"async": "a host that runs a hook in the background does not wait for its answer",
	"if":    "a host that reads the condition asks the gate only where it holds; the agent's own hooks have matchers for that",
	"args":  "a host that is given arguments starts the command as one program, without a shell",
}

func (e Entry) warns(text, do string) Problem {
	return Problem{gate.SeverityWarning, text, do, e.Line}
}

func (e Entry) fails(text, do string) Problem {
	return Problem{gate.SeverityError, text, do, e.Line}
}

// judge says what is wrong with one entry of ours where it stands.
func (h Host) judge(e Entry) []Problem {
	again := "run stopgate init " + h.Name + " again"
	program := h.Contract.Program
	var problems []Problem
	add := func(p Problem) { problems = append(problems, p) }
	event, known := h.Contract.Find(e.Event)
	switch {
	case !known: // a misspelt key, or an event that nothing can be blocked on (fault gx-090)
		var want []string
		for _, c := range h.events() {
			want = append(want, c.Host)
		}
		add(e.fails(fmt.Sprintf("%s asks no gate on %q: the events are %s", program, e.Event, strings.Join(want, ", ")), again))
		return problems
	case e.HTTP() && !event.HTTP:
		add(e.fails(program+" never calls an http hook on "+e.Event, again+": it writes a command there"))
	case h.Name == "claude-code" && strings.Contains(e.URL, "$"): // fault http-03
		add(e.fails("variables in a URL are not expanded: "+e.URL, again+": it writes a literal URL"))
	}
	if e.unread {
		add(e.fails(fmt.Sprintf("%s reads no answer of the entry on %s: \"protocol\": %q is missing", program, e.Event, h.answersBy(e.Event)), again))
	}
	if e.Matcher != "" && !event.Name.ForTool() { // fault gx-003
		add(e.warns(fmt.Sprintf("%s has no tool, and matcher %q has kept hooks from running there", e.Event, e.Matcher), again+": it writes none"))
	}
	for _, key := range e.bends {
		add(e.fails(fmt.Sprintf("the entry on %s sets %q: %s", e.Event, key, bent[key]), "take "+key+" out of it, or "+again))
	}
	switch {
	case e.Timeout > 0 && e.Timeout < time.Second: // fault gx-030
		add(e.fails(fmt.Sprintf("%s gives the hook %s: the number is in %s there", program, e.Timeout, unitName(h.timeoutUnit(e.HTTP()))), again))
	case e.Timeout > 0 && e.Timeout <= e.Deadline:
		add(e.warns(fmt.Sprintf("%s gives the hook %s, the gate answers within %s: a slow judge is not waited for", program, e.Timeout, e.Deadline), "raise the timeout above the deadline"))
	}
	return problems
}

func unitName(unit time.Duration) string {
	if unit == time.Millisecond {
		return "milliseconds"
	}
	return "seconds"
}

// Missing says which entries a gate cannot do without, given all of a host's.
func (h Host) Missing(entries []Entry) []Problem {
	var problems []Problem
	for _, need := range []struct {
		event    gate.EventName
		severity gate.Severity
		text     string
	}{
		{gate.Stop, gate.SeverityError, "no entry on %s: nothing asks the gate when the agent wants to stop"},
		{gate.UserPromptSubmit, gate.SeverityWarning, "no entry on %s: the gate does not hear when the user speaks, so the counts of rejections are not reset"},
	} {
		has := func(e Entry) bool {
			event, ok := h.Contract.Find(e.Event)
			return ok && event.Name == need.event
		}
		// What a host only watches, as AX Code Stop, needs no gate.
		if event, ok := h.Event(need.event); ok && event.Answers.Block != "" && !slices.ContainsFunc(entries, has) {
			problems = append(problems, Problem{Severity: need.severity, Text: fmt.Sprintf(need.text, event.Host), Do: "run stopgate init " + h.Name})
		}
	}
	return problems
}
