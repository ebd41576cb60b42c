package commandhooks

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"stopgate/gate"
)

// How long a text may be that is read, and how many brackets it may have, for each
// of which the parser calls itself.
const (
	maxReadBytes    = 16 << 10
	maxReadBrackets = 200
)

// read reads what the job runs.
func (r *lineReader) read(j job, h *gate.Hook) {
	text := j.inline + j.script
	switch {
	case h.Args != nil:
		words := append([]string{h.Command}, h.Args...)
		for i, word := range words {
			words[i] = r.unread(word)
		}
		r.called(words, false)
		return
	case j.interpreter.file != r.tools.bash.file:
		return
	}
	defer func() { // a fault of the parser's says nothing about the hook
		if recover() != nil {
			r.failure, r.doubt = nil, ""
		}
	}()
	if file := parse(text); file != nil {
		r.tail = tailOf(file.Stmts)
		r.statements(file.Stmts, false)
	}
}

// parse is a shell text that is short enough to be read; nil: it is not, or no bash.
func parse(text string) *syntax.File {
	if len(text) > maxReadBytes || strings.Count(text, "(")+strings.Count(text, "[")+strings.Count(text, "{") > maxReadBrackets {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	return file
}

// lineReader reads a shell text up to its first command that does anything: what
// comes after may never be run, and may find what that one made.
type lineReader struct {
	sight
	set       map[string]string        // variables of the text; unknown, if they are
	dir       string                   // which it has entered; empty: where it starts
	lost      bool                     // it has entered one that is not known
	functions []string                 // that the text defines
	asked     []string                 // paths that it has asked for: others may not be run
	why       func(path string) string // why a file is not found; empty: it is
	tail      *syntax.CallExpr         // whose end is that of the text; nil: that is not known
	at        *syntax.CallExpr         // which is read
	inner     int                      // how many texts within each other are being read
	starter   string                   // the interpreter that it gives a script to; empty: none
	failure   *gate.Failure            // the first
	doubt     string                   // why it is not known what the text does; the first
}

// unknown stands in a word for what only a running shell knows.
const unknown = "\x00"

// statements reports whether what comes after them surely runs, and finds what
// was there before. spare: the text deals with their failure.
func (r *lineReader) statements(list []*syntax.Stmt, spare bool) (goesOn bool) {
	for _, s := range list {
		if !r.statement(s, spare) {
			return false
		}
	}
	return true
}

func (r *lineReader) statement(s *syntax.Stmt, spare bool) (goesOn bool) {
	if s.Background || s.Coprocess {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		r.assign(c.Assigns)
		r.at = c
		words := r.words(c.Args)
		if text, is := fedText(s, words); is {
			return r.text(text, spare)
		}
		return r.called(words, spare)
	case *syntax.DeclClause:
		r.assign(c.Args)
		return true
	case *syntax.FuncDecl: // which runs nothing yet
		r.functions = append(r.functions, c.Name.Value)
		return true
	case *syntax.Block:
		return r.statements(c.Stmts, spare)
	case *syntax.TestClause:
		syntax.Walk(c, func(n syntax.Node) bool {
			if w, ok := n.(*syntax.Word); ok {
				r.ask(r.word(w))
			}
			return true
		})
		return true
	case *syntax.IfClause:
		if r.statements(c.Cond, true) {
			r.statements(c.Then, spare)
		}
	case *syntax.BinaryCmd:
		switch c.Op {
		case syntax.AndStmt:
			return r.statement(c.X, spare) && !assigns(c.X) && r.statement(c.Y, spare)
		case syntax.OrStmt:
			return r.statement(c.X, true) && !assigns(c.X)
		default: // a pipeline, all of which runs
			r.statement(c.X, spare)
			r.statement(c.Y, spare)
		}
	}
	return false
}

// assigns reports whether a statement is all assignments, in which a command may
// fail.
func assigns(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	return ok && len(c.Args) == 0
}

// maxValue is how long a variable may be: each may be made of others.
const maxValue = 1 << 10

func (r *lineReader) assign(all []*syntax.Assign) {
	for _, a := range all {
		if a.Name == nil || a.Naked {
			continue
		}
		value := unknown
		if a.Value != nil && !a.Append && a.Array == nil && a.Index == nil {
			value = r.word(a.Value)
		}
		if len(value) > maxValue {
			value = unknown
		}
		r.set[a.Name.Value] = value
	}
}

func (r *lineReader) words(args []*syntax.Word) []string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = r.word(arg)
	}
	return words
}

// word is what the shell makes of a word; unknown, if that is not certain.
func (r *lineReader) word(w *syntax.Word) string {
	text, err := expand.Literal(&expand.Config{Env: expand.FuncEnviron(r.variable), NoUnset: true}, w)
	if err != nil || strings.Contains(text, unknown) || strings.ContainsAny(text, "*?[") && text != "[" {
		return unknown
	}
	return text
}

// variable is what a variable holds; empty: it is not set. The home directory and
// directories that hooks are not told stand for themselves.
func (r *lineReader) variable(name string) string {
	if value, ok := r.set[name]; ok {
		return value
	}
	switch value := r.env[name]; {
	case value != "":
		return value
	case name == "HOME":
		return "~"
	case name == "PWD":
		return "."
	case name == pluginDir, strings.HasSuffix(name, projectVariable):
		return "$" + name
	}
	return ""
}

