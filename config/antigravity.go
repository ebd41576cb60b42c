package config

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"stopgate/gate"
	"stopgate/internal/hostname"
)

// antigravityEvents are the two events of the Gemini API's sandbox, by its own
// names (spec/antigravity.md 1, 4).
var antigravityEvents = []struct {
	name  string
	event gate.EventName
}{{"pre_tool_execution", gate.PreToolUse}, {"post_tool_execution", gate.PostToolUse}}

// Bounds of a hooks.json, far above what anybody writes: every hook of an event
// runs after the other, and each one's name holds its group's.
const (
	maxGroupName = 200
	maxAttached  = 1000
)

// antigravityReader reads a hooks.json.
type antigravityReader struct {
	*findings
	hooks []gate.Hook
}

// readAntigravity reads the groups of a hooks.json in file order, which is that
// of firing (spec/antigravity.md 1–9). What is wrong in a group that is switched
// off is wrong all the same.
func readAntigravity(n *node, f *findings) []gate.Hook {
	r := antigravityReader{findings: f}
	if n.kind != objectKind {
		f.errorf("", n.pos, "hooks.json is %s, want an object of groups", n.describe())
	}
	for _, g := range n.fields {
		r.group(g)
	}
	if len(r.hooks) > maxAttached {
		f.errorf("", n.pos, "hooks.json has %d handlers, want at most %d", len(r.hooks), maxAttached)
	}
	if last := lastError(f); last != nil {
		f.errorf("", pos{last.Line, last.Column}, "nothing of this file is loaded, as in an environment of the Gemini API: none of its hooks is asked, and every call goes on")
	}
	return r.hooks
}

// lastError is the error that stands last in the text; nil if there is none.
func lastError(f *findings) *gate.Finding {
	errs, _ := split(f.sorted())
	if len(errs) == 0 {
		return nil
	}
	return &errs[len(errs)-1]
}

func (r *antigravityReader) group(g field) {
	if len(g.name) > maxGroupName {
		r.errorf("", g.pos, "group's name is %d bytes long, want at most %d", len(g.name), maxGroupName)
		return
	}
	if g.value.kind != objectKind {
		r.errorf(g.name, g.value.pos, "group %q is %s, want an object with pre_tool_execution and post_tool_execution", cut(g.name), g.value.describe())
		return
	}
	group := &object{findings: r.findings, path: g.name, node: g.value}
	on := group.value("enabled") == nil || group.flag("enabled")
	before := len(r.hooks)
	for _, e := range antigravityEvents {
		for i, n := range group.list(e.name) {
			if entry := r.object(fmt.Sprintf("%s[%d]", group.child(e.name), i), n); entry != nil {
				r.entry(entry, e.event)
			}
		}
	}
	for _, f := range group.rest() {
		r.errorf(group.child(f.name), f.pos, "%q is no event of these hooks: they have pre_tool_execution and post_tool_execution, and beside them only enabled%s",
			cut(f.name), antigravityEventLike(f.name, group.asked))
	}
	if !on {
		r.hooks = r.hooks[:before]
	}
}

// antigravityEventLike says which event was meant by a name: one of other systems
// is of the same moment.
func antigravityEventLike(name string, legal []string) string {
	switch name {
	case "PreToolUse", "BeforeTool", "preToolUse":
		return DidYouMean("pre_tool_execution", legal)
	case "PostToolUse", "PostToolUseFailure", "AfterTool", "postToolUse":
		return DidYouMean("post_tool_execution", legal)
	}
	return DidYouMean(name, legal)
}

// object is a value as an object, else a finding.
func (r *antigravityReader) object(path string, n *node) *object {
	if n.kind == objectKind {
		return &object{findings: r.findings, path: path, node: n}
	}
	r.errorf(path, n.pos, "%s is %s, want an object", path[strings.LastIndexByte(path, '.')+1:], n.describe())
	return nil
}

// entry reads a matcher with its handlers, which run in their order.
func (r *antigravityReader) entry(o *object, event gate.EventName) {
	matcher := r.matcher(o)
	handlers := o.list("hooks")
	if len(handlers) == 0 && (o.value("hooks") == nil || o.value("hooks").kind == listKind) {
		r.warnf(o.child("hooks"), o.place("hooks"), "%s has no hooks: nothing is run", o.path)
	}
	for i, n := range handlers {
		if len(r.hooks) > maxAttached {
			return // which is one too many, and said at the end
		}
		path := fmt.Sprintf("%s[%d]", o.child("hooks"), i)
		handler := r.object(path, n)
		if handler == nil {
			continue
		}
		h := gate.Hook{Name: path, Level: gate.CustomLevel, Dialect: gate.Antigravity, Event: event, Matcher: matcher,
			Timeout: readTimeout(handler), FailMode: gate.FailAllow}
		r.handler(handler, &h)
		r.source(h.Name, path, handler.node)
		r.hooks = append(r.hooks, h)
	}
	o.unknown(false)
}

// handler: spec/antigravity.md 3.
func (r *antigravityReader) handler(o *object, h *gate.Hook) {
	h.Type = gate.HookType(o.oneOf("type", string(gate.CommandHook), string(gate.HTTPHook)))
	if o.value("type") == nil {
		r.errorf(o.path, o.node.pos, "type is missing, want command or http")
	}
	h.Command, h.URL, h.Headers = o.text("command"), o.text("url"), r.headers(o)
	var ineffective []string
	switch h.Type {
	case gate.CommandHook:
		ineffective = []string{"url", "headers"}
		r.command(o, h)
	case gate.HTTPHook:
		ineffective = []string{"command"}
		r.url(o, h)
	}
	for _, name := range ineffective {
		if n := o.value(name); n != nil {
			r.warnf(o.child(name), n.pos, "%s has no effect on a handler of type %s", name, h.Type)
		}
	}
	o.unknown(false)
}

