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
	// whole: it is that text and nothing else, to the letter. If not, the text is
	// for finding commands in it, but others may be there too.
	whole bool
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
			call, ok := cmd.Y.Cmd.(*syntax.CallExpr)
			if !ok || len(call.Args) == 0 || !passesOn[word(source, call.Args[0]).Text] {
				return known{}
			}
			text := r.output(source, cmd.X)
			text.whole = text.whole && len(cmd.Y.Redirs) == 0 && len(call.Args) == 1
			return text
		}
	case *syntax.CallExpr:
		return r.callWrites(source, s, cmd)
	}
	var b strings.Builder
	wrote, whole := false, len(s.Redirs) == 0 && inSequence(s.Cmd)
	for _, inner := range inside(s.Cmd) {
		text := r.output(source, inner)
		whole = whole && text.whole
		if text.ok && r.Spend(len(text.text)) {
			wrote = true
			b.WriteString(text.text)
		}
	}
	return known{b.String(), wrote, whole}
}

// inSequence reports whether a compound command runs what is inside once, and one
// after the other.
func inSequence(c syntax.Command) bool {
	var all []*syntax.Stmt
	switch c := c.(type) {
	case *syntax.Block:
		all = c.Stmts
	case *syntax.Subshell:
		all = c.Stmts
	default:
		return false
	}
	return !slices.ContainsFunc(all, func(s *syntax.Stmt) bool { return s.Background || s.Coprocess })
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
	sure := true // that it is started once, with these arguments
	for c := range chain(r.words(source, call)) {
		if !r.Spend(1) {
			break
		}
		name := c.Name()
		switch name {
		case "echo":
			text := echoed(c.Args)
			text.whole = text.whole && sure && len(s.Redirs) == 0
			return text
		case "printf":
			text := printed(c.Args)
			text.whole = text.whole && sure && len(s.Redirs) == 0
			return text
		case "cat", "tee":
			text := given(source, s)
			text.whole = text.whole && sure && len(s.Redirs) == 1 && len(c.Args) == 0
			return text
		}
		sure = sure && (name == "command" || name == "builtin" || name == "env" || name == "sudo")
	}
	return known{}
}

var passesOn = map[string]bool{"cat": true, "tee": true}

// echoed is what echo writes; what it takes for escapes depends on the shell, so
// they always count, and where there are any nothing is sure.
func echoed(args []Word) known {
	for len(args) > 0 && echoOption.MatchString(args[0].Text) {
		args = args[1:]
	}
	text := joined(args)
	return known{lineBreaks(text.Text) + "\n", true, text.Literal && !strings.Contains(text.Text, `\`)}
}

var echoOption = regexp.MustCompile(`^-[neE]+$`)

// printed is what printf writes, near enough for what a shell reads: each of the
// plain verbs has an argument in its place, others are left out.
func printed(args []Word) known {
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return known{}
	}
	whole := joined(args).Literal && plainFormat.MatchString(args[0].Text)
	format, rest := lineBreaks(args[0].Text), args[1:]
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
	text := b.String()
	if !whole { // %b has escapes of its own
		text = lineBreaks(text)
	}
	return known{text, true, whole}
}

// plainFormat is a format whose outcome is known to the letter.
var plainFormat = regexp.MustCompile(`^(?:[^%\\]|%[%s]|\\[nt\\])*$`)

var printfVerb = regexp.MustCompile(`%[-+ #0-9.*]*[a-zA-Z%]`)

// lineBreaks makes line breaks and tabs of those that are written as escapes.
func lineBreaks(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`).Replace(s)
}
