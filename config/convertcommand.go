package config

import (
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
		}
		return watches
	case gate.Azure:
		if h.FailMode == gate.FailBlock {
			return failsClosed
		}
	}
	return refuses
}

// wrapping is shell round a command that makes one law of another. A sub-shell
// keeps its exits inside, and line breaks its comments and here-documents.
type wrapping struct{ head, tail string }

var (
	bare     = wrapping{}
	muted    = wrapping{"(\n", "\n) >&2 || true"}
	opened   = wrapping{"(\n", "\n) || exit 1"}
	closed   = wrapping{"(\n", "\n) || exit 2"}
	closedBy = wrapping{"(\n", "\n) >&2 || exit 2"} // by its exit code alone

	// In antigravity no exit code refuses.
	denyAt2   = wrapping{denyHead, "\n)\ncase $? in 0) printf '%s\\n' \"$answer\" ;; 2) " + denial + " ;; esac"}
	denyAny   = wrapping{denyHead, "\n)\ncase $? in 0) printf '%s\\n' \"$answer\" ;; *) " + denial + " ;; esac"}
	denyByEnd = wrapping{"(\n", "\n) >&2 || " + denial}
)

const (
	denyHead = "answer=$(\n"
	denial   = `echo '{"decision":"deny","reason":"A hook refused this call by its exit code."}'`
)

// express is how a dialect says a law: its own fields in h, and what is put
// round the command.
func express(h *gate.Hook, l law) wrapping {
	switch h.Dialect {
	case gate.Antigravity:
		if watchedOnly(h.Dialect, h.Event) {
			return bare
		}
		return map[law]wrapping{watches: muted, speaks: bare, refuses: denyAt2, failsClosed: denyAny, exitCloses: denyByEnd}[l]
	case gate.AXCode:
		h.ReadsAnswer = l != watches && l != exitCloses && !watchedOnly(h.Dialect, h.Event)
		h.BlockOnFailure = l == exitCloses && gate.AXCodeBlocks(h.Event)
		switch {
		case h.BlockOnFailure:
			h.FailMode = gate.FailBlock
		case h.ReadsAnswer:
			return map[law]wrapping{speaks: opened, refuses: bare, failsClosed: closed}[l]
		case h.Event == gate.PostToolUse: // what it prints would be feedback
			return muted
		}
		return bare
	case gate.Azure:
		if l == failsClosed || l == exitCloses {
			h.FailMode = gate.FailBlock
		}
		return map[law]wrapping{watches: muted, speaks: opened, refuses: bare, failsClosed: bare, exitCloses: closedBy}[l]
	}
	return map[law]wrapping{watches: muted, speaks: opened, refuses: bare, failsClosed: closed, exitCloses: closedBy}[l]
}

// unwrapped is a hook's command without a wrapping of ours, and the law that it
// has with it.
func unwrapped(d *declared) (string, law) {
	for _, l := range []law{watches, speaks, refuses, failsClosed, exitCloses} {
		h := gate.Hook{Dialect: d.Dialect, Event: d.Event, FailMode: gate.FailAllow}
		w := express(&h, l)
		if w == bare || h.FailMode != d.FailMode || h.ReadsAnswer != d.ReadsAnswer || h.BlockOnFailure != d.BlockOnFailure {
			continue
		}
		if inner, ok := strings.CutPrefix(d.Command, w.head); ok && d.Args == nil {
			if inner, ok = strings.CutSuffix(inner, w.tail); ok && readBash(inner) == nil {
				return inner, l
			}
		}
	}
	return d.Command, ownLaw(&d.Hook)
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
	if strings.Contains(line, "CLAUDE_PROJECT_DIR") && c.From == gate.ClaudeCode {
		c.differ(d, "command", "CLAUDE_PROJECT_DIR is not set by %s", systemNames[c.To])
	}
	h.Event = event
	if l != watches && watchedOnly(c.To, event) {
		c.once(d, "effect: %s only watches %s, and neither exit code nor output of a hook on it counts", systemNames[c.To], EventName(c.To, event))
		l = watches
	}
	w := express(h, l)
	c.sayFailure(d, l, w)
	switch text, python := scriptOf(line); {
	case w == bare && c.To == gate.Azure && text != "" && len(text) <= gate.MaxScriptBytes && (python || !strings.HasPrefix(text, "#!") || strings.HasPrefix(text, shebangs[0]+"\n")):
		h.Script = text
		return true
	case w != bare && readBash(line) != nil:
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

// scriptLine runs a script by its text: its shebang is a comment to the
// interpreter, and standard input stays the hook's.
func scriptLine(script string) string {
	if strings.HasPrefix(script, shebangs[1]) {
		return "python3 -c " + shellWord(script)
	}
	return "bash -c " + shellWord(script)
}

// scriptOf is the script that a line runs as [scriptLine] has it; empty: it is
// another. A Python script is one only with its shebang.
func scriptOf(line string) (script string, python bool) {
	for _, start := range []string{"bash -c ", "python3 -c "} {
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
