package config

import (
	"fmt"
	"slices"
	"strings"

	"stopgate/gate"
)

// saying is what is to be said of a hook.
type saying struct {
	severity gate.Severity
	general  bool
	path     string
	pos      pos
	text     string
}

// sentence is a finding that may hold for several hooks.
type sentence struct {
	at   int // in the findings; -1: they were full
	also []string
}

// lose says what cannot be expressed.
func (c *converter) lose(d *declared, field, format string, args ...any) {
	c.lost++
	c.say(gate.SeverityError, d, field, fmt.Sprintf(format, args...))
}

// differ says how the hook behaves otherwise.
func (c *converter) differ(d *declared, field, format string, args ...any) {
	c.say(gate.SeverityWarning, d, field, fmt.Sprintf(format, args...))
}

// once is differ for what holds for every hook of a kind: the first one's place
// stands for all, and the others are not named.
func (c *converter) once(d *declared, format string, args ...any) {
	path, at := d.at("")
	c.pending = append(c.pending, saying{gate.SeverityWarning, true, path, at, fmt.Sprintf(format, args...)})
}

func (c *converter) say(severity gate.Severity, d *declared, field, text string) {
	path, at := d.at(field)
	c.pending = append(c.pending, saying{severity, false, path, at, text})
}

// settle says what was put off. How a hook would behave that is not written is of
// no use beside the reason for that.
func (c *converter) settle(written bool) {
	lost := slices.ContainsFunc(c.pending, func(s saying) bool { return s.severity == gate.SeverityError })
	for _, s := range c.pending {
		if s.severity == gate.SeverityWarning && lost && !written {
			continue
		}
		if s.severity == gate.SeverityError && written {
			s.text += " (--partial writes the hook all the same)"
		}
		key := string(s.severity) + s.text
		if before := c.said[key]; before != nil {
			if !s.general {
				before.also = append(before.also, s.path)
			}
			continue
		}
		into := c.findings
		if s.general {
			into = c.general
		}
		at := len(into.list)
		if into.add(s.severity, s.path, s.pos, s.text); len(into.list) == at {
			at = -1
		}
		if s.general {
			at = -1 // nobody is named behind it
		}
		c.said[key] = &sentence{at: at}
	}
	c.pending = c.pending[:0]
}

// maxNamed is how many more hooks a finding names.
const maxNamed = 5

// nameAll puts the other hooks that a finding is about behind it.
func (c *converter) nameAll() {
	for _, s := range c.said {
		if s.at < 0 || len(s.also) == 0 {
			continue
		}
		names := s.also[:min(len(s.also), maxNamed)]
		for i := range names {
			names[i] = cut(names[i])
		}
		more := ""
		if left := len(s.also) - len(names); left > 0 {
			more = fmt.Sprintf(" and %d more", left)
		}
		c.list[s.at].Message += fmt.Sprintf(" (also %s%s)", strings.Join(names, ", "), more)
	}
}
