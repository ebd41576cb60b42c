package config

import (
	"fmt"
	"strings"
	"time"

	"stopgate/gate"
)

// readHook reads one hook's fields by spec/azure.md 14–22. The hook carries the
// defaults; the document keeps only what was sent. Everything but the hook's
// name is set. event is empty when it could not be read.
func readHook(o *object, event gate.EventName, level gate.Level) gate.Hook {
	h := gate.Hook{Level: level, Dialect: gate.Azure, Event: event, Type: gate.PromptHook,
		Timeout: readTimeout(o), FailMode: readFailMode(o), Model: gate.DefaultModel}
	if o.node.has("hooks") {
		o.value("hooks")
		o.errorf(o.child("hooks"), o.place("hooks"),
			"hook holds a list of hooks, as other hook systems have it; list each hook itself, with its own matcher")
	}
	if t := o.oneOf("type", string(gate.PromptHook), string(gate.CommandHook), string(gate.RuleHook)); t != "" {
		h.Type = gate.HookType(t)
	}
	if model := o.text("model"); strings.TrimSpace(model) != "" {
		h.Model = model
	}
	h.Prompt, h.Command, h.Script = o.text("prompt"), o.text("command"), o.text("script")
	switch h.Type {
	case gate.CommandHook:
		checkCommand(o, &h)
	case gate.RuleHook:
		o.oursAs("type", "type: rule", "and Azure SRE Agent refuses the whole spec: its hooks are of type prompt or command") // spec/azure.md 7
		h.Rules = readRules(o, event)
	default:
		checkPrompt(o, &h)
	}
	if n := o.value("rules"); n != nil && h.Type != gate.RuleHook {
		o.warnf(o.child("rules"), n.pos, "rules has no effect on a %s hook; a rule hook needs type: rule", h.Type)
	}
	o.ours("mode", "when", "threshold", "evidence", "votes", "models", "cache", "rules")
	h.Shadow = readShadow(o)
	h.When = readWhen(o, event)
	checkLoop(o, &h)
	h.MaxRejections = readMaxRejections(o, &h)
	readJudging(o, &h)
	h.Matcher = readMatcher(o, event, level)
	return h
}

// readShadow reads a mode, of a hook or of an agent: ours, docs/shadow.md.
func readShadow(o *object) bool { return o.oneOf("mode", "enforce", "shadow") == "shadow" }

// maxTimeout keeps a time-out inside [time.Duration]; a year is no bound that
// anybody meets.
const maxTimeout = 365 * 24 * time.Hour

// readTimeout: spec/azure.md 15.
func readTimeout(o *object) time.Duration {
	seconds, ok := o.whole("timeout", 1, maxWhole, " (seconds)")
	if !ok {
		return gate.DefaultTimeout
	}
	d := min(time.Duration(seconds)*time.Second, maxTimeout)
	if d > gate.LongTimeout {
		hint := ""
		if seconds%1000 == 0 {
			hint = "; the unit is seconds, not milliseconds"
		}
		o.warnf(o.child("timeout"), o.place("timeout"), "timeout of %d s is longer than %d s: the agent waits as long%s",
			seconds, int(gate.LongTimeout.Seconds()), hint)
	}
	return d
}

// readFailMode: any letter case, stored lower-case (spec/azure.md 17).
func readFailMode(o *object) gate.FailMode {
	if n := o.value("failMode"); n != nil && n.kind == textKind {
		if lower := strings.ToLower(n.text); lower == string(gate.FailAllow) || lower == string(gate.FailBlock) {
			n.text = lower
		}
	}
	if o.oneOf("failMode", string(gate.FailAllow), string(gate.FailBlock)) == string(gate.FailBlock) {
		return gate.FailBlock
	}
	return gate.FailAllow
}

// readMaxRejections is 0 when it is not set: only values that were set make the
// cap (spec/azure.md 16, 35).
func readMaxRejections(o *object, h *gate.Hook) int {
	most, ok := o.whole("maxRejections", gate.MinMaxRejections, gate.MaxMaxRejections, "")
	if ok && (h.Type != gate.PromptHook || h.Event != gate.Stop) {
		o.warnf(o.child("maxRejections"), o.place("maxRejections"), "maxRejections has no effect here: it limits prompt hooks on Stop")
	}
	return most
}

// A panel of more judges, or of more models, costs more than it finds.
const (
	maxVotes  = 9
	maxModels = 3
)

