package gate

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is what a word stands for, up to where that is known.
func (r *needsReader) word(w *syntax.Word) ref {
	var got ref
	for i, part := range w.Parts {
		parts, quoted := []syntax.WordPart{part}, false
		if q, ok := part.(*syntax.DblQuoted); ok && !q.Dollar {
			parts, quoted = q.Parts, true
		}
		for j, p := range parts {
			if got.open = !r.part(&got, p, i+j == 0, len(w.Parts) == 1, quoted); got.open {
				return got
			}
		}
	}
	return got
}

// part adds a part of a word, which may be its beginning or its whole; not known:
// that depends on when it is run.
func (r *needsReader) part(got *ref, p syntax.WordPart, begins, whole, quoted bool) (known bool) {
	var b strings.Builder
	switch p := p.(type) {
	case *syntax.Lit:
		value := p.Value
		switch {
		case quoted:
			known = doubleQuoted(&b, &syntax.DblQuoted{Parts: []syntax.WordPart{p}})
		case begins && (value == "~" || strings.HasPrefix(value, "~/")):
			got.base = "HOME"
			known = plain(&b, value[1:], false, false)
		default:
			known = plain(&b, value, begins, whole)
		}
	case *syntax.SglQuoted:
		b.WriteString(p.Value)
		known = !p.Dollar
	case *syntax.ParamExp:
		var start ref
		if start, known = r.variable(p); begins && known {
			*got = start
			return !start.open
		}
		return false
	case *syntax.CmdSubst:
		if start, ok := r.here(); begins && ok && namesHere(p) {
			*got = start
			return true
		}
		return false
	}
	got.path += b.String()
	return known
}

// variable is what a use of one stands for, if anything is known of it.
func (r *needsReader) variable(p *syntax.ParamExp) (ref, bool) {
	if p.Excl || p.Length || p.Width || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Param == nil {
		return ref{}, false
	}
	name := p.Param.Value
	value, set := r.values[name]
	switch {
	case set && p.Exp == nil:
		return value, true
	case set:
		return ref{}, false
	case ProjectVariable(name): // also with another for where it is not set
		return ref{base: name}, true
	case p.Exp != nil:
		return ref{}, false
	case name == "PWD":
		return r.here()
	}
	return ref{base: name}, name == "HOME" || name == pluginVariable
}

// pluginVariable is where Claude Code has a plugin's directory.
const pluginVariable = "CLAUDE_PLUGIN_ROOT"

// here is the directory that the line is in.
func (r *needsReader) here() (ref, bool) {
	switch {
	case r.lost:
		return ref{}, false
	case r.dir == ref{}:
		return ref{base: "PWD"}, true
	case !r.dir.whole():
		return ref{base: "PWD", path: "/" + r.dir.path}, true
	}
	return r.dir, true
}

// namesHere reports whether what a substitution prints is the directory that the
// line is in, or the project around it.
func namesHere(s *syntax.CmdSubst) bool {
	if len(s.Stmts) != 1 {
		return false
	}
	call, ok := s.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	var words []string
	for _, arg := range call.Args {
		words = append(words, arg.Lit())
	}
	return words[0] == "pwd" || slices.Equal(words, []string{"git", "rev-parse", "--show-toplevel"})
}

// called reads one command.
func (r *needsReader) called(words []ref, texts int) {
	words = r.behind(words)
	if len(words) == 0 {
		return
	}
	program := words[0]
	inPath := program.base == "" && !strings.Contains(program.path, "/")
	if !inPath {
		r.file(program)
	}
	if program.open {
		return
	}
	name, rest := path.Base(program.path), words[1:]
	how, runs := runners[strings.TrimRight(name, "0123456789.")]
	switch {
	case name == "cd" || name == "pushd":
		r.enter(rest)
	case name == "." || name == "source":
		if r.finds = true; len(rest) > 0 {
			r.file(rest[0])
		}
	case runs:
		if inPath {
			r.needs = append(r.needs, Need{Kind: ProgramNeed, Path: name})
		}
		r.run(how, rest, texts)
	case slices.Contains(deals, name):
		for _, w := range rest {
			r.tell(w)
		}
	}
}

// deals are the programs that ask whether something is there, or make it.
var deals = []string{"[", "test", "which", "type", "hash", "ls", "stat", "cp", "mv", "ln", "install", "touch", "mkdir", "tee", "curl", "wget"}