// pluginDir is where Claude Code has a plugin's directory, and projectVariable the
// end of the names in which hosts have the project's.
const (
	pluginDir       = "CLAUDE_PLUGIN_ROOT"
	projectVariable = "PROJECT_DIR"
)

// unread is a word that no shell reads, with the directories that the host puts
// into it.
func (r *lineReader) unread(word string) string {
	for _, name := range []string{projectDir, pluginDir} {
		word = strings.ReplaceAll(word, "${"+name+"}", r.variable(name))
	}
	return word
}

// called reads one command.
func (r *lineReader) called(words []string, spare bool) (goesOn bool) {
	words = started(words)
	if len(words) == 0 {
		return true
	}
	if slices.Contains(r.functions, words[0]) {
		return false
	}
	name := filepath.Base(words[0])
	kind, interprets := interpreters[interpreterName(name)]
	r.starter = ""
	switch {
	case name == "cd":
		r.enter(words[1:], spare)
		return true
	case slices.Contains(neutral, name), name == "cat" && len(words) == 1: // which empties standard input
		return true
	case name == "eval":
		return r.text(strings.Join(words[1:], " "), spare)
	case name == "[" || name == "test":
		r.ask(words...)
		return true
	case strings.Contains(words[0], "/"):
		r.need(words[0], spare)
	case interprets && !spare && r.asked == nil && r.set["PATH"] == "" && !r.hasProgram(name):
		r.fail(failed(gate.InterpreterMissing, "its command starts %q, which is not where hooks run: install it in a directory of the system, and start the gate anew", head(name, 80)))
	}
	if values, is := filesOf[name]; is {
		r.given(words[1:], values, spare)
	}
	if !interprets {
		return false
	}
	rest := kind.behindOptions(words[1:])
	r.starter = name
	switch {
	case len(rest) == 0:
	case kind.shell && rest[0] == "-c":
		if rest = kind.behindOptions(rest[1:]); len(rest) > 0 && rest[0] == "--" {
			rest = rest[1:]
		}
		if len(rest) > 0 {
			r.text(rest[0], spare)
		}
	case !strings.HasPrefix(rest[0], "-"):
		r.need(rest[0], spare)
	}
	return false
}

// text reads a text that the shell, or another, runs next.
func (r *lineReader) text(text string, spare bool) (goesOn bool) {
	if strings.Contains(text, unknown) || r.inner == maxTexts {
		return false
	}
	file := parse(text)
	if file == nil {
		return false
	}
	r.inner++
	defer func() { r.inner-- }()
	return r.statements(file.Stmts, spare)
}

// maxTexts is how many texts are read that stand in each other.
const maxTexts = 4

// fedText is a here document that a shell is given to run, and nothing else.
func fedText(s *syntax.Stmt, words []string) (text string, is bool) {
	if len(words) != 1 || !interpreters[filepath.Base(words[0])].shell || len(s.Redirs) != 1 {
		return "", false
	}
	d := s.Redirs[0]
	if d.Op != syntax.Hdoc && d.Op != syntax.DashHdoc || d.N != nil || d.Hdoc == nil || len(d.Hdoc.Parts) != 1 {
		return "", false
	}
	lit, is := d.Hdoc.Parts[0].(*syntax.Lit)
	if !is {
		return "", false
	}
	return lit.Value, true
}

// given needs what stands behind the first of these options, which the others may
// change the place of.
func (r *lineReader) given(words, options []string, spare bool) {
	for i, word := range words {
		if slices.Contains(options, word) && i+1 < len(words) {
			r.need(words[i+1], spare)
			return
		}
	}
}

// enter is cd. That a directory of the project is not there is certain; others may
// be of the sandbox's own.
func (r *lineReader) enter(words []string, spare bool) {
	to := "~"
	if len(words) > 0 {
		to = words[len(words)-1]
	}
	if r.inProject(r.from(to)) {
		r.need(to, spare)
	}
	r.lost = to == unknown || strings.HasPrefix(to, "-") || r.lost && !whole(to)
	r.dir = r.from(to)
}

// from is a path as it is from where the text starts.
func (r *lineReader) from(path string) string {
	if whole(path) || r.dir == "" {
		return path
	}
	return filepath.Join(r.dir, path)
}

// ask notes what the text asks for, that it may be there.
func (r *lineReader) ask(words ...string) {
	for _, word := range words {
		r.asked = append(r.asked, r.from(word))
	}
}

// need notes a file or directory that is not there. spare, or asked for: the text
// knows what to do without it, and would not have to where the agent is.
func (r *lineReader) need(path string, spare bool) {
	if path == "" || path[0] == '-' || strings.Contains(path, unknown) || r.lost && !whole(path) {
		return
	}
	path = r.from(path)
	if filepath.Clean(path) == "." { // wherever that is
		return
	}
	if r.asked != nil && !slices.Contains(r.asked, path) {
		return
	}
	why := r.why(path)
	if why == "" {
		return
	}
	names := fmt.Sprintf("its command names %q, and %s", head(path, 200), why)
	switch {
	case !spare && r.asked == nil:
		r.fail(failed(gate.ScriptMissing, "%s", names))
	case r.agentHas(path):
		r.doubt = cmp.Or(r.doubt, names)
	}
}

func (r *lineReader) fail(f *gate.Failure) {
	if r.failure == nil {
		r.failure = f
	}
}
