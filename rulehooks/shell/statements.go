package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// statement gives what a statement would start, texts that are written into a
// shell included.
func (r *reader) statement(source string, s *syntax.Stmt, depth int) {
	syntax.Walk(s, func(n syntax.Node) bool {
		if r.over() {
			return false
		}
		switch n := n.(type) {
		case *syntax.Stmt:
			if call, ok := n.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
				c := Command{Assignments: assignments(source, call), Redirections: redirections(source, n)}
				r.started(c, r.words(source, call), depth)
				r.files(source, call, depth)
			}
			if text, ok := given(source, n); ok {
				r.fed(source, text, n, depth)
			}
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				if text := r.output(source, n.X); text.ok {
					r.fed(source, text.text, n.Y, depth)
				}
			}
		}
		return true
	})
}

func assignments(source string, call *syntax.CallExpr) []Assignment {
	var all []Assignment
	for _, a := range call.Assigns {
		if a.Name != nil {
			all = append(all, Assignment{a.Name.Value, word(source, a.Value)})
		}
	}
	return all
}

func redirections(source string, s *syntax.Stmt) []Redirection {
	var all []Redirection
	for _, d := range s.Redirs {
		all = append(all, Redirection{d.Op.String(), word(source, d.Word)})
	}
	return all
}

// files reads the output of a command as a file of a shell's: `bash <(echo …)`.
func (r *reader) files(source string, call *syntax.CallExpr, depth int) {
	if !runsFile(r.words(source, call)) {
		return
	}
	for _, arg := range call.Args {
		for _, part := range arg.Parts {
			file, ok := part.(*syntax.ProcSubst)
			if !ok {
				continue
			}
			for _, inner := range file.Stmts {
				if text := r.output(source, inner); text.ok {
					r.text(text.text, depth+1)
				}
			}
		}
	}
}

// fed reads what is known to stand on a statement's standard input, from a pipe, a
// here document or a here string, if a shell or xargs takes it from there.
func (r *reader) fed(source, text string, s *syntax.Stmt, depth int) {
	call := first(s)
	if call == nil || len(call.Args) == 0 {
		return
	}
	all := r.words(source, call)
	if readsCommands(all) {
		r.text(text, depth+1)
	}
	for len(all) > 0 && r.Spend(1) {
		c := Command{Program: all[0], Args: all[1:]}
		if all = started(c); c.Name() == "xargs" && len(all) > 0 {
			r.appended(c, all, text, depth)
			return
		}
	}
}

// appended gives the command that an xargs starts with what it reads behind it, or
// with -I in the places of a mark.
func (r *reader) appended(xargs Command, started []Word, text string, depth int) {
	if !r.Spend(perByte * len(text)) {
		return
	}
	read := literals(strings.Fields(unquote.Replace(text)))
	marks := r.optionTexts(xargs.Args[:len(xargs.Args)-len(started)], 'I', "replace")
	if len(marks) == 0 || marks[0].text == "" {
		r.started(Command{}, slices.Concat(started, read), depth+1)
		return
	}
	mark, line := marks[0].text, joined(read)
	replaced := slices.Clone(started)
	for i, w := range started {
		if r.Spend(perByte * strings.Count(w.Text, mark) * len(line)) {
			replaced[i].Text = strings.ReplaceAll(w.Text, mark, line)
		}
	}
	r.started(Command{}, replaced, depth+1)
}

// first is the command of a statement that gets its standard input first.
func first(s *syntax.Stmt) *syntax.CallExpr {
	for {
		var inner []*syntax.Stmt
		switch cmd := s.Cmd.(type) {
		case *syntax.CallExpr:
			return cmd
		case *syntax.BinaryCmd:
			inner = append(inner, cmd.X)
		case *syntax.TimeClause:
			inner = append(inner, cmd.Stmt)
		case *syntax.Subshell:
			inner = cmd.Stmts
		case *syntax.Block:
			inner = cmd.Stmts
		}
		if len(inner) == 0 || inner[0] == nil {
			return nil
		}
		s = inner[0]
	}
}

// given is the text of a here document or here string.
func given(source string, s *syntax.Stmt) (string, bool) {
	for _, d := range s.Redirs {
		switch d.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if d.Hdoc == nil {
				return "", true
			}
			if lit, ok := onlyLiteral(d.Hdoc); ok && quotedMark(d.Word) {
				return lit.Value, true
			}
			text, _ := unquoted(source, d.Hdoc.Parts, true)
			return text, true
		case syntax.WordHdoc:
			return word(source, d.Word).Text + "\n", true
		}
	}
	return "", false
}

func onlyLiteral(w *syntax.Word) (*syntax.Lit, bool) {
	if len(w.Parts) != 1 {
		return nil, false
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	return lit, ok
}

// quotedMark reports whether a here document's end mark is quoted, so that its
// text is taken as it is.
func quotedMark(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); !ok || strings.Contains(lit.Value, `\`) {
			return true
		}
	}
	return false
}

func joined(args []Word) string {
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.Text
	}
	return strings.Join(texts, " ")
}
