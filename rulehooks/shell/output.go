package shell

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

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
