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
			text := given(source, n)
			r.know(n, text)
			r.simple(source, n, depth)
			if text.ok {
				r.fed(source, text.text, n, depth)
				if member.MatchString(text.text) { // and read into a variable
					r.text(text.text, depth+1)
				}
			}
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				text := r.output(source, n.X)
				r.know(n.Y, text)
				if text.ok {
					r.fed(source, text.text, n.Y, depth)
				}
			}
		case *syntax.FuncDecl:
			r.function(source, n)
		default:
			r.evaluated(source, n, depth)
		}
		return true
	})
}

// simple gives what a simple command would start. Of a compound one, or none,
// there are the redirections: `{ a; } > file`, `> file`.
func (r *reader) simple(source string, s *syntax.Stmt, depth int) {
	c := Command{Program: Word{"", true}, Redirections: redirections(source, s)}
	switch cmd := s.Cmd.(type) {
	case *syntax.DeclClause:
		c.Program = Word{cmd.Variant.Value, true}
		c.Args, c.Unread = r.declared(source, cmd)
		r.give(c)
		return
	case *syntax.LetClause:
		c.Program = Word{"let", true}
		for _, e := range cmd.Exprs {
			c.Args = append(c.Args, Word{written(source, e), false})
		}
		r.give(c)
		return
	case *syntax.CallExpr:
		if len(cmd.Args) == 0 {
			break
		}
		c.Assignments = assignments(source, cmd)
		texts, whole := r.files(source, cmd)
		in := input{files: whole && !r.redefined}
		if text, is := r.read[cmd]; is {
			in.whole = text.whole && !r.redefined && !readsMore(s)
			in.plain = !strings.ContainsAny(text.text, `'"\`)
		}
		words := r.words(source, cmd)
		r.started(c, words, in, depth)
		r.call(words, depth)
		for _, text := range texts {
			r.text(text, depth+1)
		}
		return
	}
	if c.Redirections != nil {
		r.give(c)
	}
}

// know keeps what is known of what the first command of a statement reads.
func (r *reader) know(s *syntax.Stmt, text known) {
	if !text.ok {
		return
	}
	if call, direct := first(s); call != nil {
		text.whole = text.whole && direct
		r.read[call] = text
	}
}

// readsMore reports whether a statement's standard input may be another file than
// what it is piped or its here document.
func readsMore(s *syntax.Stmt) bool {
	return slices.ContainsFunc(s.Redirs, func(d *syntax.Redirect) bool {
		return d.Op == syntax.RdrIn || d.Op == syntax.RdrInOut || d.Op == syntax.DplIn
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

// files are the outputs of commands that are files of a shell's: `bash <(echo …)`.
// whole: they are all known to the letter, and there are any.
func (r *reader) files(source string, call *syntax.CallExpr) (texts []string, whole bool) {
	if !runsFile(r.words(source, call)) {
		return nil, false
	}
	files := 0
	for _, arg := range call.Args {
		for _, part := range arg.Parts {
			file, ok := part.(*syntax.ProcSubst)
			if !ok {
				continue
			}
			found, all := r.outputsOf(source, file)
			if files++; files == 1 && len(arg.Parts) == 1 {
				whole = all
			} else {
				whole = false
			}
			texts = append(texts, found...)
		}
	}
	return texts, whole
}

// outputsOf are the texts that a process substitution is known to give.
func (r *reader) outputsOf(source string, file *syntax.ProcSubst) (texts []string, whole bool) {
	whole = len(file.Stmts) == 1
	for _, inner := range file.Stmts {
		text := r.output(source, inner)
		whole = whole && text.whole
		if text.ok {
			texts = append(texts, text.text)
		}
	}
	return texts, whole
}

// fed reads what is known to stand on a statement's standard input, from a pipe, a
// here document or a here string, if a shell or xargs takes it from there.
func (r *reader) fed(source, text string, s *syntax.Stmt, depth int) {
	call, _ := first(s)
	if call == nil || len(call.Args) == 0 {
		return
	}
	all := r.words(source, call)
	if readsCommands(all) {
		r.text(text, depth+1)
	}
	for c := range chain(all) {
		if !r.Spend(1) {
			return
		}
		switch words := started(c); {
		case c.Name() == "xargs" && len(words) > 0:
			r.appended(c, words, text, depth)
			return
		case c.Name() == "parallel": // each line is a text, or the end of one
			r.text(joined(words).Text+" "+text, depth+1)
			r.text(text, depth+1)
			return
		case c.Name() == "crontab": // the times come first
			r.guess(text)
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
	mark := replaceMark(xargs.Args[:len(xargs.Args)-len(started)])
	if mark == "" {
		r.started(Command{}, slices.Concat(started, literals(strings.Fields(unquote.Replace(text)))), input{}, depth+1)
		return
	}
	for line := range strings.Lines(text) { // one command each
		line = strings.TrimSpace(unquote.Replace(line))
		replaced := slices.Clone(started)
		for i, w := range started {
			if r.Spend(perByte * (1 + strings.Count(w.Text, mark)*len(line))) {
				replaced[i].Text = strings.ReplaceAll(w.Text, mark, line)
			}
		}
		if r.over() {
			return
		}
		r.started(Command{}, replaced, input{}, depth+1)
	}
}

// first is the command of a statement that gets its standard input first, nil
// where there is none. direct: nothing on the way there gives it another.
func first(s *syntax.Stmt) (call *syntax.CallExpr, direct bool) {
	direct = true
	for {
		var inner []*syntax.Stmt
		switch cmd := s.Cmd.(type) {
		case *syntax.CallExpr:
			return cmd, direct
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
			return nil, false
		}
		direct = direct && !readsMore(s)
		s = inner[0]
	}
}

// given is the text of a here document or here string.
func given(source string, s *syntax.Stmt) known {
	var text known
	for _, d := range s.Redirs {
		switch d.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		default:
			continue
		}
		if text.ok { // a shell takes the last one
			text.whole = false
			continue
		}
		text = document(source, d)
		text.whole = text.whole && (d.N == nil || d.N.Value == "0")
	}
	return text
}

func document(source string, d *syntax.Redirect) known {
	switch {
	case d.Op == syntax.WordHdoc:
		w := word(source, d.Word)
		return known{w.Text + "\n", true, w.Literal}
	case d.Hdoc == nil:
		return known{"", true, true}
	}
	if lit, ok := onlyLiteral(d.Hdoc); ok && quotedMark(d.Word) {
		return known{lit.Value, true, true}
	}
	text, literal := unquoted(source, d.Hdoc.Parts, true)
	return known{text, true, literal}
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

// joined are words with a blank between them, literal if all are.
func joined(args []Word) Word {
	texts, literal := make([]string, len(args)), true
	for i, a := range args {
		texts[i] = a.Text
		literal = literal && a.Literal
	}
	return Word{strings.Join(texts, " "), literal}
}
