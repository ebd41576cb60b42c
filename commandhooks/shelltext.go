package commandhooks

import (
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// How long a text may be that is read, and how many brackets it may have, for each
// of which the parser calls itself.
const (
	maxReadBytes    = 16 << 10
	maxReadBrackets = 200
)

// parse is a shell text that is short enough to be read; nil: it is not, or no bash.
func parse(text string) (file *syntax.File) {
	if len(text) > maxReadBytes || strings.Count(text, "(")+strings.Count(text, "[")+strings.Count(text, "{") > maxReadBrackets {
		return nil
	}
	defer func() { // a fault of the parser's says nothing about the hook
		if recover() != nil {
			file = nil
		}
	}()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	return file
}

// bashOf is the text that bash reads of a job without arguments; nil: another
// interpreter does, or it cannot be read.
func (s sight) bashOf(j job) *syntax.File {
	if j.interpreter.file != s.tools.bash.file {
		return nil
	}
	return parse(j.inline + j.script)
}

// tailOf is the command whose end is that of all; nil: that is not known.
func tailOf(list []*syntax.Stmt) *syntax.CallExpr {
	if len(list) == 0 {
		return nil
	}
	last := list[len(list)-1]
	switch c := last.Cmd.(type) {
	case *syntax.CallExpr:
		if !last.Negated {
			return c
		}
	case *syntax.Block:
		return tailOf(c.Stmts)
	case *syntax.BinaryCmd:
		if c.Op != syntax.OrStmt {
			return tailOf([]*syntax.Stmt{c.Y})
		}
	}
	return nil
}

// unknown stands in a word for what only a running shell knows.
const unknown = "\x00"

// words are what the shell makes of words, as far as that is known.
func (r *lineReader) words(args []*syntax.Word) []string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = r.word(arg)
	}
	return words
}

// word is what the shell makes of a word; unknown, if that is not certain.
func (r *lineReader) word(w *syntax.Word) (text string) {
	defer func() { // as in parse
		if recover() != nil {
			text = unknown
		}
	}()
	text, err := expand.Literal(&expand.Config{Env: expand.FuncEnviron(r.variable), NoUnset: true, CmdSubst: r.substituted}, w)
	if err != nil || strings.Contains(text, unknown) || strings.ContainsAny(text, "*?[") && text != "[" && text != exitStatus {
		return unknown
	}
	return text
}

const (
	// exitStatus is how the last command ended, which stands for itself.
	exitStatus = "$?"
	// topLevel is where git finds the project, which stands for itself, too. Without
	// one it says nothing.
	topLevel = "$(git rev-parse --show-toplevel)"
)

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
	case name == "PWD" && r.dir == "" && !r.lost:
		return "."
	case name == "PWD":
		return unknown
	case name == "?":
		return exitStatus
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

// The substitutions that are known: the directory that the text is in, and the
// repository's, with what takes its place where there is none.
var (
	printsDir     = regexp.MustCompile(`^\$\(pwd\)$`)
	printsProject = regexp.MustCompile(`^\$\(git rev-parse --show-toplevel( 2>/dev/null)?( \|\| (pwd|echo "?(\.|\$PWD)"?))?\)$`)
)

// substituted writes what a command substitution comes to; an error: it is not known.
func (r *lineReader) substituted(to io.Writer, c *syntax.CmdSubst) error {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, &syntax.Word{Parts: []syntax.WordPart{c}}); err != nil {
		return err
	}
	text := topLevel
	switch {
	case r.lost, r.dir != "":
		return errNotKnown
	case printsDir.MatchString(b.String()):
		text = "."
	case !printsProject.MatchString(b.String()):
		return errNotKnown
	}
	_, err := io.WriteString(to, text)
	return err
}

var errNotKnown = errors.New("only a running shell knows")

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

// redirects reports whether a redirection names a file.
func redirects(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return false
	case syntax.DplIn, syntax.DplOut:
		to := r.Word.Lit()
		return to == "" || strings.Trim(to, "0123456789-") != ""
	}
	return !slices.Contains([]string{"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"}, r.Word.Lit())
}

// speaks reports whether what a command says on standard output is the hook's.
func speaks(list []*syntax.Redirect) bool {
	return !slices.ContainsFunc(list, func(r *syntax.Redirect) bool {
		to := r.Word.Lit()
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut:
			return (r.N == nil || r.N.Value == "1") && (to == "/dev/null" || to == "/dev/stderr")
		case syntax.RdrAll, syntax.AppAll:
			return to == "/dev/null"
		case syntax.DplOut:
			return (r.N == nil || r.N.Value == "1") && to == "2"
		}
		return false
	})
}

// globs reports whether the shell may make names of files of a word, or of what an
// expansion that is not quoted holds.
func globs(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		switch p := p.(type) {
		case *syntax.Lit:
			return strings.ContainsAny(p.Value, "*?[") && w.Lit() != "["
		case *syntax.ParamExp:
			return !p.Length && p.Param.Value != "?" && p.Param.Value != "#"
		case *syntax.ExtGlob, *syntax.CmdSubst:
			return true
		}
		return false
	})
}