// readJudging reads what is ours of a prompt hook: docs/judging.md.
func readJudging(o *object, h *gate.Hook) {
	h.Threshold = o.share("threshold")
	h.EvidenceRequired = o.oneOf("evidence", "optional", "required") == "required"
	if votes, ok := o.whole("votes", 1, maxVotes, ""); ok {
		if h.Votes = votes; votes%2 == 0 {
			o.errorf(o.child("votes"), o.place("votes"), "votes is %d, want an odd number: half of the judges must not stand against the other half", votes)
		}
	}
	if h.Models = o.texts("models"); len(h.Models) > maxModels {
		o.errorf(o.child("models"), o.place("models"), "models has %d names, want at most %d", len(h.Models), maxModels)
	} else if len(h.Models) > 0 && h.Votes < len(h.Models) {
		o.errorf(o.child("models"), o.place("models"), "models has %d names for %d votes: set votes to an odd number from %[1]d on", len(h.Models), max(h.Votes, 1))
	}
	h.Cache = o.flag("cache")
	for _, name := range []string{"threshold", "evidence", "votes", "models", "cache"} {
		if n := o.value(name); n != nil && h.Type != gate.PromptHook {
			o.warnf(o.child(name), n.pos, "%s has no effect on a %s hook", name, h.Type)
		}
	}
}

// maxMatcherBytes bounds what one compiled matcher can cost; the longest list of
// tool names that anybody has is far below it.
const maxMatcherBytes = 4096

// readMatcher: spec/azure.md 21, 22, 24.
func readMatcher(o *object, event gate.EventName, level gate.Level) gate.Matcher {
	n := o.value("matcher")
	pattern := o.text("matcher")
	if !event.ForTool() {
		if n != nil && event != "" {
			o.warnf(o.child("matcher"), n.pos, "matcher has no effect on %s: the hook runs on every %s", event, event)
		}
		return gate.Matcher{}
	}
	if pattern == "" {
		if n == nil || n.kind == textKind {
			severity := gate.SeverityWarning
			if level == gate.AgentLevel {
				severity = gate.SeverityError
			}
			o.add(severity, o.child("matcher"), o.place("matcher"), fmt.Sprintf("Tool matcher is required for %s hooks", event))
		}
		return gate.Matcher{}
	}
	if len(pattern) > maxMatcherBytes {
		o.errorf(o.child("matcher"), n.pos, "matcher is %d bytes long, want at most %d", len(pattern), maxMatcherBytes)
		return gate.Matcher{}
	}
	m, err := gate.CompileMatcher(pattern)
	if err != nil {
		o.errorf(o.child("matcher"), n.pos, "%s", err)
	} else if listed(pattern) {
		o.warnf(o.child("matcher"), n.pos, "matcher %q matches no tool: tool names hold no spaces or commas; join several by |", cut(pattern))
	}
	return m
}

// listed reports whether a pattern is names set apart by spaces or commas,
// which as a regular expression match nothing.
func listed(pattern string) bool {
	for _, r := range pattern {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-| ,", r):
		default:
			return false
		}
	}
	return strings.ContainsAny(pattern, " ,")
}

// checkPrompt: spec/azure.md 18.
func checkPrompt(o *object, h *gate.Hook) {
	if strings.TrimSpace(h.Prompt) == "" {
		hint := ""
		if o.value("type") == nil && (h.Command != "" || h.Script != "") {
			hint = "; a hook with a command or script needs type: command"
		}
		if n := o.value("prompt"); n == nil || n.kind == textKind {
			o.errorf(o.child("prompt"), o.place("prompt"), "prompt is missing: a prompt hook needs one%s", hint)
		}
		return
	}
	for _, name := range []string{"command", "script"} {
		if o.text(name) != "" {
			o.warnf(o.child(name), o.place(name), "%s has no effect on a prompt hook; a command hook needs type: command", name)
		}
	}
	if word := foreignAnswer(h.Prompt); word != "" {
		o.warnf(o.child("prompt"), o.place("prompt"), `prompt asks for the answer %q, which is no verdict: ask for {"ok": true} or {"ok": false, "reason": "…"}, or leave the form out`, word)
	}
}

// checkCommand: spec/azure.md 18–20.
func checkCommand(o *object, h *gate.Hook) {
	command, script := strings.TrimSpace(h.Command) != "", strings.TrimSpace(h.Script) != ""
	switch {
	case command && script:
		o.errorf(o.child("script"), o.place("script"), "hook has both command and script, want one of them")
	case !command && !script:
		if wellTyped(o, "command", "script") {
			o.errorf(o.path, o.node.pos, "hook has neither command nor script: a command hook needs one of them")
		}
	}
	for _, f := range []struct{ name, text string }{{"command", h.Command}, {"script", h.Script}} {
		if n := len(f.text); n > gate.MaxScriptBytes {
			o.errorf(o.child(f.name), o.place(f.name), "%s is %d bytes long, want at most %d", f.name, n, gate.MaxScriptBytes)
		}
	}
	if h.Prompt != "" {
		o.warnf(o.child("prompt"), o.place("prompt"), "prompt has no effect on a command hook")
	}
	switch {
	case script:
		checkScript(o, h)
	case command:
		checkLine(o, h)
	}
}

// wellTyped reports whether none of the fields has already been refused for its
// type.
func wellTyped(o *object, names ...string) bool {
	for _, name := range names {
		if n := o.value(name); n != nil && n.kind != textKind {
			return false
		}
	}
	return true
}
