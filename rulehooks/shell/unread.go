package shell

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// unread reports whether a command runs, or may run, what is handed to it and
// cannot be read: a program in another language, commands from a pipe or a file
// that is not known. What lies in files of its own is no part of the command.
func (r *reader) unread(name string, c Command, in input) bool {
	if !r.Spend(len(c.Args)) {
		return true
	}
	switch {
	case isShell(name):
		call := shellArguments(name, c.Args)
		switch {
		case call.unsure:
			return true
		case readsInput(name, c): // typed into it would have a history
			file := len(call.operands) > 0 && !strings.Contains(call.letters, "s")
			return !in.whole || c.Partial || strings.Contains(call.letters, "i") || file && !firstInput(call.operands[0])
		case strings.Contains(call.letters, "c"):
			return len(call.operands) == 0
		}
		return len(call.operands) > 0 && !named(call.operands[0], in)
	case doubtful(name, c.Args), setsUnseen(name, c.Args), redefines(name, c.Args):
		return true
	case reads[name]:
		args := behindDashes(c.Args)
		return len(args) == 0 || c.Partial || readsInput(name, c) && !(in.whole && firstInput(args[0])) || !standardInput(args[0].Text) && (!named(args[0], in) || strings.HasPrefix(args[0].Text, "-"))
	case editors[name]:
		return name == "ed" || name == "ex" || slices.ContainsFunc(c.Args, func(w Word) bool { return strings.HasPrefix(w.Text, "+") || strings.HasPrefix(w.Text, "-") })
	case debuggers[name]:
		return true
	}
	switch name {
	case "awk", "gawk", "mawk", "nawk", "goawk":
		return awkRuns(c.Args)
	case "sed", "gsed":
		return sedRuns(c.Args)
	case "make", "gmake", "bmake":
		return makeRuns(c.Args)
	case "tar", "bsdtar", "gtar": // tar xIf PROGRAM FILE
		return len(c.Args) > 0 && !strings.HasPrefix(c.Args[0].Text, "-") && strings.ContainsAny(c.Args[0].Text, "IF")
	case "less", "more":
		return slices.ContainsFunc(c.Args, func(w Word) bool { return strings.HasPrefix(w.Text, "+") })
	case "parallel", "crontab", "pwsh", "powershell", "socat":
		return name != "crontab" || !slices.ContainsFunc(c.Args, func(w Word) bool { return w.Text == "-l" || w.Text == "-r" })
	case "emacs", "emacsclient", "expect", "osascript", "irb", "jshell", "erl", "sbcl", "ghci":
		return !asksOnly(c.Args)
	case "git":
		return slices.ContainsFunc(c.Args, func(w Word) bool {
			return strings.HasPrefix(w.Text, "--config-env") || strings.HasPrefix(w.Text, "--exec-path=")
		})
	}
	if readsInput(name, c) {
		return !in.whole
	}
	if lang, ok := languages[cmp.Or(family(name), name)]; ok {
		return lang.runs(c.Args) || c.Partial
	}
	return false
}

// named reports whether a file that a shell runs is one on the disk, or its
// text is known.
func named(w Word, in input) bool {
	return w.Literal || in.files && strings.HasPrefix(w.Text, "<(") || strings.HasPrefix(w.Text, "~") && !strings.ContainsAny(w.Text, "$`*?[{<")
}

// editors run shell commands by theirs.
var editors = map[string]bool{"vi": true, "vim": true, "nvim": true, "view": true, "gvim": true, "vimdiff": true, "ed": true, "ex": true}

var debuggers = map[string]bool{"gdb": true, "lldb": true}

// makeRuns reports whether a make reads a text, or a file that is not known, or
// has its commands run by another shell.
func makeRuns(args []Word) bool {
	for i, w := range args {
		if makeReads.MatchString(w.Text) {
			return true
		}
		found := makeFile.FindStringSubmatch(w.Text)
		if found == nil {
			continue
		}
		file := Word{found[1], w.Literal}
		if file.Text == "" && i+1 < len(args) {
			file = args[i+1]
		}
		if standardInput(file.Text) || !named(file, input{}) {
			return true
		}
	}
	return false
}

