package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"stopgate/gate"
)

// Bounds of AX Code's hooks.json: entries of a list, and characters
// (spec/ax-code.md 2, 3).
const (
	axCodeEntries      = 100
	axCodePackName     = 500
	axCodeCommandChars = 100_000
	axCodeMatcherChars = 500
)

// readAXCode reads an .ax-code/hooks.json: the hooks of its packs, then its own
// (spec/ax-code.md 4). Whatever breaks a rule is an error, since AX Code drops
// the whole file for it, in silence (2).
func readAXCode(n *node, f *findings) []gate.Hook {
	r := axCodeReader{f}
	if n.kind != objectKind {
		r.drops("", n.pos, "the file is %s, want an object", n.describe())
		return nil
	}
	for _, m := range n.fields {
		if m.name != "hooks" && m.name != "packs" {
			r.warnf(m.name, m.pos, "AX Code drops %q, which it does not know%s", cut(m.name), DidYouMean(m.name, []string{"hooks", "packs"}))
		}
	}
	return append(r.packs(n), r.hooks(n)...)
}

type axCodeReader struct{ *findings }

// drops says what AX Code ignores the file for.
func (r axCodeReader) drops(path string, at pos, format string, args ...any) {
	r.errorf(path, at, "AX Code ignores this whole file, because "+format, args...)
}

// list is a list of at most axCodeEntries; null is not like absent.
func (r axCodeReader) list(n *node, name string) []*node {
	v := n.find(name)
	switch {
	case v == nil:
	case v.kind != listKind:
		r.drops(name, v.pos, "%s is %s, want a list", name, v.describe())
	case len(v.items) > axCodeEntries:
		r.drops(name, v.pos, "%s has %d entries, and at most %d are legal", name, len(v.items), axCodeEntries)
	default:
		return v.items
	}
	return nil
}

func (r axCodeReader) packs(n *node) []gate.Hook {
	var hooks []gate.Hook
	for i, item := range r.list(n, "packs") {
		path := fmt.Sprintf("packs[%d]", i)
		name, ok := r.characters(item, path, 1, axCodePackName)
		if !ok {
			continue
		}
		at := slices.IndexFunc(gate.AXCodePacks, func(p gate.AXCodePack) bool { return p.Name == name })
		if at < 0 {
			r.warnf(path, item.pos, "AX Code ignores the pack %q, which is none of its own%s", cut(name), DidYouMean(name, packNames()))
			continue
		}
		pack := gate.AXCodePacks[at]
		r.source(path+"."+name, path, item)
		hooks = append(hooks, gate.Hook{Name: path + "." + name, Level: gate.CustomLevel, Dialect: gate.AXCode, Event: pack.Event, Type: gate.RuleHook,
			Matcher: gate.CompileAXCodeMatcher(pack.Matcher), Timeout: gate.DefaultTimeout, FailMode: gate.FailAllow, Pack: name})
	}
	return hooks
}

func packNames() (names []string) {
	for _, p := range gate.AXCodePacks {
		names = append(names, p.Name)
	}
	return names
}

func (r axCodeReader) hooks(n *node) []gate.Hook {
	var hooks []gate.Hook
	for i, item := range r.list(n, "hooks") {
		path := fmt.Sprintf("hooks[%d]", i)
		h := r.hook(item, path)
		r.source(h.Name, path, item)
		hooks = append(hooks, h)
	}
	return hooks
}

// hook reads one entry. Its time is AX Code's for all (spec/ax-code.md 9).
func (r axCodeReader) hook(n *node, path string) gate.Hook {
	h := gate.Hook{Name: path, Level: gate.CustomLevel, Dialect: gate.AXCode, Type: gate.CommandHook, Timeout: gate.DefaultTimeout, FailMode: gate.FailAllow}
	if n.kind != objectKind {
		r.drops(path, n.pos, "%s is %s, want an object", path, n.describe())
		return h
	}
	known := []string{"event", "command", "matcher", "blockOnFailure", "protocol", "pack"}
	for _, need := range known[:2] {
		if !n.has(need) {
			r.drops(path, n.pos, "%s has no %s", path, need)
		}
	}
	pattern := ""
	for _, m := range n.fields {
		at := path + "." + m.name
		switch m.name {
		case "event":
			h.Event = r.event(m.value, at)
			h.Name += "." + m.value.text
		case "command":
			h.Command, _ = r.characters(m.value, at, 1, axCodeCommandChars)
		case "matcher":
			pattern, _ = r.characters(m.value, at, 0, axCodeMatcherChars)
		case "blockOnFailure":
			if m.value.kind != boolKind {
				r.drops(at, m.value.pos, "%s is %s, want true or false", at, m.value.describe())
			}
			h.BlockOnFailure = m.value.text == "true"
		case "protocol":
			if h.ReadsAnswer = m.value.kind == textKind && m.value.text == "claude-code"; !h.ReadsAnswer {
				r.drops(at, m.value.pos, `%s is %s, want "claude-code"`, at, m.value.describe())
			}
		case "pack":
			if m.value.kind != textKind {
				r.drops(at, m.value.pos, "%s is %s, want text", at, m.value.describe())
			}
			h.Pack = m.value.text
		default:
			r.warnf(at, m.pos, "AX Code drops %q, which it does not know%s", cut(m.name), DidYouMean(m.name, known))
		}
	}
	h.Matcher = gate.CompileAXCodeMatcher(pattern)
	// What cannot be started counts as exit 1 (spec/ax-code.md 9), and so blocks
	// where any failure does (11).
	if h.BlockOnFailure && !h.ReadsAnswer && gate.AXCodeBlocks(h.Event) {
		h.FailMode = gate.FailBlock
	}
	r.futile(n, path, h)
	return h
}

