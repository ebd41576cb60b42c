package config

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"stopgate/gate"
)

// law is what counts of a command that a hook runs.
type law int

const (
	watches     law = iota // nothing: neither its exit code nor its output
	speaks                 // its output at exit 0; no exit code refuses
	refuses                // exit 2 refuses; else its output
	failsClosed            // every failure refuses; else its output
	exitCloses             // every failure refuses; its output is not read
	feeds                  // its output at exit 0 is told to the agent as it is
)

// lawOf is the law of a command hook as it stands, its wrapping counted.
func lawOf(d *declared) law {
	_, l := unwrapped(d)
	return l
}

// ownLaw is the law of a dialect's hooks with these fields.
func ownLaw(h *gate.Hook) law {
	switch h.Dialect {
	case gate.Antigravity:
		if watchedOnly(h.Dialect, h.Event) {
			return watches
		}
		return speaks
	case gate.AXCode:
		switch {
		case h.ReadsAnswer && !watchedOnly(h.Dialect, h.Event):
			return refuses
		case h.BlockOnFailure && gate.AXCodeBlocks(h.Event) && !h.ReadsAnswer:
			return exitCloses
		case h.Event == gate.PostToolUse && !h.ReadsAnswer:
			return feeds
		}
		return watches
	case gate.Azure:
		if h.FailMode == gate.FailBlock {
			return failsClosed
		}
	}
	return refuses
}

// watchedOnly reports whether nothing that a dialect's hooks say on an event
// counts.
func watchedOnly(d gate.Dialect, event gate.EventName) bool {
	switch d {
	case gate.Antigravity:
		return event != gate.PreToolUse
	case gate.AXCode:
		return event != gate.PostToolUse && !gate.AXCodeBlocks(event)
	}
	return false
}