var (
	makeFile  = regexp.MustCompile(`^(?:-[a-zA-Z0-9]*?f|--(?:fi|mak)[a-z]*=?)(.*)$`)
	makeReads = regexp.MustCompile(`^(?:-[a-zA-Z0-9]*E|--ev|(?:SHELL|\.SHELLFLAGS|MAKEFLAGS)[:+?]*=)`)
)

// language is that of a program which may have a text of it for an argument.
type language struct {
	code    string   // the letters before it
	names   []string // … and the names
	values  string   // letters that take the next word
	module  string   // letters after which a module stands, and then its arguments
	runners []string // modules that run a text
	verbs   []string // first words that have the text behind them
	all     bool     // options may stand anywhere, with too many kinds of values
}

var languages = map[string]language{
	"python": {code: "ci", values: "WXQ", module: "m", runners: pythonRunners}, "pypy": {code: "ci", values: "WX", module: "m", runners: pythonRunners}, "ipython": {code: "c", module: "m", runners: pythonRunners},
	"perl": {code: "eEMm", values: "I"}, "ruby": {code: "e", values: "ICEr"}, "jruby": {code: "e", values: "ICEr"},
	"node": {code: "ep", names: []string{"eval", "print", "import"}, all: true}, "nodejs": {code: "ep", names: []string{"eval", "print", "import"}, all: true},
	"deno": {verbs: []string{"eval", "repl"}}, "bun": {code: "ep", names: []string{"eval", "print"}, verbs: []string{"repl"}},
	"php": {code: "rBRE", names: []string{"run", "process-begin", "process-code", "process-end"}, values: "cdz"},
	"lua": {code: "e", values: "l"}, "luajit": {code: "e", values: "lj"}, "julia": {code: "eE", names: []string{"eval", "print"}},
	"Rscript": {code: "e"}, "R": {code: "e"}, "octave": {names: []string{"eval"}}, "gnuplot": {code: "e"}, "dc": {code: "e", names: []string{"expression"}}, "m4": {}, "xonsh": {code: "c"}, "nu": {code: "c"},
	"tclsh": {}, "guile": {code: "ce", values: "Ls"}, "racket": {code: "e", names: []string{"eval"}},
	"elixir": {code: "e", names: []string{"eval", "rpc-eval"}}, "groovy": {code: "e"}, "scala": {code: "e"}, "ghc": {code: "e"},
}

var pythonRunners = []string{"timeit", "pdb", "bdb", "code", "codeop", "profile", "cProfile", "trace", "runpy", "idlelib", "IPython", "asyncio"}

// runs reports whether a language is given a text of it, or may read one.
func (l language) runs(args []Word) bool {
	if asksOnly(args) {
		return false
	}
	file := false
	for len(args) > 0 {
		text := args[0].Text
		if len(l.verbs) > 0 && slices.Contains(l.verbs, text) {
			return true
		}
		if !strings.HasPrefix(text, "-") || standardInput(text) {
			if !file && (standardInput(text) || !named(args[0], input{})) {
				return true
			}
			if file = true; !l.all {
				return false
			}
			args = args[1:]
			continue
		}
		args = args[1:]
		if name, long := strings.CutPrefix(text, "--"); long {
			name, _, _ = strings.Cut(name, "=")
			if name != "" && slices.ContainsFunc(l.names, func(n string) bool { return strings.HasPrefix(n, name) }) {
				return true
			}
			continue
		}
		at := strings.IndexAny(text[1:], l.code+l.module)
		switch {
		case at >= 0 && strings.IndexByte(l.module, text[1+at]) >= 0:
			module := Word{text[2+at:], true}
			if module.Text == "" && len(args) > 0 {
				module = args[0]
			}
			return !module.Literal || slices.Contains(l.runners, module.Text)
		case at >= 0:
			return true
		case strings.IndexByte(l.values, text[len(text)-1]) >= 0 && len(text) == 2 && len(args) > 0:
			args = args[1:]
		}
	}
	return !file
}