func (r axCodeReader) event(n *node, path string) gate.EventName {
	name, ok := gate.AXCodeEvent(n.text)
	if n.kind != textKind || !ok {
		hint := ""
		if n.kind == textKind {
			hint = DidYouMean(n.text, gate.AXCodeEvents)
		}
		r.drops(path, n.pos, "%s is %s, want one of %s%s", path, n.describe(), strings.Join(gate.AXCodeEvents, ", "), hint)
		return ""
	}
	return name
}

// characters is a text of that many characters.
func (r axCodeReader) characters(n *node, path string, least, most int) (string, bool) {
	if n.kind != textKind {
		r.drops(path, n.pos, "%s is %s, want text of %d…%d characters", path, n.describe(), least, most)
		return "", false
	}
	if count := utf8.RuneCountInString(n.text); count < least || count > most {
		r.drops(path, n.pos, "%s has %d characters, want %d…%d", path, count, least, most)
		return "", false
	}
	return n.text, true
}

// futile warns of what is legal and does not do what it looks like.
func (r axCodeReader) futile(n *node, path string, h gate.Hook) {
	at := func(name string) (string, pos) {
		if v := n.find(name); v != nil {
			return path + "." + name, v.pos
		}
		return path, n.pos
	}
	warn := func(name, format string, args ...any) {
		where, place := at(name)
		r.warnf(where, place, format, args...)
	}
	blocks, pattern := gate.AXCodeBlocks(h.Event), h.Matcher.String()
	switch {
	case h.Event == "":
		return
	case pattern != "" && pattern != "*" && !h.Event.ForTool():
		warn("matcher", "AX Code never runs this hook: %s has no tool that matcher %q could match", h.Event, cut(pattern))
	case h.Event.ForTool() && r.misnamed(pattern, warn):
	case patternLike.MatchString(pattern):
		warn("matcher", "AX Code takes matcher %q for the names of tools, as it has no regular expressions: write names joined by |, and a * at the end of one", cut(pattern))
	}
	if file, err := parseBash(h.Command); err == nil {
		checkCredentials(func(format string, args ...any) { warn("command", format, args...) }, "command", file)
	}
	switch {
	case h.BlockOnFailure && h.ReadsAnswer:
		warn("blockOnFailure", "blockOnFailure has no effect in AX Code beside protocol: exit 2 blocks, other failures do not")
	case h.BlockOnFailure && !blocks:
		warn("blockOnFailure", "blockOnFailure has no effect in AX Code on %s, which no hook can block", h.Event)
	case h.ReadsAnswer && !blocks && h.Event != gate.PostToolUse:
		warn("protocol", "AX Code reads no answer on %s: it only watches", h.Event)
	case !h.ReadsAnswer && !h.BlockOnFailure && blocks && claudeAnswer.MatchString(h.Command):
		warn("command", `command answers as for Claude Code, and AX Code reads no answer without "protocol": "claude-code"`)
	}
}

// axCodeTools are tools of AX Code, to say what a matcher is about.
var axCodeTools = []string{"apply_patch", "bash", "edit", "glob", "grep", "list", "multiedit", "read", "task", "todowrite", "webfetch", "websearch", "write"}

// misnamed warns of names in a matcher that are a tool's but for letter case, or
// for the slashes of a regular expression.
func (axCodeReader) misnamed(pattern string, warn func(field, format string, args ...any)) (found bool) {
	for part := range strings.SplitSeq(pattern, "|") {
		name := strings.TrimSpace(part)
		bare, end := strings.TrimSuffix(name, "*"), ""
		if bare != name {
			end = "*"
		}
		meant := strings.ToLower(strings.Trim(bare, "/^$"))
		if bare != meant && slices.Contains(axCodeTools, meant) {
			warn("matcher", "matcher %q matches nothing, since AX Code compares names letter by letter, and has no regular expressions: did you mean %q?", cut(name), meant+end)
			found = true
		}
	}
	return found
}

var (
	// patternLike has what names of tools do not have.
	patternLike = regexp.MustCompile(`[\^$()\[\]{}\\+?]|\.\*|\.\+`)
	// claudeAnswer is a shell line that blocks by its exit code, or answers by JSON.
	claudeAnswer = regexp.MustCompile(`\bexit 2\b|permissionDecision`)
)
