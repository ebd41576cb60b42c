package commandhooks

import (
	"path/filepath"
	"slices"
	"strings"
)

// called reads the words of one command.
func (r *lineReader) called(words []string, spare bool) step {
	by := words
	if words = started(words); len(words) == 0 {
		return passes
	}
	name := filepath.Base(words[0])
	r.starter = name
	switch {
	case r.defined[words[0]]:
		return unknownStep
	case name == "set":
		return r.options(words[1:])
	case slices.Contains(neutral, name):
		return passes
	case name == "[" || name == "test":
		r.ask(words...)
		return either
	case name == "exit":
		return r.exit(words[1:])
	case r.made:
		return unknownStep
	case name == "cd":
		return r.enter(words[1:], spare)
	case r.starts(words, spare):
		if by[0] == "exec" {
			return ends
		}
		return fails
	}
	return r.text(name, words[1:], spare)
}

// neutral are commands of the shell that leave everything where it was.
var neutral = []string{"shopt", ":", "true", "umask"}

// options are those of set: letters behind a sign, of which o has a name.
func (r *lineReader) options(words []string) step {
	for i, word := range words {
		letters := strings.TrimLeft(word, "-+")
		switch {
		case word == unknown:
			return unknownStep
		case word == "--", word == "-":
			return passes // what follows is none
		case letters != word && strings.Contains(letters, "e"):
			r.errexit = word[0] == '-'
		case i > 0 && word == "errexit":
			r.errexit = words[i-1][0] == '-'
		}
	}
	return passes
}

// exit: an end that refuses, or may, is not known to do nothing.
func (r *lineReader) exit(words []string) step {
	switch {
	case len(words) == 0, words[0] == exitStatus, words[0] == "0", words[0] == "1" && !r.blockOnFailure:
		return ends
	}
	return unknownStep
}

// starts reports whether a command cannot be started, or not do what it is for, for
// want of a file.
func (r *lineReader) starts(words []string, spare bool) (missing bool) {
	name := filepath.Base(words[0])
	if strings.Contains(words[0], "/") {
		r.starter = ""
		if r.need(words[0], spare) {
			return true
		}
		r.starter = name
	}
	if name == "source" || name == "." {
		r.starter = "source"
		return len(words) > 1 && r.need(words[1], spare)
	}
	p, interprets := interpreters[interpreterName(name)]
	if !interprets {
		p = tellers[name]
	} else if !strings.Contains(words[0], "/") && r.needInterpreter(name, spare) {
		return true
	}
	a, ok := p.arguments(words[1:])
	switch {
	case len(a.files) > 1 && name == "make": // one may be below the other
		return false
	case ok && slices.ContainsFunc(a.files, func(file string) bool { return r.need(file, spare) }):
		return true
	case ok && p.script && !a.code && len(a.operands) > 0:
		return r.need(a.operands[0], spare)
	}
	return isProjectTool(name, words[1:], a, ok) && r.needProject(name, spare)
}

// isProjectTool reports whether a command is one of the project's that is started
// in it.
func isProjectTool(name string, words []string, a arguments, known bool) bool {
	first, is := projectTools[name]
	switch {
	case !is, slices.ContainsFunc(words, func(w string) bool {
		return w == unknown || w == "-" || filepath.IsAbs(w) || strings.Contains(w, "--version") || strings.Contains(w, "--help")
	}):
		return false
	case name == "make":
		return known && len(a.files) == 0
	}
	return first == nil || len(words) > 0 && slices.Contains(first, words[0])
}

// maxTexts in one text: a variable may hold what reads itself, more than once.
const maxTexts = 8

// text reads what a command has of a shell's text: eval, or a shell with -c.
func (r *lineReader) text(name string, words []string, spare bool) step {
	text := strings.Join(words, " ") // of eval
	isShell := false
	if name != "eval" {
		p := interpreters[interpreterName(name)]
		a, ok := p.arguments(words)
		if isShell = p.shell; !ok || !isShell || !a.code || len(a.operands) == 0 {
			return unknownStep
		}
		text = a.operands[0]
	}
	if strings.Contains(text, unknown) || r.texts == maxTexts {
		return unknownStep
	}
	file := parse(text)
	if file == nil {
		return unknownStep
	}
	r.texts++
	if !isShell {
		return r.statements(file.Stmts, spare)
	}
	does := r.inChild(func() step {
		for name := range r.set { // it need not be exported
			r.set[name] = unknown
		}
		r.errexit = false
		return r.statements(file.Stmts, spare)
	})
	if does != unknownStep {
		return either
	}
	return unknownStep
}