// awkRuns reports whether an awk's program may start others, or is not known.
func awkRuns(args []Word) bool {
	rest, _ := operands(args, "FvfeEil", []string{"field-separator", "assign", "file", "source", "exec", "include", "load"})
	words := args[:len(args)-len(rest)]
	if !slices.ContainsFunc(words, func(w Word) bool { return awkProgram.MatchString(w.Text) }) {
		words = args[:min(len(args), len(words)+1)]
	}
	return slices.ContainsFunc(words, func(w Word) bool {
		return !w.Literal || standardInput(w.Text) || awkStarts.MatchString(strings.ReplaceAll(w.Text, "||", "")) || strings.HasPrefix(w.Text, "-f/dev/") || w.Text == "-f-"
	})
}

// awkProgram are the options by which its program is no operand.
var awkProgram = regexp.MustCompile(`^(?:-[fe]|--(?:f|file|so|source|e|exec)\b)`)

// awkStarts is in every program that starts another: a function called by its
// name, a pipe, or gawk's @f().
var awkStarts = regexp.MustCompile(`\bsystem\b|[|@]`)

// sedRuns reports whether a sed's script may start programs, or is not known. It is
// held against what surely starts none, since a script has many ways to be written.
func sedRuns(args []Word) bool {
	scripts, files := sedScripts(args)
	return slices.ContainsFunc(scripts, func(w Word) bool { return !w.Literal || !sedHarmless.MatchString(w.Text) }) ||
		slices.ContainsFunc(files, func(w Word) bool { return standardInput(w.Text) || !named(w, input{}) })
}

// sedScripts are the scripts among a sed's arguments, and the files of them.
func sedScripts(args []Word) (scripts, files []Word) {
	var operands []Word
	for len(args) > 0 {
		w := args[0]
		args = args[1:]
		option, value, has := sedOption(w.Text)
		switch {
		case option == 0:
			operands = append(operands, w)
		case option != 'e' && option != 'f' && option != 'l':
		case has:
			w.Text = value
		case len(args) > 0:
			w, args = args[0], args[1:]
		}
		switch option {
		case 'e':
			scripts = append(scripts, w)
		case 'f':
			files = append(files, w)
		}
	}
	if scripts == nil && files == nil {
		scripts = operands[:min(1, len(operands))]
	}
	return scripts, files
}

// sedOption is the option of a word that has a value, and that if it stands there
// too; another one is n, and no option is 0.
func sedOption(text string) (option byte, value string, has bool) {
	if long, is := strings.CutPrefix(text, "--"); is {
		name, value, has := strings.Cut(long, "=")
		for _, of := range []string{"expression", "file", "line-length"} { // -e, -f and -l
			if name != "" && strings.HasPrefix(of, name) {
				return of[0], value, has
			}
		}
		return 'n', "", false
	}
	if len(text) < 2 || text[0] != '-' {
		return 0, "", false
	}
	if at := strings.IndexAny(text, "efli"); at > 0 && text[at] != 'i' { // -i.before
		return text[at], text[at+1:], at+1 < len(text)
	}
	return 'n', "", false
}

// sedHarmless is a script of commands that start nothing, and write no files.
var sedHarmless = regexp.MustCompile(sedScript())

func sedScript() string {
	address := `(?:[0-9]+(?:~[0-9]+)?|\$|/(?:[^/\\\n]|\\.)*/[IM]*)`
	commands := []string{`[pdqQDNPnxhHgG=lzF][0-9]*`, `[:btT]\s*[\w-]*`, `[aic](?:\\\n|[ \t\\])[^\n\\]*(?:\\[^\n][^\n\\]*)*`}
	for _, d := range []string{"/", "\\|", "#", ",", ":", "@", "!", "%", "~", "_", "\\+", ";", "="} {
		part := `(?:[^` + d + `\\\n]|\\.|\\\n)*`
		commands = append(commands, "s"+d+part+d+part+d+"[gpiImM0-9]*", "y"+d+part+d+part+d)
	}
	return `(?s)^(?:[\s;}]+|(?:` + address + `(?:,[+~]?` + address + `)?)?\s*!?\s*(?:\{|(?:` + strings.Join(commands, "|") + `)\s*(?:[;\n}]|$)))*$`
}