// behind are the words of the command that programs like timeout start; none:
// there is none, or it is not known.
func (r *needsReader) behind(words []ref) []ref {
	for len(words) > 0 {
		name := words[0].path
		valued, wraps := wrappers[name]
		if words[0].base != "" || words[0].open || !wraps {
			return words
		}
		words = words[1:]
		for len(words) > 0 && words[0].base == "" && strings.HasPrefix(words[0].path, "-") {
			option := words[0].path
			words = words[1:]
			if name == "command" && strings.ContainsAny(option, "vV") {
				for _, w := range words {
					r.tell(w)
				}
				return nil
			}
			if len(option) == 2 && strings.Contains(valued, option[1:]) && len(words) > 0 {
				words = words[1:]
			}
		}
		for name == "env" && len(words) > 0 && strings.Contains(words[0].path, "=") {
			words = words[1:]
		}
		if name == "timeout" && len(words) > 0 {
			words = words[1:]
		}
	}
	return nil
}

// wrappers are programs that start another, with the letters of their options
// that have a value.
var wrappers = map[string]string{"exec": "a", "command": "", "nohup": "", "setsid": "", "env": "uC", "nice": "n", "timeout": "ks", "stdbuf": "ioe", "sudo": "ugCDhpRT"}

// enter is cd.
func (r *needsReader) enter(words []ref) {
	for len(words) > 0 && words[0].base == "" && len(words[0].path) > 1 && words[0].path[0] == '-' {
		words = words[1:]
	}
	to := ref{base: "HOME"}
	if len(words) > 0 {
		to = words[0]
		r.note(to, to.base == "") // which a program before it may have made
	}
	switch {
	case to.open, to == ref{path: "-"}:
		r.lost = true
	case to.whole():
		r.dir, r.lost = to, false
	case r.dir.base != "":
		r.dir.path = path.Join("/", r.dir.path, to.path)
	default:
		r.dir.path = path.Join(r.dir.path, to.path)
	}
}

// runner is how an interpreter's command line reads.
type runner struct {
	code   string // letters of options after which no script's file comes
	valued string // letters of options that have a value
	shell  bool   // what is behind -c is read as a line
	sub    bool   // scripts stand behind run, which also has other names
}

var runners = map[string]runner{
	"bash": {code: "cs", valued: "oO", shell: true}, "sh": {code: "cs", valued: "o", shell: true}, "dash": {code: "cs", valued: "o", shell: true},
	"zsh": {code: "cs", valued: "o", shell: true}, "ksh": {code: "cs", valued: "o", shell: true},
	"python": {code: "cm", valued: "WX"}, "node": {code: "ep", valued: "rC"}, "ruby": {code: "e", valued: "rI"}, "perl": {code: "eE", valued: "I"},
	"php": {code: "r", valued: "d"}, "lua": {code: "e", valued: "l"}, "Rscript": {code: "e"}, "tsx": {code: "e"}, "ts-node": {code: "ep", valued: "r"},
	"deno": {sub: true}, "bun": {code: "e", sub: true},
}

// longOptions are options of interpreters by their whole names; true: no script's
// file comes after it, false: a value does.
var longOptions = map[string]bool{"--eval": true, "--print": true, "--require": false, "--import": false, "--loader": false, "--rcfile": false, "--init-file": false}

// run finds the script among an interpreter's arguments.
func (r *needsReader) run(how runner, words []ref, texts int) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		option := w.base == "" && len(w.path) > 1 && (w.path[0] == '-' || how.shell && w.path[0] == '+')
		code, long := longOptions[w.path]
		switch {
		case w.base == "" && w.path == "-", option && (w.open || code):
			return
		case how.sub && w == ref{path: "run"}, option && w.path == "--":
		case option && long:
			i++
		case option && strings.HasPrefix(w.path, "--"):
		case option && strings.ContainsAny(w.path, how.code):
			if next := i + 1; how.shell && strings.Contains(w.path, "c") && next < len(words) && words[next].base == "" && !words[next].open {
				r.line(words[next].path, texts-1)
			}
			return
		case option:
			if strings.Contains(how.valued, w.path[len(w.path)-1:]) {
				i++
			}
		default:
			if !how.sub || w.base != "" || strings.ContainsAny(w.path, "./") {
				r.file(w)
			}
			return
		}
	}
}

// plainWords reads a command that no shell does: only the project's directory is
// put into it.
func (r *needsReader) plainWords(texts []string) {
	const project = "CLAUDE_PROJECT_DIR"
	words := make([]ref, len(texts))
	for i, text := range texts {
		if strings.Contains(text, "${"+project+"}") {
			r.needs = append(r.needs, Need{Base: project})
		}
		words[i] = ref{path: text}
		if below, ok := strings.CutPrefix(text, "${"+project+"}"); ok {
			words[i] = ref{base: project, path: below}
		}
	}
	r.called(words, maxTexts)
}
