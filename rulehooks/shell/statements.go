package shell

import (
	"regexp"
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
		if all = started(c); c.Name() == "xargs" && len(all) > 0 { // which ends its command with what it reads
			if r.Spend(perByte * len(text)) {
				r.started(Command{}, slices.Concat(all, literals(strings.Fields(unquote.Replace(text)))), depth+1)
			}
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

// known is what a statement writes, where that is known.
type known struct {
	text string
	ok   bool
}

// output is what a statement is known to write: echo and printf their arguments,
// cat its here document, tee and cat what they are piped, and lists, blocks and
// the like what is in them.
func (r *reader) output(source string, s *syntax.Stmt) known {
	text, asked := r.outputs[s]
	if !asked && r.Spend(1) {
		text = r.written(source, s)
		r.outputs[s] = text
	}
	return text
}

func (r *reader) written(source string, s *syntax.Stmt) known {
	switch cmd := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			if call, ok := cmd.Y.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 && passesOn[word(source, call.Args[0]).Text] {
				return r.output(source, cmd.X)
			}
			return known{}
		}
	case *syntax.CallExpr:
		return r.callWrites(source, s, cmd)
	}
	var b strings.Builder
	wrote := false
	for _, inner := range inside(s.Cmd) {
		if text := r.output(source, inner); text.ok && r.Spend(len(text.text)) {
			wrote = true
			b.WriteString(text.text)
		}
	}
	return known{b.String(), wrote}
}

// inside are the statements that a compound command would run, all branches of
// an if.
func inside(c syntax.Command) []*syntax.Stmt {
	switch c := c.(type) {
	case *syntax.BinaryCmd:
		return []*syntax.Stmt{c.X, c.Y}
	case *syntax.Block:
		return c.Stmts
	case *syntax.Subshell:
		return c.Stmts
	case *syntax.WhileClause:
		return c.Do
	case *syntax.ForClause:
		return c.Do
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return []*syntax.Stmt{c.Stmt}
		}
	case *syntax.IfClause:
		all := slices.Clone(c.Then)
		if c.Else != nil {
			all = append(all, inside(c.Else)...)
		}
		return all
	}
	return nil
}

func (r *reader) callWrites(source string, s *syntax.Stmt, call *syntax.CallExpr) known {
	if len(call.Args) == 0 {
		return known{}
	}
	for all := r.words(source, call); len(all) > 0 && r.Spend(1); {
		c := Command{Program: all[0], Args: all[1:]}
		switch c.Name() {
		case "echo":
			return known{echoed(c.Args), true}
		case "printf":
			return known{printed(c.Args), true}
		case "cat", "tee":
			text, ok := given(source, s)
			return known{text, ok}
		}
		all = started(c)
	}
	return known{}
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
