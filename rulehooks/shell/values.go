package shell

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// runsValue are variables whose value is run as a text.
var runsValue = map[string]bool{
	"PROMPT_COMMAND": true, "EDITOR": true, "VISUAL": true, "PAGER": true, "MANPAGER": true, "LESSOPEN": true, "LESSCLOSE": true, "BROWSER": true,
	"GIT_SSH_COMMAND": true, "GIT_SSH": true, "GIT_EDITOR": true, "GIT_SEQUENCE_EDITOR": true, "GIT_PAGER": true, "GIT_EXTERNAL_DIFF": true,
	"GIT_ASKPASS": true, "SSH_ASKPASS": true, "SUDO_ASKPASS": true, "GIT_PROXY_COMMAND": true, "RSYNC_RSH": true,
}

// loadsValue are variables that make other programs run what they name, or say.
var loadsValue = map[string]bool{
	"BASH_ENV": true, "ENV": true, "LD_PRELOAD": true, "LD_AUDIT": true, "DYLD_INSERT_LIBRARIES": true, "PERL5OPT": true, "PYTHONSTARTUP": true,
	"NODE_OPTIONS": true, "RUBYOPT": true, "JAVA_TOOL_OPTIONS": true, "MAKEFLAGS": true, "ZDOTDIR": true, "SHELL": true, "TAR_OPTIONS": true,
	"GIT_CONFIG_PARAMETERS": true, "GIT_CONFIG_COUNT": true, "GIT_CONFIG_GLOBAL": true, "GIT_CONFIG_SYSTEM": true, "GIT_EXEC_PATH": true,
}

// settings are the texts among variables that a command is given, and whether one
// makes it run what cannot be read.
func settings(all []Assignment) (texts []Word, loads bool) {
	for _, a := range all {
		switch {
		case runsValue[a.Name] && a.Value.Text != "":
			texts = append(texts, Word{strings.TrimPrefix(a.Value.Text, "|"), a.Value.Literal}) // LESSOPEN='|a'
		case runs(a.Name) && a.Value.Text != "":
			loads = true
		}
	}
	return texts, loads
}

// evaluated gives what a shell runs of values and texts that stand in a node, and
// not in a command: it expands an array's index once more when it works it out, and
// the values of variables where it is told to.
func (r *reader) evaluated(source string, n syntax.Node, depth int) {
	switch n := n.(type) {
	case *syntax.Assign:
		r.assigned(source, n, depth)
	case *syntax.ParamExp:
		r.parameter(source, n, depth)
	case *syntax.CallExpr:
		r.indices(source, n, depth)
	case *syntax.LetClause:
		for _, e := range n.Exprs {
			r.index(e, depth)
		}
	case *syntax.ArithmCmd:
		r.index(n.X, depth)
		inside := strings.TrimSuffix(strings.TrimPrefix(written(source, n), "(("), "))")
		if wordsInside.MatchString(inside) { // for a shell without arithmetic commands these are brackets
			r.text(inside, depth+1)
		}
	case *syntax.CStyleLoop:
		r.index(n.Init, depth)
		r.index(n.Cond, depth)
		r.index(n.Post, depth)
	case *syntax.WordIter:
		for _, w := range n.Items {
			r.substituted(quoted(w), depth)
		}
		if runs(n.Name.Value) {
			r.hidden(n.Name.Value)
		}
	case *syntax.ArithmExp:
		r.index(n.X, depth)
	case *syntax.UnaryTest:
		r.index(n.X, depth)
	case *syntax.BinaryTest:
		r.index(n.X, depth)
		r.index(n.Y, depth)
	}
}

// hidden is a command that is run by what is set, and not listed.
func (r *reader) hidden(why string) {
	r.give(Command{Program: Word{"", true}, Assignments: []Assignment{{Name: why}}, Unread: true})
}

// parameter gives what ${…} runs.
func (r *reader) parameter(source string, p *syntax.ParamExp, depth int) {
	r.index(p.Index, depth)
	if p.Slice != nil {
		r.index(p.Slice.Offset, depth)
		r.index(p.Slice.Length, depth)
	}
	if p.Repl != nil {
		r.substituted(quoted(p.Repl.Orig), depth)
		r.substituted(quoted(p.Repl.With), depth)
	}
	if p.Exp == nil {
		return
	}
	r.substituted(quoted(p.Exp.Word), depth) // single quotes are none inside of double ones
	switch p.Exp.Op {
	case syntax.OtherParamOps:
		if word(source, p.Exp.Word).Text == "P" {
			r.give(Command{Program: Word{written(source, p), false}, Unread: true})
		}
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if _, table := tables[p.Param.Value]; runs(p.Param.Value) || table {
			r.hidden(p.Param.Value)
		}
	}
}

