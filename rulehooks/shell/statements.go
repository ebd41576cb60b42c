package shell

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// statement lists what a statement would start, texts that are written into a
// shell included.
func (r *reader) statement(source string, s *syntax.Stmt, depth int) {
	syntax.Walk(s, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			if call, ok := n.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
				c := Command{Assignments: assignments(source, call), Redirections: redirections(source, n)}
				r.started(c, words(source, call.Args), depth)
				r.fed(source, n, call, depth)
			}
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				r.piped(source, n, depth)
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

// fed reads what a shell takes its commands from: a here document, a here
// string, or the output of a command as a file, `bash <(echo …)`.
func (r *reader) fed(source string, s *syntax.Stmt, call *syntax.CallExpr, depth int) {
	all := words(source, call.Args)
	if text, ok := given(source, s); ok && readsCommands(all) {
		r.text(text, depth+1)
	}
	if !runsFile(all) {
		return
	}
	for _, arg := range call.Args {
		for _, part := range arg.Parts {
			file, ok := part.(*syntax.ProcSubst)
			if !ok {
				continue
			}
			for _, inner := range file.Stmts {
				if text, ok := output(source, inner); ok {
					r.text(text, depth+1)
				}
			}
		}
	}
}

// piped reads what the left side of a pipe is known to write, if the right side
// takes its commands from there.
func (r *reader) piped(source string, pipe *syntax.BinaryCmd, depth int) {
	text, known := output(source, pipe.X)
	call := first(pipe.Y)
	if !known || call == nil || len(call.Args) == 0 {
		return
	}
	all := words(source, call.Args)
	if readsCommands(all) {
		r.text(text, depth+1)
	}
	for len(all) > 0 {
		c := Command{Program: all[0], Args: all[1:]}
		if all = started(c); c.Name() == "xargs" && len(all) > 0 { // which ends its command with what it reads
			r.started(Command{}, slices.Concat(all, literals(strings.Fields(text))), depth+1)
			return
		}
	}
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

// output is what a statement is known to write: echo and printf their arguments,
// cat its here document, tee and cat what they are piped.
func output(source string, s *syntax.Stmt) (string, bool) {
	switch cmd := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			if call, ok := cmd.Y.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 && passesOn[word(source, call.Args[0]).Text] {
				return output(source, cmd.X)
			}
		}
	case *syntax.CallExpr:
		if len(cmd.Args) == 0 {
			return "", false
		}
		all := words(source, cmd.Args)
		switch (Command{Program: all[0]}).Name() {
		case "echo":
			return echoed(all[1:]), true
		case "printf":
			return printed(all[1:]), true
		case "cat", "tee":
			return given(source, s)
		}
	}
	return "", false
}

var passesOn = map[string]bool{"cat": true, "tee": true}

// echoed is what echo writes; what it takes for escapes depends on the shell, so
// they always count.
func echoed(args []Word) string {
	for len(args) > 0 && echoOption.MatchString(args[0].Text) {
		args = args[1:]
	}
	return lineBreaks(joined(args)) + "\n"
}

var echoOption = regexp.MustCompile(`^-[neE]+$`)

// printed is what printf writes, near enough for what a shell reads: each of the
// plain verbs has an argument in its place, others are left out.
func printed(args []Word) string {
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return ""
	}
	format, rest := args[0].Text, args[1:]
	var b strings.Builder
	for b.Len() < MaxBytes {
		before := len(rest)
		b.WriteString(printfVerb.ReplaceAllStringFunc(format, func(verb string) string {
			if verb == "%%" {
				return "%"
			}
			if len(rest) == 0 {
				return ""
			}
			text := rest[0].Text
			rest = rest[1:]
			return text
		}))
		if len(rest) == 0 || len(rest) == before {
			break
		}
	}
	return lineBreaks(b.String())
}

var printfVerb = regexp.MustCompile(`%[-+ #0-9.*]*[a-zA-Z%]`)

// lineBreaks makes line breaks and tabs of those that are written as escapes.
func lineBreaks(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`).Replace(s)
}

func joined(args []Word) string {
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.Text
	}
	return strings.Join(texts, " ")
}
