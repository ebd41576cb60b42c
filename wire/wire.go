// Package wire speaks the protocols of agent hosts: one file a protocol, each
// a Decode from the host's bytes to a [gate.Event] and an Encode from a
// [gate.Decision] to the host's bytes, both functions of values:
//
//	p, _ := wire.Find("claude-code")
//	ev, err := p.Decode(payload, wire.Options{Agent: "marker"})
//	answer := p.Encode(ev, decision)
//
// Hosts are read leniently: unknown fields are ignored here and kept in the
// record, a field of the wrong type is taken as text or as absent, and bytes
// that are not UTF-8 are replaced. Hosts are answered exactly: only the keys
// that were seen to work in that host for that event (package contracts holds
// what was tried on which version). An allow is always "no objection", never a
// host's own permission (DESIGN §8).
package wire

import (
	"cmp"

	"stopgate/gate"
)

// Protocol is how one kind of agent host speaks. It is made by [Find].
type Protocol struct {
	Name string

	// event is the gate's name of a host's event; empty: no hooks are about it.
	event func(host string) gate.EventName
	// decode fills the event from the payload's members. The caller has set
	// Protocol, Agent, Payload and the defaults of [Options].
	decode func(m members, ev *gate.Event)
	// encode answers an event that has hooks.
	encode func(ev *gate.Event, w wish) answer
	// version reads the host's version in the User-Agent of its http hooks; nil:
	// it is not there.
	version func(userAgent string) string
	// unnamed: the payload never names its event, only the options do.
	unnamed bool
	// silent: no objection is an empty body, not `{}`.
	silent bool
	// passed answers an event without hooks.
	passed answer
}

// Find is the protocol of that name.
func Find(name string) (Protocol, bool) {
	for _, p := range protocols() {
		if p.Name == name {
			return p, true
		}
	}
	return Protocol{}, false
}

// Names lists every protocol, hosts first.
func Names() []string {
	var names []string
	for _, p := range protocols() {
		names = append(names, p.Name)
	}
	return names
}

func protocols() []Protocol {
	return []Protocol{claudeCode(), codex(), geminiCLI(), qwenCode(), copilot(), antigravity(), axCode(), {Name: gate.Native}}
}

// Options are what a caller knows beside the payload: from the URL's query, or
// from the environment of a hook process. What the payload says itself wins.
type Options struct {
	// Event is the host's own name of the event, needed where payloads name
	// none: antigravity, ax-code, and copilot's camelCase form.
	Event string
	Agent string // name of the agent spec; empty: [gate.DefaultAgent]

	// Session, Tool and Cwd are for ax-code only, whose payload is nothing but
	// the tool's arguments; see [AXCodeOptions].
	Session string
	Tool    string
	Cwd     string

	// Project is the directory of the agent's project, which hosts name only in a
	// hook's environment, and the working directory where nothing else says it; empty:
	// unknown.
	Project string

	// Transcript is the session under which the conversation was uploaded: the
	// path in the payload is then another machine's. Stale: without its newest
	// part.
	Transcript string
	Stale      bool

	// Unattended: nobody can be asked, as in a run without a terminal. What
	// would be asked is denied.
	Unattended bool

	// UserAgent is the header of a host's http hook; empty for a command hook.
	UserAgent string
}

// Decode reads a host's payload.
//
// An event that no hook is about, also one that nobody knows, has an empty
// Name (spec/claude-code.md 9). It is not for [gate.Gate.Decide]: the caller
// answers Encode(ev, gate.Decision{}), which is "no objection".
//
// An error is a [gate.Error]: CodeInvalidJSON for what is not one JSON object,
// CodeValidation where neither payload nor options name the event; of the
// native protocol also what [DecodeNative] says. The event that comes with an
// error holds what could be read before the fault, or is named by the options,
// so that a caller that is set to block then can still encode that block for
// the right event; without a Name its form would be a guess.
func (p Protocol) Decode(payload []byte, opt Options) (gate.Event, error) {
	opt.Agent = cmp.Or(opt.Agent, gate.DefaultAgent)
	if p.Name == gate.Native {
		ev, err := decodeNative(payload, opt)
		ev.Unattended = opt.Unattended
		return ev, err
	}
	ev := gate.Event{Protocol: p.Name, Unattended: opt.Unattended, Agent: opt.Agent, Session: opt.Session, ToolName: opt.Tool, Cwd: opt.Cwd, Project: opt.Project,
		ToolSucceeded: true, Payload: payload}
	m, err := object(payload)
	host := opt.Event
	if !p.unnamed {
		if named := m.text("hook_event_name", "hookEventName", "hookName"); named != "" {
			host = named
		}
	}
	ev.Name = p.event(host)
	if p.version != nil {
		ev.HostVersion = p.version(opt.UserAgent)
	}
	p.decode(m, &ev)
	ev.Cwd = cmp.Or(ev.Cwd, opt.Project) // a payload that says nothing of a directory
	if opt.Transcript != "" {
		ev.TranscriptPath, ev.TranscriptSession, ev.TranscriptStale = "", opt.Transcript, opt.Stale
	}
	if ev.Name.ForTool() {
		ev.ToolAliases = Aliases(p.Name, ev.ToolName)
	}
	if err == nil && host == "" {
		err = gate.Errorf(gate.CodeValidation, "payload names no event: name it as event=NAME in the URL, or by --event NAME of stopgate hook")
	}
	return ev, err
}

// Answer is what the host gets: the body of a 200, or a hook's standard output
// at exit 0.
type Answer struct {
	Body        []byte // empty: nothing at all is said
	ContentType string // for HTTP
}

// Encode writes a decision as the event's host takes it. It never fails: what
// a host cannot do becomes the nearest thing that works there, and an event
// without a Name gets "no objection".
func (p Protocol) Encode(ev gate.Event, d gate.Decision) Answer {
	if ev.Unattended {
		d = withoutPerson(d)
	}
	if p.Name == gate.Native {
		return Answer{EncodeNative(d), jsonType}
	}
	a := p.passed
	if ev.Name != "" {
		a = p.encode(&ev, wishOf(ev.Name, d))
	}
	if a == (answer{}) && p.silent {
		return Answer{ContentType: jsonType}
	}
	return Answer{marshal(a), jsonType}
}

// jsonType is the content type of every answer: qwen-code needs it, the others
// do not care (EFFECTS §3.7).
const jsonType = "application/json"

// ProjectVariables name the project in the environment that a host's hooks run in
// (EFFECTS §3.22), each beside those of the hosts that it comes from; none: it names
// it nowhere.
func ProjectVariables(protocol string) []string {
	switch protocol {
	case "claude-code", "copilot":
		return []string{"CLAUDE_PROJECT_DIR"}
	case "gemini-cli":
		return []string{"CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"}
	case "qwen-code":
		return []string{"CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "QWEN_PROJECT_DIR"}
	}
	return nil
}
