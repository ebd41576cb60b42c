package config

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"stopgate/gate"
)

// hookText is what can be seen of what a hook runs.
type hookText struct {
	text  string
	whole bool // nothing else can put words into its answer
}

// maxScripts is how many files are looked at for one hook.
const maxScripts = 16

// text is the hook's own text with the scripts that it runs, as far as they can
// be seen. A server's answers cannot.
func (c *converter) text(d *declared) hookText {
	if d.Type != gate.CommandHook {
		return hookText{}
	}
	r := textReader{script: c.Script, read: map[string]bool{}, whole: true}
	line, _ := unwrapped(d)
	switch {
	case d.Script != "":
		r.add(d.Script, scriptLanguage(d.Script))
	case d.Args != nil:
		words := append([]string{d.Command}, d.Args...)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "${CLAUDE_PROJECT_DIR}", ".")
		}
		r.write(strings.Join(words, "\n"))
		r.command(words, false)
	default:
		r.add(line, "shell")
	}
	return hookText{r.text.String(), r.whole}
}

// textOf is text, which is looked for once: files are read for it.
func (c *converter) textOf(d *declared) hookText {
	if d.text == nil {
		t := c.text(d)
		d.text = &t
	}
	return *d.text
}

// textReader follows a command to the scripts that it runs. What it cannot
// follow makes the text less than whole.
type textReader struct {
	script func(path string) (string, bool)
	read   map[string]bool // paths, and what runs them
	own    map[string]bool // functions that the shell text declares
	text   strings.Builder
	whole  bool
}

func (r *textReader) write(text string) { r.text.WriteString(text + "\n") }

// add takes in a text of a language.
func (r *textReader) add(text, language string) {
	r.write(text)
	if language == "shell" {
		r.shell(text)
	} else {
		r.whole = r.whole && tellsAll(text, language)
	}
}

// scriptLanguage is that of a spec's own script.
func scriptLanguage(script string) string {
	if strings.HasPrefix(script, shebangs[1]) {
		return "python"
	}
	return "shell"
}

// shell looks at every command of a shell text.
func (r *textReader) shell(text string) {
	file, err := parseBash(text)
	if err != nil {
		r.whole = false
		return
	}
	outer := r.own
	r.own = map[string]bool{}
	swapped := false
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.FuncDecl:
			if n.Name != nil {
				r.own[n.Name.Value] = true
			}
		case *syntax.Stmt:
			swapped = swapped || swaps(n.Redirs)
		}
		return true
	})
	r.whole = r.whole && !joined.MatchString(text)
	syntax.Walk(file, func(node syntax.Node) bool {
		s, ok := node.(*syntax.Stmt)
		if !ok {
			return true
		}
		if mute(s.Redirs) && !swapped {
			return false
		}
		r.whole = r.whole && !takesIn(s.Redirs)
		if call, ok := s.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			words := make([]string, len(call.Args))
			for i, w := range call.Args {
				words[i] = plainWord(w)
			}
			r.command(words, slices.ContainsFunc(s.Redirs, heredoc))
		}
		return true
	})
	r.own = outer
}

// silences reports whether standard output goes where no answer is read.
func silences(r *syntax.Redirect) bool {
	to := plainWord(r.Word)
	switch r.Op {
	case syntax.RdrOut, syntax.RdrClob, syntax.AppOut, syntax.RdrAll, syntax.AppAll:
		return to == "/dev/null" && (r.N == nil || r.N.Value == "1")
	case syntax.DplOut:
		return to == "2" && (r.N == nil || r.N.Value == "1")
	}
	return false
}

func heredoc(r *syntax.Redirect) bool {
	return r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc
}

// unplain stands for a word that only a running shell knows.
const unplain = "\x00"

// plainWord is what a word stands for; the project's directory is ".".
func plainWord(w *syntax.Word) string {
	if w == nil {
		return unplain
	}
	return plainParts(w.Parts)
}

