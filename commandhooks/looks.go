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
		if f, ok := n.(*syntax.FuncDecl); ok {
			r.defined[f.Name.Value] = true
		}
		return true
	})
	syntax.Walk(file, func(n syntax.Node) bool {
		r.looks = r.looks || r.may(n)
		return !r.looks
	})
	return r.looks
}

type lookReader struct {
	defined map[string]bool // functions of the text
	looks   bool
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

// globs reports whether the shell may make names of files of a word, or of what an
// expansion that is not quoted holds.
func globs(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		switch p := p.(type) {
		case *syntax.Lit:
			return strings.ContainsAny(p.Value, "*?[") && w.Lit() != "["
		case *syntax.ParamExp:
			return !p.Length && p.Param.Value != "?" && p.Param.Value != "#"
		case *syntax.ExtGlob, *syntax.CmdSubst:
			return true
		}
		return false
	})
}

// redirects reports whether a redirection names a file.
func redirects(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return false
	case syntax.DplIn, syntax.DplOut:
		to := r.Word.Lit()
		return to == "" || strings.Trim(to, "0123456789-") != ""
	}
	return !slices.Contains([]string{"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"}, r.Word.Lit())
}

// reader says how a program is called that reads its standard input and no file.
type reader struct {
	operands int    // that are none of files
	valued   string // the letters of options with a value
	plain    string // … and of those without
}

var readers = map[string]reader{
	"cat": {plain: "nsbeEtTuvA"}, "wc": {plain: "clmwL"}, "rev": {}, "tac": {},
	"head": {valued: "nc", plain: "qvz"}, "tail": {valued: "nc", plain: "qvz"}, "cut": {valued: "dfcb", plain: "sz"},
	"sort": {valued: "kt", plain: "bdfghnruVz"}, "uniq": {valued: "fsw", plain: "cdiuz"}, "tr": {operands: 2, plain: "cCdst"},
	"grep": {operands: 1, valued: "mABC", plain: "qivwxcnoEFPsazGhH"}, "egrep": {operands: 1, plain: "qivwxcnos"}, "fgrep": {operands: 1, plain: "qivwxcnos"},
	"jq": {operands: 1, plain: "recnsjaRMCS"},
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
	program, known := readers[name]
	return known && program.takes(words[1:])
}

// takes reports whether all words are options of a reader and operands that are no
// files.
func (p reader) takes(words []*syntax.Word) bool {
	operands, ended := 0, false
	for i := 0; i < len(words); i++ {
		switch lit := words[i].Lit(); {
		case lit == "--":
			ended = true
		case ended || lit == "-" || !strings.HasPrefix(lit, "-"):
			operands++
			if strings.Contains(written(words[i]), "import") || strings.Contains(written(words[i]), "include") {
				return false // jq's
			}
		case len(lit) > 1 && strings.ContainsRune(p.valued, rune(lit[1])):
			if len(lit) == 2 {
				i++ // its value
			}
		case strings.Trim(lit[1:], p.plain) != "":
			return false
		}
	}
	return operands <= p.operands
}

// written is what of a word stands in the text.
func written(w *syntax.Word) string {
	var b strings.Builder
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			b.WriteString(n.Value)
		case *syntax.SglQuoted:
			b.WriteString(n.Value)
		}
		return true
	})
	return b.String()
}
