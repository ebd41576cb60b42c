package config

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"stopgate/gate"
)

// matchesAll is the matcher of an event that needs none.
func matchesAll(d gate.Dialect, event gate.EventName) gate.Matcher {
	if d == gate.Azure && !event.ForTool() {
		return gate.Matcher{}
	}
	m, _ := compileMatcher(d, everyTool(d)) // always valid
	return m
}

// everyTool is the matcher of a dialect that matches every tool.
func everyTool(d gate.Dialect) string {
	if d == gate.AXCode || d == gate.ClaudeCode {
		return "" // which is left out
	}
	return "*"
}

func compileMatcher(d gate.Dialect, pattern string) (gate.Matcher, error) {
	switch d {
	case gate.AXCode:
		return gate.CompileAXCodeMatcher(pattern), nil
	case gate.ClaudeCode:
		return gate.CompileClaudeCodeMatcher(pattern)
	}
	return gate.CompileMatcher(pattern)
}

// matcher translates the hook's matcher into the target's names of tools and its
// kind of pattern.
func (c *converter) matcher(d *declared, h *gate.Hook) bool {
	if !d.Event.ForTool() {
		h.Matcher = matchesAll(c.To, d.Event)
		return true
	}
	pattern, ok := c.pattern(d)
	if !ok {
		return false
	}
	if most := map[gate.Dialect]int{gate.AXCode: axCodeMatcherChars}[c.To]; utf8.RuneCountInString(pattern) > max(most, 0) && most > 0 || len(pattern) > maxMatcherBytes {
		c.lose(d, "matcher", "matcher would be %d bytes long there, more than %s takes", len(pattern), systemNames[c.To])
		return false
	}
	m, err := compileMatcher(c.To, pattern)
	if err != nil {
		c.lose(d, "matcher", "%s", err)
		return false
	}
	h.Matcher = m
	return true
}

func (c *converter) pattern(d *declared) (string, bool) {
	source := d.Matcher.String()
	if d.Matcher.Match("") || c.From != gate.AXCode && slices.Contains([]string{".*", "^.*$", ".+"}, source) {
		if c.To == gate.Antigravity {
			c.once(d, "matcher: every tool is %s there; functions and tools of MCP servers are not gated", strings.Join(gate.AntigravityTools, ", "))
		} else if c.From == gate.Antigravity {
			c.once(d, "matcher: every tool is, there, not the environment's five alone")
		}
		return everyTool(c.To), true
	}
	if calledAlike(c.From) && calledAlike(c.To) {
		return c.sameNames(d, source), true
	}
	return c.otherNames(d, source)
}

// calledAlike reports whether a dialect calls the tools by their canonical names.
func calledAlike(d gate.Dialect) bool { return d == gate.Azure || d == gate.ClaudeCode }

// sameNames is a pattern between azure and claude-code, which call the tools
// alike and differ in what a pattern has to match: all of the name, or a part.
func (c *converter) sameNames(d *declared, source string) string {
	names := d.Matcher.Names()
	if names != nil {
		known := c.namesOf(c.From)
		c.sayKept(d, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(known, name) || strings.HasPrefix(name, "mcp__") }))
		return strings.Join(names, "|")
	}
	if c.To == gate.ClaudeCode {
		if ownSyntax.MatchString(source) {
			c.differ(d, "matcher", "matcher %q is written in RE2's own syntax, which Claude Code may read otherwise", cut(source))
		}
		return "^(?:" + source + ")$"
	}
	if inner, ok := wholeName(source); ok {
		return inner
	}
	return ".*(?:" + source + ").*"
}

// sayKept warns of names that are none of known tools.
func (c *converter) sayKept(d *declared, names []string) {
	if len(names) > 0 {
		c.differ(d, "matcher", "matcher: no tool is known by the name of %s: kept as written", cut(strings.Join(names, ", ")))
	}
}

// ownSyntax is what RE2 has and JavaScript reads otherwise.
var ownSyntax = regexp.MustCompile(`\\[AzQEpPC]|\(\?[a-zA-Z-]*[):]|\(\?P|\[\[:`)