// command converts a command hook.
func (c *converter) command(d *declared, event gate.EventName, h *gate.Hook) bool {
	line, l := unwrapped(d)
	switch {
	case d.Script != "":
		line = scriptLine(d.Script)
		if strings.Contains(d.Script, "BASH_SOURCE") || strings.Contains(d.Script, "__file__") {
			c.differ(d, "script", "script looks for its own file, and has none there: it is handed to its interpreter as text")
		}
	case d.Args != nil:
		line = argsLine(d.Command, d.Args)
	}
	line = c.inProject(d, line)
	h.Event = event
	if l != watches && watchedOnly(c.To, event) {
		c.differ(d, "", "effect: %s only watches %s, and neither exit code nor output of a hook on it counts", systemNames[c.To], EventName(c.To, event))
		l = watches
	}
	w := express(h, l)
	c.sayFailure(d, l, w)
	switch text, python := scriptOf(line); {
	case w == bare && c.To == gate.Azure && text != "" && len(text) <= gate.MaxScriptBytes && (python || !strings.HasPrefix(text, "#!") || strings.HasPrefix(text, shebangs[0]+"\n")):
		h.Script = text
		return true
	case w != bare && (readBash(line) != nil || readBash(w.head+line+w.tail) != nil || strings.HasSuffix(line, `\`)): // which would take in what follows
		c.lose(d, "command", "command is not bash that can be read, and would have to be put into more of it to keep its exit code's meaning")
		return false
	}
	h.Command = w.head + line + w.tail
	long, most := len(h.Command), gate.MaxScriptBytes
	if c.To == gate.AXCode {
		long, most = utf8.RuneCountInString(h.Command), axCodeCommandChars
	}
	if long > most {
		c.lose(d, "command", "command is %d long as %s has to be given it, and it takes %d", long, systemNames[c.To], most)
		return false
	}
	return true
}

// projectHere gives a command the variable in which hooks of Claude Code find the
// project, and which no other system sets: hooks start in the project's directory
// there.
const projectHere = `export CLAUDE_PROJECT_DIR="${CLAUDE_PROJECT_DIR:-$PWD}"` + "\n"

// inProject is a command line with what it needs of the environment of its own
// system, as far as another can have it.
func (c *converter) inProject(d *declared, line string) string {
	if c.To == gate.ClaudeCode {
		line = strings.TrimPrefix(line, projectHere)
	}
	text := c.textOf(d).all
	if used := slices.DeleteFunc(slices.Clone(d.env), func(name string) bool { return !uses(line+"\n"+text, name) }); len(used) > 0 {
		c.differ(d, "command", "environment: the command uses %s, which env of these settings sets and %s does not: it would be empty; set it in the command",
			cut(strings.Join(used, ", ")), systemNames[c.To])
	}
	if c.From != gate.ClaudeCode || !strings.Contains(line+text, "CLAUDE_PROJECT_DIR") || strings.HasPrefix(line, projectHere) {
		return line
	}
	effect := ""
	if c.To == gate.Azure {
		effect = "; of the project it has nothing but what sandbox.workspace shows it behind this gate: elsewhere python3 exits with 2 for want of its script, which blocks every call, so put the script's text into script"
	}
	c.differ(d, "command", "project: CLAUDE_PROJECT_DIR is not set by %s, so the command sets it to the directory that it is started in%s", systemNames[c.To], effect)
	return projectHere + line
}

// uses reports whether a text has a name as a whole word.
func uses(text, name string) bool {
	if !strings.Contains(text, name) {
		return false
	}
	word, err := regexp.Compile(`\b` + regexp.QuoteMeta(name) + `\b`)
	return err == nil && word.MatchString(text)
}

// isolated starts Python so that it takes in no module from the directory that it is
// started in: a script of a spec's lies beside no other file, and the agent may write
// into its own directory.
const isolated = "python3 -I -c "

// scriptLine runs a script by its text: its shebang is a comment to the
// interpreter, and standard input stays the hook's.
func scriptLine(script string) string {
	if strings.HasPrefix(script, shebangs[1]) {
		return isolated + shellWord(script)
	}
	return "bash -c " + shellWord(script)
}

// scriptOf is the script that a line runs as [scriptLine] has it; empty: it is
// another. A Python script is one only with its shebang.
func scriptOf(line string) (script string, python bool) {
	for _, start := range []string{"bash -c ", isolated} {
		rest, ok := strings.CutPrefix(line, start)
		if !ok {
			continue
		}
		text, ok := wordText(rest)
		python = start != "bash -c "
		if !ok || scriptLine(text) != start+rest {
			return "", false
		}
		return text, python
	}
	return "", false
}

// wordText is what one shell word stands for, if that is plain in it.
func wordText(word string) (string, bool) {
	if inner, quoted := strings.CutPrefix(word, "'"); quoted {
		inner, ended := strings.CutSuffix(inner, "'")
		text := strings.ReplaceAll(inner, `'\''`, "'")
		return text, ended && shellWord(text) == word
	}
	return word, shellWord(word) == word
}

// shellWord is a text as one word of every shell. Quote has no way to write tabs
// and their like for them all, and single quotes do.
func shellWord(text string) string {
	if word, err := syntax.Quote(text, syntax.LangPOSIX); err == nil && (word == text || strings.HasPrefix(word, "'")) {
		return word
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// argsLine is a program and its arguments as a shell line. The project's
// directory is put into arguments too (spec/claude-code.md 1).
func argsLine(program string, args []string) string {
	const variable = "${CLAUDE_PROJECT_DIR}"
	words := make([]string, 0, 1+len(args))
	for _, text := range append([]string{program}, args...) {
		parts := strings.Split(text, variable)
		for i, part := range parts {
			if parts[i] = shellWord(part); part == "" && len(parts) > 1 {
				parts[i] = ""
			}
		}
		words = append(words, strings.Join(parts, `"`+variable+`"`))
	}
	if words[0] == program && strings.Contains(program, "=") { // and no variable that is set
		words[0] = "'" + program + "'"
	}
	return strings.Join(words, " ")
}
