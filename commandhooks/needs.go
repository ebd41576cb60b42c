package commandhooks

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"stopgate/gate"
)

// notRun says why the hook is not run: what it starts first exists where the agent
// is and not where hooks run. An interpreter that misses its script exits as a
// script that refuses may, and a shell as one that has no objection.
//
// Only what is certain is told ahead. A shell has more ways to name a file than
// can be listed: what else is missing is told by what the hook says; see missed.
func (s sight) notRun(j job, h *gate.Hook) *gate.Failure {
	if j.rooted {
		return nil
	}
	failure := s.lacks(j, h)
	if failure != nil {
		failure.Message = "the hook was not run: " + failure.Message
	}
	return failure
}

// Unserved says why the hook can have no verdict here, whatever the event, and
// what helps; nil: that is not known before there is one.
func (r *Runner) Unserved(h *gate.Hook) *gate.Failure {
	if r.start == nil {
		return failed(gate.SandboxUnavailable, "%s", r.status.Reason)
	}
	cwd := "/project" // of an agent that is somewhere
	if r.opt.Workspace.Access != NoWorkspace && len(r.opt.Workspace.Roots) > 0 {
		cwd = r.opt.Workspace.Roots[0]
	}
	j, failure := r.plan(gate.Input{Hook: h, Event: &gate.Event{Name: h.Event, Cwd: cwd}})
	if failure != nil {
		return failure
	}
	s := r.sight(j)
	delete(s.env, projectDir) // it stands for itself: no project is known yet
	if !s.confined {          // a whole path is seen, wherever it is
		s.cwd, s.project, s.projectUnseen = "", "", ""
	}
	if r.opt.Workspace.Access != NoWorkspace { // one agent's directory may be seen and another's not
		s.cwd, s.project = "", ""
		s.unseen, s.projectUnseen, s.agentsUnseen = "", "", ""
		s.held = append(s.held, r.opt.Workspace.Roots...)
	}
	return s.lacks(j, h)
}

// How long a text may be that is read, and how many brackets it may have, for each
// of which the parser calls itself.
const (
	maxReadBytes    = 16 << 10
	maxReadBrackets = 200
)

// lacks is what the hook starts, as far as it is certain, and does not find.
func (s sight) lacks(j job, h *gate.Hook) *gate.Failure {
	r := lineReader{sight: s, set: map[string]string{}, why: s.misses}
	r.read(j, h)
	return r.failure
}

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
			r.failure = nil
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
	set     map[string]string        // variables of the text; unknown, if they are
	dir     string                   // which it has entered; empty: where it starts
	lost    bool                     // it has entered one that is not known
	asked   []string                 // paths that it has asked for: others may not be run
	why     func(path string) string // why a file is not found; empty: it is
	tail    *syntax.CallExpr         // whose end is that of the text; nil: that is not known
	at      *syntax.CallExpr         // which is read
	starter string                   // the interpreter that it gives a script to; empty: none
	failure *gate.Failure            // the first
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
		return r.called(r.words(c.Args), spare)
	case *syntax.DeclClause:
		r.assign(c.Args)
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
	name := filepath.Base(words[0])
	plain, interprets := interpreters[interpreterName(name)]
	r.starter = ""
	switch {
	case name == "cd":
		r.enter(words[1:], spare)
		return true
	case slices.Contains(neutral, name):
		return true
	case name == "[" || name == "test":
		r.ask(words...)
		return true
	case strings.Contains(words[0], "/"):
		r.need(words[0], spare)
	case interprets && !spare && r.asked == nil && r.set["PATH"] == "" && !r.hasProgram(name):
		r.fail(failed(gate.InterpreterMissing, "its command starts %q, which is not where hooks run: install it in a directory of the system, and start the gate anew", head(name, 80)))
	}
	if script := 1; interprets {
		for script < len(words) && len(words[script]) > 1 && words[script][0] == '-' && strings.Trim(words[script][1:], plain) == "" {
			script++
		}
		if r.starter = name; script < len(words) && !strings.HasPrefix(words[script], "-") {
			r.need(words[script], spare)
		}
	}
	return false
}

// neutral are commands of the shell that leave everything where it was.
var neutral = []string{"set", "shopt", ":"}

// interpreters take a script's file, after options of these letters. Others, and
// other options, are left to what they say.
var interpreters = map[string]string{"bash": "eux", "sh": "eux", "dash": "eux", "zsh": "eux", "ksh": "eux",
	"python": "uBEIsS", "node": "", "ruby": "", "perl": "", "php": ""}

// interpreterName is what an interpreter is called without its version.
func interpreterName(word string) string {
	return strings.TrimRight(filepath.Base(word), "0123456789.")
}

// starters are programs that start another, behind options with their values,
// variables, numbers and the names of signals.
var (
	starters      = []string{"exec", "env", "timeout", "nohup", "nice"}
	beforeStarted = regexp.MustCompile(`^(-.*|\w+=.*|[\d.]+[smhd]?|[A-Z]+)$`)
)

func started(words []string) []string {
	if len(words) == 0 || !slices.Contains(starters, filepath.Base(words[0])) {
		return words
	}
	for i, word := range words[1:] {
		if !beforeStarted.MatchString(word) {
			return words[i+1:]
		}
	}
	return words
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
	if why := r.why(path); why != "" && (!spare && r.asked == nil || r.agentHas(path)) {
		r.fail(failed(gate.ScriptMissing, "its command names %q, and %s", head(path, 200), why))
	}
}

func (r *lineReader) fail(f *gate.Failure) {
	if r.failure == nil {
		r.failure = f
	}
}