func (r *antigravityReader) command(o *object, h *gate.Hook) {
	switch {
	case strings.TrimSpace(h.Command) == "":
		if wellTyped(o, "command") {
			r.errorf(o.child("command"), o.place("command"), "command is missing: a handler of type command needs one")
		}
	case len(h.Command) > gate.MaxScriptBytes:
		r.errorf(o.child("command"), o.place("command"), "command is %d bytes long, want at most %d", len(h.Command), gate.MaxScriptBytes)
	default:
		checkBash(o, "command", h.Command)
		if exitTwo.MatchString(h.Command) {
			r.warnf(o.child("command"), o.place("command"), `command exits with 2, which denies nothing there: print {"decision":"deny","reason":"…"} and exit with 0`)
		}
	}
}

// exitTwo is the exit that blocks in other systems.
var exitTwo = regexp.MustCompile(`(?:^|[\s;&|{])exit 2(?:$|[\s;&|}])`)

// url: https only, and to somewhere else (spec/antigravity.md 3, 15).
func (r *antigravityReader) url(o *object, h *gate.Hook) {
	at, path := o.place("url"), o.child("url")
	if h.URL == "" {
		if wellTyped(o, "url") {
			r.errorf(path, at, "url is missing: a handler of type http needs one")
		}
		return
	}
	u, err := url.Parse(h.URL)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		r.errorf(path, at, "url is %q, want https://host/path", cut(h.URL))
	case u.Scheme != "https":
		r.errorf(path, at, "url begins with %s://, want https://: hooks are sent by no other way", cut(u.Scheme))
	case u.User != nil:
		r.errorf(path, at, "url holds a user or password: secrets belong into the network's transform, as a header")
	case thisMachine(u.Hostname()):
		r.warnf(path, at, "url leads to %s, the environment's own machine, which is always refused: the handler is never reached, and every call goes on", u.Hostname())
	}
}

// thisMachine reports whether a host stands for the machine that asks, wherever
// that is.
func thisMachine(text string) bool {
	host, addr, fault := hostname.Read(text)
	return fault == "" && (hostname.IsLocalhost(host) || addr.IsLoopback())
}

// headers are plain texts, and no secrets (spec/antigravity.md 3, 16).
func (r *antigravityReader) headers(o *object) []gate.Header {
	return o.headers("headers", func(path string, f field) bool {
		if fault := gate.HeaderFault(f.name, f.value.text); fault != "" {
			r.errorf(path, f.pos, "header %q %s", cut(f.name), fault)
			return false
		}
		if slices.Contains(secretHeaders, http.CanonicalHeaderKey(f.name)) {
			r.warnf(path, f.pos, "header %q looks like a secret, and this file is no place for one: put it into the network's transform for the host", cut(f.name))
		}
		return true
	})
}

// secretHeaders are those whose values say who somebody is.
var secretHeaders = []string{"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Auth-Token", "X-Goog-Api-Key"}

// matcher: spec/antigravity.md 5–8. A pattern that RE2 does not take matches
// nothing there, and the file is loaded all the same.
func (r *antigravityReader) matcher(o *object) gate.Matcher {
	all, _ := gate.CompileMatcher("*") // always valid
	n, path := o.value("matcher"), o.child("matcher")
	if n == nil {
		r.warnf(o.path, o.node.pos, `%s has no matcher, so its hooks are about every tool: say so with "*"`, o.path)
		return all
	}
	pattern := o.text("matcher")
	switch {
	case n.kind != textKind:
		return gate.Matcher{}
	case pattern == "":
		return all
	case len(pattern) > maxMatcherBytes:
		r.errorf(path, n.pos, "matcher is %d bytes long, want at most %d", len(pattern), maxMatcherBytes)
		return gate.Matcher{}
	}
	m, err := gate.CompileMatcher(pattern)
	if err == nil {
		r.reach(pattern, m, path, n.pos)
		return m
	}
	if _, invalid := syntax.Parse(pattern, syntax.Perl); invalid == nil { // only we refuse it
		r.errorf(path, n.pos, "%s", err)
		return gate.Matcher{}
	}
	hint := ""
	if _, err := syntax.Parse("."+pattern, syntax.Perl); err == nil && strings.HasPrefix(pattern, "*") {
		hint = fmt.Sprintf("; write %q for what ends so", "."+pattern)
	}
	r.warnf(path, n.pos, "%s, so it matches nothing and its hooks are never asked%s", err, hint)
	return gate.Matcher{}
}

// reach warns where a matcher is about other tools than it seems
// (spec/antigravity.md 6): the whole name must match.
func (r *antigravityReader) reach(pattern string, m gate.Matcher, path string, at pos) {
	if r.full() {
		return
	}
	anywhere, err := regexp.Compile(pattern)
	if err != nil || pattern == "*" {
		return
	}
	var whole, part []string
	for _, tool := range gate.AntigravityTools {
		switch {
		case m.Match(tool):
			whole = append(whole, tool)
		case anywhere.MatchString(tool):
			part = append(part, tool)
		}
	}
	switch {
	case len(part) > 0:
		about := "none of the five tools"
		if len(whole) > 0 {
			about = strings.Join(whole, ", ")
		}
		r.warnf(path, at, "matcher %q is about %s, and not about %s: the whole name must match", cut(pattern), about, strings.Join(part, ", "))
	case len(whole) == 0:
		r.warnf(path, at, "matcher %q is about none of the five tools (%s), so its hooks are never asked%s",
			cut(pattern), strings.Join(gate.AntigravityTools, ", "), DidYouMean(pattern, gate.AntigravityTools))
	}
}