// assigned gives what variables that are set make a shell run, now or when it
// looks at them.
func (r *reader) assigned(source string, a *syntax.Assign, depth int) {
	r.index(a.Index, depth)
	value := quoted(a.Value)
	r.substituted(value, depth)
	if r.joins(value) || renames(a) {
		r.hidden(written(source, a))
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			r.index(e.Index, depth)
			r.substituted(quoted(e.Value), depth)
		}
		if a.Name != nil && runs(a.Name.Value) {
			r.hidden(a.Name.Value)
		}
	}
	if a.Name == nil || a.Value == nil {
		return
	}
	set := Assignment{a.Name.Value, word(source, a.Value)}
	texts, loads := settings([]Assignment{set})
	if loads || len(texts) > 0 && !texts[0].Literal {
		r.give(Command{Program: Word{"", true}, Assignments: []Assignment{set}, Unread: true})
	}
	for _, text := range texts {
		r.text(text.Text, depth+1)
	}
	if !loads {
		return
	}
	for _, p := range a.Value.Parts { // BASH_ENV=<(echo …)
		if file, ok := p.(*syntax.ProcSubst); ok {
			texts, _ := r.outputsOf(source, file)
			for _, text := range texts {
				r.text(text, depth+1)
			}
		}
	}
}

// joins reports whether of the values so far one ends with a dollar sign and another
// begins with a bracket, which together may be a substitution.
func (r *reader) joins(value string) bool {
	joined := r.dollar && strings.HasPrefix(value, "(")
	r.dollar = r.dollar || strings.HasSuffix(value, "$")
	return joined
}

// index gives what quoted words of an expression run when it is worked out.
func (r *reader) index(e syntax.Node, depth int) {
	if w, ok := e.(*syntax.Word); ok {
		r.substituted(quoted(w), depth)
		return
	}
	if e == nil {
		return
	}
	syntax.Walk(e, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Word:
			r.substituted(quoted(n), depth)
			return false
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp:
			return false // which come by themselves
		}
		return r.Spend(1) && !r.stopped
	})
}

// wordsInside is an expression that could be a program with arguments.
var wordsInside = regexp.MustCompile(`^\s*[\w./]+\s+[-+\w./~"'$]`)

// member is one of an array with a substitution for its index.
var member = regexp.MustCompile("(?m)^[A-Za-z_][A-Za-z0-9_]*\\[[^\\]]*(?:\\$\\(|`)")

// takesNames are builtins that work out an index of a variable's name.
var takesNames = map[string]bool{"test": true, "[": true, "printf": true, "read": true, "unset": true, "mapfile": true, "readarray": true, "wait": true,
	"declare": true, "typeset": true, "export": true, "readonly": true, "local": true, "let": true, "getopts": true}

// indices gives what the names that a builtin takes run.
func (r *reader) indices(source string, call *syntax.CallExpr, depth int) {
	for _, arg := range call.Args[min(1, len(call.Args)):] {
		text := quoted(arg)
		if member.MatchString(text) { // and a command may work it out
			r.text(text, depth+1)
			continue
		}
		if at := strings.IndexByte(text, '['); at < 0 || !substitutes(text[at:]) || !r.Spend(len(call.Args)) {
			continue
		}
		for c := range chain(r.words(source, call)) {
			name := c.Name()
			plain := (name == "test" || name == "[" || name == "printf") && !strings.Contains(" "+joined(c.Args).Text, " -v")
			if takesNames[name] && !plain {
				r.text(text, depth+1)
			}
		}
	}
}

// substituted reads a value if there is a substitution in it.
func (r *reader) substituted(text string, depth int) {
	if substitutes(text) {
		r.text(text, depth+1)
	}
}

func substitutes(text string) bool {
	return strings.Contains(text, "$(") || strings.Contains(text, "`")
}

// quoted is a word without its quotes and without what a shell puts into it: where
// that has a substitution, it was kept from the shell so far.
func quoted(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	if lit, ok := onlyLiteral(w); ok && !strings.Contains(lit.Value, `\`) {
		return "" // in which none can stand
	}
	var b strings.Builder
	keep(&b, w.Parts, false)
	return b.String()
}

func keep(b *strings.Builder, parts []syntax.WordPart, inside bool) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.DblQuoted:
			keep(b, p.Parts, true)
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value, inside))
		case *syntax.SglQuoted:
			text, _ := unquoted("", []syntax.WordPart{p}, false)
			b.WriteString(text)
		}
	}
}

// declared are the arguments of export and its like. unseen: one sets what says what is
// run, and not where [reader.assigned] sees it.
func (r *reader) declared(source string, d *syntax.DeclClause) (all []Word, unseen bool) {
	var names []Word
	reference := false
	for _, a := range d.Args {
		if a.Name == nil {
			w := word(source, a.Value)
			all, names = append(all, w), append(names, w)
			reference = reference || strings.HasPrefix(w.Text, "-") && strings.Contains(w.Text, "n")
			continue
		}
		set := Word{a.Name.Value, a.Index == nil && a.Array == nil}
		if !a.Naked {
			value := word(source, a.Value)
			set = Word{set.Text + "=" + value.Text, set.Literal && value.Literal}
		}
		all = append(all, set)
	}
	if reference { // declare -n x=BASH_CMDS: what is set by the name of x is another's
		names = all
	}
	return all, setsUnseen(d.Variant.Value, names)
}
