package config

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"stopgate/gate"
)

// streams are which of a command's outputs come to the hook's standard output.
type streams struct{ out, err bool }

// heard is what a hook starts with.
var heard = streams{out: true}

// functionBody is what a shell function runs, and with which outputs it was
// followed already.
type functionBody struct {
	*syntax.Stmt
	followed map[streams]bool
}

// shell looks at every command of a shell text. What it does not know by name, of
// the language or of programs, may print anything.
func (r *textReader) shell(text string, l language, s streams) {
	file, err := parseBash(text)
	if err != nil {
		r.unseen("it is shell that cannot be read")
		return
	}
	if l == posixText && !alikeInShells(text, file) {
		r.unseen("it is shell that sh may read otherwise than bash")
		return
	}
	outer := r.own
	r.own = map[string][]functionBody{}
	syntax.Walk(file, func(n syntax.Node) bool {
		if f, ok := n.(*syntax.FuncDecl); ok && f.Name != nil {
			if strings.Contains(f.Name.Value, "/") {
				r.unseen("it has a function by the name of a file")
			}
			r.own[f.Name.Value] = append(r.own[f.Name.Value], functionBody{f.Body, map[streams]bool{}})
		}
		return true
	})
	r.stmts(file.Stmts, s)
	r.own = outer
}

func (r *textReader) stmts(list []*syntax.Stmt, s streams) {
	for _, stmt := range list {
		r.stmt(stmt, s)
	}
}

func (r *textReader) stmt(stmt *syntax.Stmt, s streams) {
	s, fed := r.redirected(stmt.Redirs, s)
	if s.err {
		r.unsure("it puts standard error on standard output")
	}
	switch c := stmt.Cmd.(type) {
	case nil, *syntax.FuncDecl: // which is followed where it is called
	case *syntax.CallExpr:
		r.call(c, fed, s)
	case *syntax.Block:
		r.stmts(c.Stmts, s)
	case *syntax.Subshell:
		r.stmts(c.Stmts, s)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			r.stmts(c.Cond, s)
			r.stmts(c.Then, s)
		}
	case *syntax.WhileClause:
		r.stmts(c.Cond, s)
		r.stmts(c.Do, s)
	case *syntax.ForClause:
		r.inner(c.Loop, s)
		if loop, ok := c.Loop.(*syntax.WordIter); ok {
			r.sets(loop.Name)
		}
		r.stmts(c.Do, s)
	case *syntax.CaseClause:
		r.inner(c.Word, s)
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				r.inner(p, s)
			}
			r.stmts(item.Stmts, s)
		}
	case *syntax.BinaryCmd:
		left := s
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
			left.out, left.err = false, left.err && c.Op == syntax.Pipe
		}
		r.stmt(c.X, left)
		r.stmt(c.Y, s)
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		r.inner(c, s)
	case *syntax.DeclClause:
		r.declaration(c, s)
	default:
		r.unseen("it has shell in it that is not followed")
	}
}

// inner follows the commands that stand in words. Their output is a part of a word.
func (r *textReader) inner(n syntax.Node, s streams) {
	syntax.Walk(n, func(n syntax.Node) bool {
		r.numbers(n)
		switch c := n.(type) {
		case *syntax.CmdSubst:
			r.stmts(c.Stmts, streams{err: s.err})
			return false
		case *syntax.ProcSubst:
			s := s
			if c.Op == syntax.CmdIn {
				s.out = false
			}
			r.stmts(c.Stmts, s) // what is written to it has the output of where it stands
			return false
		case *syntax.Assign:
			r.sets(c.Name)
		case *syntax.ParamExp:
			if c.Exp != nil && (c.Exp.Op == syntax.AssignUnset || c.Exp.Op == syntax.AssignUnsetOrNull) {
				r.sets(c.Param)
			}
			if c.Excl || c.Exp != nil && c.Exp.Op == syntax.OtherParamOps {
				r.unseen("it works out what a variable holds")
			}
		}
		return true
	})
}

// interpreterVariable is a name by which Python and Node.js take in modules.
var interpreterVariable = regexp.MustCompile(`\A(?:PYTHON|NODE)`)

// ordinary reports whether a variable says nothing to the shell or to the programs
// that it runs.
func ordinary(name string) bool {
	return gate.HookVariable(name) && !interpreterVariable.MatchString(name)
}

func (r *textReader) sets(name *syntax.Lit) {
	if name != nil && !ordinary(name.Value) {
		r.unsure("it sets %s", cut(name.Value))
	}
}