func plainParts(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, part := range parts {
		text := unplain
		switch p := part.(type) {
		case *syntax.Lit:
			text = p.Value
		case *syntax.SglQuoted:
			text = p.Value
		case *syntax.DblQuoted:
			text = plainParts(p.Parts)
		case *syntax.ParamExp:
			if p.Param != nil && p.Exp == nil && (p.Param.Value == "CLAUDE_PROJECT_DIR" || p.Param.Value == "PWD") {
				text = "."
			}
		}
		if _, quoted := part.(*syntax.SglQuoted); text == unplain || !quoted && strings.ContainsAny(text, `\*?`) {
			return unplain
		}
		b.WriteString(text)
	}
	return b.String()
}

// silent are programs that print their arguments, what they are told, or nothing
// that could be taken for an answer.
var silent = strings.Fields(`: [ [[ true false exit return echo printf test read set unset shift wait break continue
	tee sleep basename dirname ls rm mkdir touch mktemp kill pwd`)

// inline is the option after which an interpreter takes its script.
var inline = map[string]string{"bash": "-c", "sh": "-c", "dash": "-c", "zsh": "-c", "python": "-c", "python3": "-c", "node": "-e", "perl": "-e", "ruby": "-e"}

func isShell(program string) bool {
	return slices.Contains([]string{"bash", "sh", "dash", "zsh", ".", "source"}, program)
}

// plainOptions leave the word after them to be the script.
var plainOptions = regexp.MustCompile(`\A-[uBEIsSxev]+\z`)

// command follows one command; fed: its standard input stands in the text.
func (r *textReader) command(words []string, fed bool) {
	program := words[0]
	if dir := path.Dir(program); dir == "/bin" || dir == "/usr/bin" {
		program = path.Base(program)
	}
	_, filter := filters[program]
	switch _, interpreter := inline[program]; {
	case slices.Contains(silent, program) || r.own[program]:
	case program == "date":
		r.whole = r.whole && len(words) == 1
	case program == "git": // with -c it runs anything
		r.whole = r.whole && len(words) > 1 && (words[1] == "rev-parse" || words[1] == "status" || words[1] == "add" || words[1] == "commit")
	case program == "trap":
		r.whole = r.whole && len(words) > 1 && words[1] != unplain
		if r.whole {
			r.add(words[1], "shell")
		}
	case filter:
		r.whole = r.whole && readsOnly(program, words[1:])
	case program == "exec" && len(words) > 1:
		r.command(words[1:], fed)
	case program == "cat":
		for _, name := range words[1:] {
			r.file(name, "")
		}
	case (program == "." || program == "source") && len(words) > 1:
		r.file(words[1], program)
	case interpreter:
		r.interpreted(program, words[1:], fed)
	case strings.Contains(program, "/"):
		r.file(words[0], "")
	default:
		r.whole = false
	}
}

// interpreted follows an interpreter to its script.
func (r *textReader) interpreted(program string, args []string, fed bool) {
	for i, arg := range args {
		switch {
		case arg == inline[program] && i+1 < len(args) && args[i+1] != unplain:
			r.add(args[i+1], languageOf(program, "", ""))
			return
		case plainOptions.MatchString(arg):
		case strings.HasPrefix(arg, "-"):
			r.whole = r.whole && arg == "-" && fed
			return
		default:
			r.file(arg, program)
			return
		}
	}
	r.whole = r.whole && fed
}

// file reads a script, which an interpreter runs or, where that is empty, which
// says itself what does.
func (r *textReader) file(name, interpreter string) {
	if as := interpreter + " " + name; r.read[as] {
		return
	} else if name == unplain || r.script == nil || len(r.read) == maxScripts {
		r.whole = false
		return
	} else {
		r.read[as] = true
	}
	text, ok := r.script(name)
	if !ok || strings.ContainsRune(text, 0) {
		r.whole = false
		return
	}
	first, _, _ := strings.Cut(text, "\n")
	r.add(text, languageOf(interpreter, name, first))
}
