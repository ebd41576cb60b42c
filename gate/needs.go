package gate

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Need is a file, a directory or a program that a command hook cannot do without,
// as far as its text tells before it is run. What a hook says that lacks one is
// no verdict of the hook's.
type Need struct {
	Kind NeedKind
	// Base is the variable that a path begins with: [ProjectVariable] ones, HOME
	// (also for ~) and PWD (also for $(pwd) and $(git rev-parse --show-toplevel)),
	// or the directory of a plugin; empty: Path is whole, or relative to where the
	// hook starts.
	Base string
	Path string // of a program its name; cut where the text does not tell how it goes on
	// Spare: the text deals with its absence, or makes it, since it names it in
	// another place too.
	Spare bool
}

// NeedKind says what is needed.
type NeedKind int

const (
	FileNeed    NeedKind = iota // a file that is run or read, or a directory that is entered
	ProgramNeed                 // an interpreter, by its name alone
)

// String is the need as a command has it.
func (n Need) String() string {
	switch {
	case n.Base == "HOME":
		return "~" + n.Path
	case n.Base != "":
		return "$" + n.Base + n.Path
	}
	return n.Path
}

// ProjectVariable reports whether a variable of that name holds the directory of
// the agent's project, as CLAUDE_PROJECT_DIR does.
func ProjectVariable(name string) bool { return strings.HasSuffix(name, "PROJECT_DIR") }

// Needs are what the command hook cannot do without: the scripts that it hands to
// interpreters, programs by their path, what it reads by `<`, directories that it
// enters, every use of a variable that names the project, and the interpreters
// themselves. A text that is not looked into (a script in Python, bash that cannot
// be read, more than 16 KiB) needs nothing that is known.
func (h *Hook) Needs() []Need {
	var r needsReader
	switch {
	case h.Args != nil:
		r.plainWords(append([]string{h.Command}, h.Args...))
	case h.Script != "" && strings.HasPrefix(h.Script, "#!") && !strings.HasPrefix(h.Script, "#!/bin/bash"):
	case h.Script != "":
		r.line(h.Script, maxTexts)
	default:
		r.line(h.Command, maxTexts)
	}
	return r.result()
}

// needsReader reads the commands of a line in their order.
type needsReader struct {
	needs  []Need
	told   map[string]bool // what is named beside the needs themselves
	values map[string]ref  // variables that the line sets
	dir    ref             // the directory that it has entered; the zero value: where it starts
	lost   bool            // it has entered one that is not known
	finds  bool            // it has a way of its own to find programs
}

// ref is what a word stands for: a text, behind what a variable holds.
type ref struct {
	base, path string
	open       bool // there is more that is not known
}

// whole reports whether the word is a path, wherever the line is when it is used.
func (r ref) whole() bool { return r.base != "" || path.IsAbs(r.path) }

func (r *needsReader) result() []Need {
	var all []Need
	for _, n := range r.needs {
		if n.Kind == ProgramNeed && r.finds {
			continue
		}
		n.Spare = n.Spare || r.told[n.String()]
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

func (r *needsReader) tell(w ref) {
	if r.told == nil {
		r.told = map[string]bool{}
	}
	w = r.from(w)
	r.told[Need{Base: w.base, Path: w.path}.String()] = true
}

// from is a path as it is from where the line starts.
func (r *needsReader) from(w ref) ref {
	if w.whole() || r.dir == (ref{}) {
		return w
	}
	w.base, w.path = r.dir.base, path.Join(r.dir.path, w.path)
	if w.base != "" {
		w.path = "/" + strings.TrimPrefix(w.path, "/")
	}
	return w
}

// file notes a file.
func (r *needsReader) file(w ref) { r.note(w, false) }

// note notes a file or directory, as far as it is known where it is.
func (r *needsReader) note(w ref, spare bool) {
	if w.open { // as far as its directory is known
		i := strings.LastIndexByte(w.path, '/')
		if i < 0 || i == 0 && w.base == "" {
			return
		}
		w.path = w.path[:i]
	}
	if !w.whole() && (r.lost || w.path == "" || w.path[0] == '-') {
		return
	}
	w = r.from(w)
	r.needs = append(r.needs, Need{Base: w.base, Path: w.path, Spare: spare})
}

// line reads a shell line, or a script.
func (r *needsReader) line(text string, texts int) {
	if texts == 0 || len(text) > maxCommandBytes || strings.Count(text, "(")+strings.Count(text, "[")+strings.Count(text, "{") > maxBrackets {
		return
	}
	defer func() { _ = recover() }() // a fault of the parser's says nothing about the hook
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			words := make([]ref, len(n.Args))
			for i, arg := range n.Args {
				words[i] = r.word(arg)
			}
			r.called(words, texts)
		case *syntax.Redirect:
			r.redirected(n)
		case *syntax.TestClause:
			r.tested(n)
		case *syntax.Assign:
			r.assigned(n)
		case *syntax.ParamExp:
			if _, set := r.values[n.Param.Value]; ProjectVariable(n.Param.Value) && !set {
				r.needs = append(r.needs, Need{Base: n.Param.Value})
			}
		}
		return true
	})
}

func (r *needsReader) redirected(n *syntax.Redirect) {
	if n.Word == nil || n.Hdoc != nil {
		return
	}
	switch w := r.word(n.Word); n.Op {
	case syntax.RdrIn:
		r.file(w)
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		r.tell(w)
	}
}

// tested: a line that asks whether a file is there knows what to do without it.
func (r *needsReader) tested(n *syntax.TestClause) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			r.tell(r.word(w))
		}
		return true
	})
}

// assigned keeps what a variable stands for, unless that depends on what it was.
func (r *needsReader) assigned(n *syntax.Assign) {
	if n.Name == nil || n.Value == nil {
		return
	}
	r.finds = r.finds || n.Name.Value == "PATH"
	own := false
	syntax.Walk(n.Value, func(in syntax.Node) bool {
		p, ok := in.(*syntax.ParamExp)
		own = own || ok && p.Param.Value == n.Name.Value
		return true
	})
	if own {
		return
	}
	w := r.word(n.Value)
	if r.values == nil {
		r.values = map[string]ref{}
	}
	r.values[n.Name.Value] = w
}
