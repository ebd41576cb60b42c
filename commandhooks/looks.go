package commandhooks

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"stopgate/gate"
)

// LooksAround reports whether what a command hook says may depend on the directory
// that it starts in. It is false only where that is certain: of a Python script
// that has no way to a file, and of a shell text that calls nothing but what it
// defines and programs that read what they are given.
func LooksAround(h *gate.Hook) bool {
	if h.Args != nil {
		return true // another program, of which nobody knows
	}
	text := h.Command + h.Script
	if name, ok := shebang(h.Script); !ok || name == "python3" {
		return !ok || pythonLooks(text)
	}
	return shellLooks(text)
}

var (
	imported = regexp.MustCompile(`\b(?:import|from)\s+([^\n;#]*)`)
	// opens is in a Python text that may come to a file without another module.
	opens = regexp.MustCompile(`\b(?:open|exec|eval|modules|getattr|globals|vars)\b|__`)
	// harmless is what of the second many scripts have.
	harmless = strings.NewReplacer("__name__", "", "__main__", "")
	// pure are modules that read nothing but what they are handed.
	pure = []string{"sys", "json", "re", "string", "math", "datetime", "time", "collections", "itertools", "functools", "textwrap", "typing", "enum",
		"dataclasses", "hashlib", "base64", "html", "shlex", "fnmatch", "unicodedata"}
)

func pythonLooks(text string) bool {
	if opens.MatchString(harmless.Replace(text)) {
		return true
	}
	for _, found := range imported.FindAllStringSubmatch(text, -1) {
		modules, _, _ := strings.Cut(found[1], " import ")
		for module := range strings.SplitSeq(modules, ",") {
			if name := strings.Fields(module); len(name) == 0 || !slices.Contains(pure, name[0]) {
				return true
			}
		}
	}
	return false
}

func shellLooks(text string) bool {
	file := parse(text)
	if file == nil {
		return true
	}
	r := &lookReader{defined: map[string]bool{}}
	syntax.Walk(file, func(n syntax.Node) bool {
		if f, ok := n.(*syntax.FuncDecl); ok && f.Name != nil { // the parser takes one without
			r.defined[f.Name.Value] = true
		}
		return true
	})
	return r.looksIn(file)
}

type lookReader struct {
	defined map[string]bool // functions of the text
}

// looksIn reports whether anything in a node may look around.
func (r *lookReader) looksIn(in syntax.Node) (looks bool) {
	syntax.Walk(in, func(n syntax.Node) bool {
		looks = looks || r.may(n)
		return !looks
	})
	return looks
}

// may reports whether a node by itself, without what is in it, may look around.
func (r *lookReader) may(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.CallExpr:
		return slices.ContainsFunc(n.Args, globs) || len(n.Args) > 0 && !r.reads(n.Args)
	case *syntax.WordIter:
		return slices.ContainsFunc(n.Items, globs)
	case *syntax.ArrayElem:
		return n.Value != nil && globs(n.Value)
	case *syntax.ProcSubst:
		return true
	case *syntax.Redirect:
		return redirects(n)
	case *syntax.UnaryTest:
		return !slices.Contains([]syntax.UnTestOperator{syntax.TsNot, syntax.TsEmpStr, syntax.TsNempStr, syntax.TsVarSet, syntax.TsParen}, n.Op)
	case *syntax.BinaryTest:
		return slices.Contains([]syntax.BinTestOperator{syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno}, n.Op)
	}
	return false
}

// builtins have no operand that is a file.
var builtins = []string{"echo", "printf", "exit", "read", "true", "false", ":", "set", "shift", "return", "export", "local", "declare", "unset", "break", "continue", "let"}

// reads reports whether a call is one that comes to no file.
func (r *lookReader) reads(words []*syntax.Word) bool {
	name := words[0].Lit()
	if r.defined[name] || slices.Contains(builtins, name) {
		return true
	}
	switch name {
	case "[", "test":
		return !slices.ContainsFunc(words[1:], func(w *syntax.Word) bool {
			lit := w.Lit()
			return len(lit) > 1 && lit[0] == '-' && !slices.Contains([]string{"-z", "-n", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-a", "-o"}, lit)
		})
	}
	program, known := tellers[name]
	return known && program.pure && program.takes(words[1:])
}

// takes reports whether all words are options of a program, none of which names a
// file, and operands that are no files.
func (p program) takes(words []*syntax.Word) bool {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = written(w)
	}
	a, ok := p.arguments(texts)
	return ok && len(a.files) == 0 && len(a.operands) <= p.texts && !slices.ContainsFunc(a.operands, func(text string) bool {
		return strings.Contains(text, "import") || strings.Contains(text, "include") // jq's
	})
}

// written is what of a word stands in the text, with unknown for what does not.
func written(w *syntax.Word) string {
	var b strings.Builder
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(n.Value, `\`, ""))
		case *syntax.SglQuoted:
			b.WriteString(n.Value)
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob:
			b.WriteString(unknown)
			return false
		}
		return true
	})
	return b.String()
}