// declaration follows local, export and their like without options.
func (r *textReader) declaration(c *syntax.DeclClause, s streams) {
	if len(c.Args) == 0 || slices.ContainsFunc(c.Args, func(a *syntax.Assign) bool { return a.Name == nil }) {
		r.unsure("%s is not followed", c.Variant.Value)
	}
	for _, a := range c.Args {
		r.inner(a, s)
	}
}

// redirected is where the outputs of a statement go, and what stands in the text
// for its standard input.
func (r *textReader) redirected(redirs []*syntax.Redirect, s streams) (_ streams, fed *string) {
	for _, d := range redirs {
		for _, w := range []*syntax.Word{d.Word, d.Hdoc} {
			if w != nil {
				r.inner(w, s)
			}
		}
		number := ""
		if d.N != nil {
			number = d.N.Value
		}
		to, both := false, false
		switch d.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.RdrIn:
			if number != "" && number != "0" {
				r.unsure("it moves its inputs about")
			}
			switch d.Op { // the last one counts
			case syntax.RdrIn:
				fed = nil
			case syntax.WordHdoc:
				fed = new(spelled(d.Word))
			default:
				fed = new(spelledParts(d.Hdoc.Parts, false))
			}
			continue
		case syntax.RdrAll, syntax.AppAll:
			to, both = r.opened(d.Word, s), true
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob:
			to = r.opened(d.Word, s)
		case syntax.DplOut:
			switch spelled(d.Word) {
			case "1":
				to = s.out
			case "2":
				to = s.err
			default:
				r.unsure("it moves its outputs about")
			}
		default:
			r.unsure("it moves its outputs about")
		}
		switch {
		case both:
			s = streams{to, to}
		case number == "" || number == "1":
			s.out = to
		case number == "2":
			s.err = to
		default:
			r.unsure("it moves its outputs about")
		}
	}
	return s, fed
}

// opened reports whether what is written to a file is the hook's answer.
func (r *textReader) opened(w *syntax.Word, s streams) bool {
	switch name := spelled(w); {
	case name == "/dev/null":
		return false
	case name == "/dev/stderr":
		return s.err
	case !known(name), deviceFile.MatchString("/" + path.Clean(name)):
		r.unseen("it writes to a file that may be its standard output")
	default:
		r.wrote = append(r.wrote, path.Base(name))
	}
	return false
}

var deviceFile = regexp.MustCompile(`/(?:dev|proc)/`)

// unplain stands for what only a running shell knows of a word.
const unplain = "\x00"

func known(word string) bool { return !strings.Contains(word, unplain) }

// spelled is what a word stands for; the project's directory is ".".
func spelled(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	if maybeSeveral(w.Parts) {
		return unplain
	}
	return spelledParts(w.Parts, false)
}

// maybeSeveral reports whether a shell may make several words of one, or another: by
// braces with a comma or two dots in them, which quotes may stand between, or a tilde.
func maybeSeveral(parts []syntax.WordPart) bool {
	open, list, first := false, false, true
	for _, part := range parts {
		if lit, ok := part.(*syntax.Lit); ok {
			if first && strings.HasPrefix(lit.Value, "~") {
				return true
			}
			open = open || strings.Contains(lit.Value, "{")
			list = list || strings.Contains(lit.Value, ",") || strings.Contains(lit.Value, ".")
		}
		first = false
	}
	return open && list
}

func spelledParts(parts []syntax.WordPart, quoted bool) string {
	var b strings.Builder
	for _, part := range parts {
		text := unplain
		switch p := part.(type) {
		case *syntax.Lit:
			switch {
			case quoted:
				text = escapeInQuotes.ReplaceAllString(p.Value, "$1")
			case !strings.ContainsAny(p.Value, `\*?[`), p.Value == "[" && len(parts) == 1:
				text = p.Value
			}
		case *syntax.SglQuoted:
			if !p.Dollar {
				text = p.Value
			}
		case *syntax.DblQuoted:
			if !p.Dollar {
				text = spelledParts(p.Parts, true)
			}
		case *syntax.ParamExp:
			if p.Param != nil && p.Exp == nil && (p.Param.Value == "CLAUDE_PROJECT_DIR" || p.Param.Value == "PWD") && plainExpansion(p) {
				text = "."
			}
		}
		b.WriteString(text)
	}
	return b.String()
}

// escapeInQuotes is a character that a backslash keeps between double quotes.
var escapeInQuotes = regexp.MustCompile("\\\\(?:([\"\\\\$`])|\n)")

// plainExpansion reports whether a variable stands there for its value alone.
func plainExpansion(p *syntax.ParamExp) bool {
	return !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0
}
