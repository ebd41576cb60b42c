package commandhooks

import (
	"maps"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// lineReader reads a shell text step by step, as long as it is certain what each
// comes to. What a command does that is there is not known: it may refuse, and may
// make what later ones want.
type lineReader struct {
	sight
	set     map[string]string        // variables of the text; unknown, if they are
	defined map[string]bool          // functions of the text
	dir     string                   // which it has entered; empty: where it starts
	lost    bool                     // it has entered one that is not known
	errexit bool                     // it ends with the first failure
	made    bool                     // it may have made files
	texts   int                      // that have been read in this one, as of eval
	asked   []string                 // paths that it has asked for: others may not be run
	why     func(path string) string // why a file is not found; empty: it is
	tail    *syntax.CallExpr         // whose end is that of the text; nil: that is not known
	at      *syntax.CallExpr         // which is read
	starter string                   // what wants a file; empty: the shell, to run it
	// blockOnFailure: every end but 0 refuses.
	blockOnFailure bool
	lack           *lack // the first
}

// step is what a statement comes to, as far as it is told from its text.
type step int

const (
	// unknownStep: it does something, or may not be run, or nobody can tell.
	unknownStep step = iota
	passes           // it does nothing, and what comes after is run
	either           // it does nothing but succeed or fail
	fails            // it fails for want of what is not there
	failsSpared      // … in a list that deals with its failure, so that the text goes on
	ends             // it ends the text, and refuses nothing
)

// statements are a list one after another. spare: the text deals with their
// failure.
func (r *lineReader) statements(list []*syntax.Stmt, spare bool) step {
	last := passes
	for _, s := range list {
		switch last = r.statement(s, spare); {
		case last == unknownStep, last == ends:
			return last
		case last == fails && r.errexit && !spare:
			return ends
		}
	}
	return last
}

func (r *lineReader) statement(s *syntax.Stmt, spare bool) step {
	if s.Background || s.Coprocess {
		return unknownStep
	}
	for _, to := range s.Redirs {
		if to.Op == syntax.RdrIn && redirects(to) {
			if r.starter = "the shell"; r.need(r.word(to.Word), spare) {
				return fails
			}
		}
	}
	does := r.command(s, spare)
	switch {
	case does == passes && (slices.ContainsFunc(s.Redirs, redirects) || s.Negated):
		return unknownStep
	case s.Negated && does != either:
		return unknownStep
	}
	return does
}

func (r *lineReader) command(s *syntax.Stmt, spare bool) step {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return r.call(c, s.Redirs, spare)
	case *syntax.DeclClause:
		r.assign(c.Args)
		return passes
	case *syntax.FuncDecl:
		// The parser takes one without a name, and a list behind one for its body.
		if _, list := c.Body.Cmd.(*syntax.BinaryCmd); c.Name != nil && !list {
			r.defined[c.Name.Value] = true
			return passes
		}
	case *syntax.Block:
		return r.statements(c.Stmts, spare)
	case *syntax.Subshell:
		if does := r.inChild(func() step { return r.statements(c.Stmts, spare) }); does != ends { // which is not the text's
			return does
		}
	case *syntax.TestClause:
		syntax.Walk(c, func(n syntax.Node) bool {
			if w, ok := n.(*syntax.Word); ok {
				r.ask(r.word(w))
			}
			return true
		})
		return either
	case *syntax.IfClause:
		if cond := r.statements(c.Cond, true); cond == passes || cond == either {
			r.statements(c.Then, spare) // for what it wants; it may not be run
		}
	case *syntax.BinaryCmd:
		return r.binary(c, spare)
	}
	return unknownStep
}

// inChild reads what runs in a shell of its own.
func (r *lineReader) inChild(read func() step) step {
	dir, lost, errexit, set := r.dir, r.lost, r.errexit, maps.Clone(r.set)
	defer func() { r.dir, r.lost, r.errexit, r.set = dir, lost, errexit, set }()
	return read()
}

func (r *lineReader) binary(c *syntax.BinaryCmd, spare bool) step {
	switch c.Op {
	case syntax.AndStmt:
		return r.and(c, spare)
	case syntax.OrStmt:
		return r.or(c)
	}
	first := r.inChild(func() step { return r.statement(c.X, spare) })
	last := r.inChild(func() step { return r.statement(c.Y, spare) })
	r.made = r.made || first == unknownStep
	if last == fails { // whatever the first says, nobody reads it
		return fails
	}
	return unknownStep
}

// isTest reports whether a statement only asks.
func isTest(s *syntax.Stmt) bool {
	switch c := s.Cmd.(type) {
	case *syntax.TestClause:
		return true
	case *syntax.CallExpr:
		return len(c.Args) > 0 && (c.Args[0].Lit() == "[" || c.Args[0].Lit() == "test")
	case *syntax.BinaryCmd:
		return isTest(c.X) && isTest(c.Y)
	}
	return false
}

func (r *lineReader) and(c *syntax.BinaryCmd, spare bool) step {
	switch first := r.statement(c.X, spare); {
	case first == fails, first == failsSpared:
		return failsSpared
	case first == passes:
		return r.statement(c.Y, spare)
	case first == either && isTest(c.X):
		if then := r.statement(c.Y, spare); then != unknownStep {
			return either
		}
	}
	return unknownStep
}

// or reads its second half only behind a test: what deals with the failure of a
// command may as well refuse.
func (r *lineReader) or(c *syntax.BinaryCmd) step {
	switch first := r.statement(c.X, true); {
	case first == passes:
		return passes
	case first == either && isTest(c.X):
		if then := r.statement(c.Y, true); then != unknownStep {
			return either
		}
	}
	return unknownStep
}

// call reads one command with its assignments.
func (r *lineReader) call(c *syntax.CallExpr, to []*syntax.Redirect, spare bool) step {
	r.assign(c.Assigns)
	r.at = c
	if len(c.Args) == 0 {
		if (r.errexit || r.lack != nil) && mayRefuse(c) { // whose end may be the text's
			return unknownStep
		}
		if hasCommand(c) {
			return either
		}
		return passes
	}
	words := r.words(c.Args)
	if slices.Contains(talkers, words[0]) && !r.defined[words[0]] {
		if speaks(to) || words[0] == "cat" && len(words) > 1 {
			return unknownStep
		}
		return passes
	}
	return r.called(words, spare)
}

// talkers do nothing but talk, and do not fail.
var talkers = []string{"echo", "printf", "cat"}

// hasCommand reports whether a command stands in a node.
func hasCommand(in syntax.Node) (found bool) {
	syntax.Walk(in, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			found = true
		}
		return !found
	})
	return found
}

// mayRefuse reports whether a command in an assignment may end as one that refuses:
// one that reads what it is given, and no file, does not.
func mayRefuse(in *syntax.CallExpr) bool {
	look := &lookReader{}
	return slices.ContainsFunc(in.Assigns, func(a *syntax.Assign) bool { return hasCommand(a) && look.looksIn(a) })
}
