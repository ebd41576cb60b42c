package install

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// ownLine reports whether a shell that reads the text asks a gate and does nothing
// else. It goes by what is known to do nothing else: the call, alone or behind exec,
// env and variables; cd; a look whether a file is there or a program is found; an end
// with 0; and these joined by ;, &&, ||, if and brackets, or handed to another shell.
// One that ends with another code refuses, and is a check of its owner's.
func ownLine(text string, shells int) bool {
	file, err := parseCommand(text)
	if err != nil {
		return false
	}
	r := lineReader{shells: shells}
	return r.statements(file.Stmts) && r.asks
}

// lineReader reads statements until one is not known.
type lineReader struct {
	shells int
	asks   bool // a gate is called
}

func (r *lineReader) statements(list []*syntax.Stmt) bool {
	return !slices.ContainsFunc(list, func(s *syntax.Stmt) bool { return !r.statement(s) })
}

func (r *lineReader) statement(s *syntax.Stmt) bool {
	if s.Background || s.Coprocess || s.Disown {
		return false
	}
	if call, ok := s.Cmd.(*syntax.CallExpr); ok {
		return r.call(s, call)
	}
	if test, ok := s.Cmd.(*syntax.TestClause); ok {
		return doesNothing(test) && quiets(s.Redirs) && !computes(test)
	}
	if s.Negated || !keepsAnswer(s.Redirs) {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.Block:
		return r.statements(c.Stmts)
	case *syntax.Subshell:
		return r.statements(c.Stmts)
	case *syntax.BinaryCmd:
		return (c.Op == syntax.AndStmt || c.Op == syntax.OrStmt) && r.statement(c.X) && r.statement(c.Y)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			if !r.statements(c.Cond) || !r.statements(c.Then) {
				return false
			}
		}
		return true
	case *syntax.DeclClause:
		return c.Variant.Value == "export" && !slices.ContainsFunc(c.Args, func(a *syntax.Assign) bool { return !setsPlainly(a) })
	}
	return false
}

// call is about one simple command.
func (r *lineReader) call(s *syntax.Stmt, call *syntax.CallExpr) bool {
	if slices.ContainsFunc(call.Assigns, func(a *syntax.Assign) bool { return !setsPlainly(a) }) || !doesNothing(wordNodes(call.Args)...) {
		return false
	}
	words, literal := wordsOf(call)
	switch {
	case len(words) == 0:
		return !s.Negated && len(s.Redirs) == 0
	case looks(words):
		return quiets(s.Redirs)
	case s.Negated:
		return false
	case literal && passes(words), words[0] == "cd" && len(words) == 2:
		return quiets(s.Redirs)
	}
	if program := lookedFor(call.Args[0]); program != "" {
		words[0] = program
	}
	if !keepsAnswer(s.Redirs) || !ownWords(words, r.shells) {
		return false
	}
	r.asks = true
	return true
}

// looks reports whether a command only looks for something: a program, or what a test
// is about.
func looks(words []string) bool {
	switch words[0] {
	case "[", "test":
		return !slices.Contains(words, "-v") // whose name may have a command as its subscript
	case "which", "type":
		return true
	case "command":
		return len(words) > 1 && (words[1] == "-v" || words[1] == "-V")
	}
	return false
}

// computes reports whether a test has numbers in it, or a variable by its name: bash
// runs a command that stands in the text of one.
func computes(test *syntax.TestClause) (found bool) {
	syntax.Walk(test, func(n syntax.Node) bool {
		switch t := n.(type) {
		case *syntax.BinaryTest:
			switch t.Op {
			case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
				found = true
			}
		case *syntax.UnaryTest:
			found = found || t.Op == syntax.TsVarSet || t.Op == syntax.TsRefVar
		}
		return !found
	})
	return found
}

// passes reports whether a command does nothing, and says that all is well.
func passes(words []string) bool {
	return len(words) == 1 && (words[0] == "true" || words[0] == ":") || len(words) == 2 && words[0] == "exit" && words[1] == "0"
}