// wholeName is the pattern inside of one that is about whole names.
func wholeName(source string) (string, bool) {
	for _, form := range [][2]string{{"^(?:", ")$"}, {"^(", ")$"}, {"^", "$"}} {
		inner, ok := strings.CutPrefix(source, form[0])
		if !ok || !strings.HasSuffix(inner, form[1]) {
			continue
		}
		inner = strings.TrimSuffix(inner, form[1])
		if _, err := syntax.Parse(inner, syntax.Perl); err == nil && inner != "" && !strings.HasSuffix(inner, `\`) && (form[0] != "^" || !strings.Contains(inner, "|")) {
			return inner, true
		}
	}
	return "", false
}

// namesOf are the known tools of a dialect.
func (c *converter) namesOf(d gate.Dialect) (names []string) {
	for _, t := range c.Tools {
		for _, name := range t[d] {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// namePart is a tool's name in a matcher, or the beginning of names.
type namePart struct {
	text  string
	start bool
}

var plainPart = regexp.MustCompile(`\A[A-Za-z0-9_-]+(\.\*)?\z`)

// partsOf is a pattern as names and beginnings of names; not ok: it is more than
// that.
func partsOf(d gate.Dialect, m gate.Matcher) (parts []namePart, ok bool) {
	source := m.String()
	if d == gate.AXCode {
		for part := range strings.SplitSeq(source, "|") {
			text, start := strings.CutSuffix(strings.TrimSpace(part), "*")
			if text != "" || start {
				parts = append(parts, namePart{text, start})
			}
		}
		return parts, true
	}
	if names := m.Names(); names != nil {
		for _, name := range names {
			parts = append(parts, namePart{text: name})
		}
		return parts, true
	}
	inner, whole := wholeName(source)
	if !whole {
		if d == gate.ClaudeCode {
			return nil, false
		}
		inner = source
	}
	for part := range strings.SplitSeq(inner, "|") {
		if !plainPart.MatchString(part) {
			return nil, false
		}
		text, start := strings.CutSuffix(part, ".*")
		parts = append(parts, namePart{text, start})
	}
	return parts, true
}

// otherNames is a pattern in the target's names of what the source's matches:
// of the tools that are known, and of names beyond them as far as they are
// plain.
func (c *converter) otherNames(d *declared, source string) (string, bool) {
	var known []string
	for _, name := range c.namesOf(c.From) {
		if d.Matcher.Match(name) {
			known = append(known, name)
		}
	}
	names := c.translated(d, known)
	parts, plain := partsOf(c.From, d.Matcher)
	lost := false
	var beyond []namePart
	var kept []string
	for _, p := range parts {
		covered := slices.ContainsFunc(known, func(name string) bool { return name == p.text || p.start && strings.HasPrefix(name, p.text) })
		switch {
		case covered && p.start && c.From != gate.Antigravity:
			c.differ(d, "matcher", "matcher: other tools whose names begin with %q are not among the known ones, and are not matched there", cut(p.text))
		case covered, c.From == gate.Antigravity: // which has no tool but the five
		case c.To == gate.Antigravity:
			lost = true
			c.lose(d, "matcher", "the Gemini API's sandbox has hooks on its five tools alone, and %q is like none of them", cut(p.text))
		default:
			beyond, kept = append(beyond, p), append(kept, p.text)
		}
	}
	c.sayKept(d, kept)
	if !plain && c.From != gate.Antigravity {
		c.differ(d, "matcher", "matcher %q may match other tools than the known ones (%s), which it is written for", cut(source), strings.Join(known, ", "))
	}
	if len(names) == 0 && len(beyond) == 0 {
		if len(known) == 0 && !lost {
			c.lose(d, "matcher", "matcher %q matches none of the known tools of %s: what it is about cannot be told", cut(source), systemNames[c.From])
		}
		return "", false
	}
	return writtenMatcher(c.To, names, beyond), true
}

// translated are the target's names of known tools. It says which have none, and
// which stand for more than was meant.
func (c *converter) translated(d *declared, known []string) []string {
	var names []string
	for _, name := range known {
		found := counterparts(c.Tools, c.From, c.To, name)
		if len(found) == 0 {
			c.lose(d, "matcher", "%s has no tool like %s", systemNames[c.To], name)
		}
		for _, n := range found {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	var more []string
	for _, n := range names {
		for _, back := range counterparts(c.Tools, c.To, c.From, n) {
			if !slices.Contains(known, back) && !slices.Contains(more, back) {
				more = append(more, back)
			}
		}
	}
	if len(more) > 0 {
		c.differ(d, "matcher", "matcher: %s there is also what %s is here", strings.Join(names, ", "), strings.Join(more, ", "))
	}
	return names
}

// counterparts are a tool's names in another dialect: all by which hooks about it
// are asked there.
func counterparts(tools []Tool, from, to gate.Dialect, name string) []string {
	var all []string
	for _, t := range tools {
		if !slices.Contains(t[from], name) {
			continue
		}
		for _, n := range t[to] {
			if !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all
}

// writtenMatcher is a matcher of a dialect that is about names and beginnings.
func writtenMatcher(d gate.Dialect, names []string, beyond []namePart) string {
	if d == gate.AXCode {
		all := slices.Clone(names)
		for _, p := range beyond {
			if p.start {
				p.text += "*"
			}
			all = append(all, p.text)
		}
		return strings.Join(all, "|")
	}
	all, plain := slices.Clone(names), true
	for _, p := range beyond {
		text := regexp.QuoteMeta(p.text)
		if p.start {
			text += ".*"
		}
		plain = plain && plainPart.MatchString(text) && !p.start
		all = append(all, text)
	}
	pattern := strings.Join(all, "|")
	if d == gate.ClaudeCode && !plain {
		return fmt.Sprintf("^(?:%s)$", pattern)
	}
	return pattern
}