// setsPlainly reports whether an assignment gives a variable a text and does nothing
// else.
func setsPlainly(a *syntax.Assign) bool {
	return a.Name != nil && !takesInCode(a.Name.Value) && a.Index == nil && a.Array == nil && !a.Append && (a.Value == nil || doesNothing(a.Value))
}

// keepsAnswer reports whether redirections leave standard output what it is.
func keepsAnswer(redirs []*syntax.Redirect) bool {
	return !slices.ContainsFunc(redirs, func(d *syntax.Redirect) bool {
		switch {
		case d.Word == nil || !doesNothing(d.Word):
			return true
		case d.Op == syntax.WordHdoc:
			return d.N != nil
		}
		return d.N == nil || d.N.Value != "2" || !writes(d.Op)
	})
}

// quiets is keepsAnswer for what has no answer: its output may go to /dev/null too.
func quiets(redirs []*syntax.Redirect) bool {
	return !slices.ContainsFunc(redirs, func(d *syntax.Redirect) bool {
		if keepsAnswer([]*syntax.Redirect{d}) {
			return false
		}
		return d.Word == nil || d.Word.Lit() != "/dev/null" && d.Word.Lit() != "2" || !writes(d.Op) && d.Op != syntax.RdrAll && d.Op != syntax.AppAll
	})
}

func writes(op syntax.RedirOperator) bool {
	return op == syntax.RdrOut || op == syntax.AppOut || op == syntax.RdrClob || op == syntax.DplOut
}

func wordNodes(words []*syntax.Word) (nodes []syntax.Node) {
	for _, w := range words {
		nodes = append(nodes, w)
	}
	return nodes
}

// doesNothing reports whether words can be worked out without anything being done, but
// for a look where something is, or what is there to read.
func doesNothing(nodes ...syntax.Node) bool {
	known := true
	for _, n := range nodes {
		syntax.Walk(n, func(n syntax.Node) bool {
			switch c := n.(type) {
			case *syntax.CmdSubst:
				known = known && onlyTells(c)
				return false
			case *syntax.ProcSubst, *syntax.ArithmExp:
				known = false
			case *syntax.ParamExp:
				known = known && !c.Excl && c.Index == nil && c.Slice == nil && (c.Exp == nil || tells[c.Exp.Op])
			}
			return known
		})
	}
	return known
}

// tells are the operators by which a variable's value is told, or another for it.
var tells = map[syntax.ParExpOperator]bool{
	syntax.DefaultUnset: true, syntax.DefaultUnsetOrNull: true, syntax.AlternateUnset: true, syntax.AlternateUnsetOrNull: true,
	syntax.RemSmallPrefix: true, syntax.RemLargePrefix: true, syntax.RemSmallSuffix: true, syntax.RemLargeSuffix: true,
}

// onlyTells reports whether the command in $(…) only tells where something is, or
// hands on what is there to read.
func onlyTells(c *syntax.CmdSubst) bool {
	if len(c.Stmts) != 1 || c.Stmts[0].Background || !keepsAnswer(c.Stmts[0].Redirs) {
		return false
	}
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || !doesNothing(wordNodes(call.Args)...) {
		return false
	}
	words, _ := wordsOf(call)
	switch {
	case len(words) == 0:
		return false
	case looks(words):
		return words[0] == "which" || words[0] == "command"
	}
	return len(words) == 1 && (words[0] == "cat" || words[0] == "pwd") || len(words) == 2 && (words[0] == "dirname" || words[0] == "realpath") ||
		slices.Equal(words, []string{"git", "rev-parse", "--show-toplevel"})
}

// lookedFor is the program that a word looks for, as "$(command -v stopgate)" does.
func lookedFor(w *syntax.Word) string {
	parts := w.Parts
	if len(parts) == 1 {
		if quoted, ok := parts[0].(*syntax.DblQuoted); ok {
			parts = quoted.Parts
		}
	}
	if len(parts) != 1 {
		return ""
	}
	c, ok := parts[0].(*syntax.CmdSubst)
	if !ok || len(c.Stmts) != 1 {
		return ""
	}
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok {
		return ""
	}
	words, literal := wordsOf(call)
	if !literal || len(words) < 2 || !looks(words) {
		return ""
	}
	return words[len(words)-1]
}
