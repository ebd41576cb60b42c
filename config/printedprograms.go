package config

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call follows one simple command.
func (r *textReader) call(c *syntax.CallExpr, fed *string, s streams) {
	for _, a := range c.Assigns {
		if len(c.Args) > 0 && a.Name.Value == "IFS" { // for this command alone
			continue
		}
		r.inner(a, s)
	}
	words := make([]string, len(c.Args))
	for i, w := range c.Args {
		r.inner(w, s)
		words[i] = spelled(w)
	}
	if len(words) > 0 {
		r.program(words, fed, s)
	}
}

var (
	// wordless print nothing, or nothing that begins like an object.
	wordless = strings.Fields(": true false exit return break continue shift sleep [ test mkdir rmdir rm touch kill umask")
	// inShell are commands that change the shell which runs them, or what the words
	// after them mean there.
	inShell = strings.Fields(`. source eval exec trap set unset read command builtin alias unalias enable hash shopt mapfile readarray
		getopts coproc bind complete compopt export declare typeset local readonly cd pushd popd wait`)
)

// program follows a command, which may be a function of the shell's. What an
// outside program prints that nobody hears is of no interest.
func (r *textReader) program(words []string, fed *string, s streams) {
	name, args := words[0], words[1:]
	if dir := path.Dir(name); dir == "/bin" || dir == "/usr/bin" {
		name = path.Base(name)
	}
	within := slices.Contains(inShell, name) || name == "printf" && len(args) > 0 && (strings.HasPrefix(args[0], "-") || !known(args[0]))
	if bodies := r.own[name]; bodies != nil {
		for _, body := range bodies {
			if !body.followed[s] {
				body.followed[s] = true
				r.stmt(body.Stmt, s)
			}
		}
		if !within && !slices.Contains(programs, name) {
			return
		}
	}
	if doubt, says := r.doubt, r.says; !s.out && !within && known(name) {
		defer func() { r.doubt, r.says = doubt, says }()
	}
	_, interpreter := interpreters[name]
	switch {
	case !known(name):
		r.unseen("which program it runs is only known then")
	case within:
		r.builtin(name, args, fed, s)
	case (name == "[" || name == "test") && slices.Contains(args, "-v"): // whose subscript may be a command
		r.unseen(computes)
	case slices.Contains(wordless, name):
	case name == "echo":
		r.echo(args)
	case name == "printf":
		r.printf(args)
	case name == "cat" && len(args) == 0 && fed != nil:
		r.prints(*fed, true)
	case name == "cat":
		r.cat(args)
	case name == "grep" || name == "egrep" || name == "fgrep":
		if !quietGrep(args) {
			r.unsure("grep prints what it finds")
		}
	case name == "jq":
		r.jq(args)
	case interpreter:
		r.interpreted(name, args, fed, s)
	case strings.Contains(name, "/"):
		r.file(words[0], "", s)
	default:
		r.unseen("what %q prints is not known", cut(name))
	}
}

// programs are those that a function may stand for, and that are known.
var programs = append(strings.Fields("echo printf cat grep egrep fgrep jq bash sh dash zsh python python3 node"), wordless...)

// builtin follows a command of the shell itself.
func (r *textReader) builtin(name string, args []string, fed *string, s streams) {
	first := ""
	if len(args) > 0 {
		first = args[0]
	}
	switch {
	case (name == "." || name == "source") && first != "":
		r.file(first, name, s)
		r.unseen("it takes in %q, which may change what follows", cut(visibleWord(first)))
	case name == "exec" && first != "" && !strings.HasPrefix(first, "-"):
		r.program(args, fed, s)
	case name == "trap" && first != "" && known(first):
		r.write(first)
		r.trapped(first)
	case name == "set" && first != "" && !slices.ContainsFunc(args, unlikeShellOption):
	case (name == "read" || name == "unset") && !slices.ContainsFunc(args, unlikeVariable):
	case name == "command" && first == "-v" && (!s.out || !slices.ContainsFunc(args[1:], maybeBrace)), name == "wait" && first == "":
	default:
		r.unseen("%s is not followed", name)
	}
}

// maybeBrace reports whether a name may be that of the brace, which command -v prints as
// it is.
func maybeBrace(name string) bool { return !known(name) || strings.HasPrefix(name, "{") }

// trapped follows what a signal runs, with the functions of the text that it
// stands in.
func (r *textReader) trapped(text string) {
	file, err := parseBash(text)
	if err != nil {
		r.unsure("it is shell that cannot be read")
		return
	}
	if text == "-" || text == "" {
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if _, ok := n.(*syntax.FuncDecl); ok { // of which what stands before it is not told
			r.unseen("it has a function in what trap runs")
		}
		return true
	})
	r.stmts(file.Stmts, heard)
}

var shellOption = regexp.MustCompile(`\A(?:[-+][efuxo]+|pipefail|errexit|nounset|noglob)\z`)

func unlikeShellOption(arg string) bool { return !shellOption.MatchString(arg) }

func unlikeVariable(arg string) bool {
	return !known(arg) || !strings.HasPrefix(arg, "-") && !ordinary(arg) || strings.HasPrefix(arg, "-") && arg != "-r" && arg != "-f" && arg != "-d" && arg != "-p"
}

// echo is read as every shell has it: one that knows -e, and one that prints it.
func (r *textReader) echo(args []string) {
	for len(args) > 0 && echoOption.MatchString(args[0]) {
		args = args[1:]
	}
	r.prints(strings.Join(args, " "), false)
}

var echoOption = regexp.MustCompile(`\A-[neE]+\z`)

func (r *textReader) printf(args []string) {
	switch {
	case len(args) == 0:
	case len(args) == 2 && (args[0] == "%s" || args[0] == `%s\n`):
		r.prints(args[1], true)
	case strings.HasPrefix(strings.TrimSpace(args[0]), "%") && !oneLine.MatchString(args[0]):
		r.unsure("what printf prints is put together as it runs")
	case oneLine.MatchString(args[0]): // each argument may begin the text
		for _, arg := range args[1:] {
			if r.prints(arg, true); !plainBeginning(arg) {
				r.unsure("what printf prints is put together as it runs")
			}
		}
	default:
		text := strings.TrimSuffix(args[0], `\n`)
		if len(args) > 1 || strings.Contains(text, "%") {
			text += unplain
		}
		r.prints(text, false)
	}
}

var oneLine = regexp.MustCompile(`\A%s(?:\\n)?\z`)

// cat shows files, of which some may hold an answer.
func (r *textReader) cat(args []string) {
	for _, name := range args {
		if known(name) && r.script != nil && len(r.read) < maxScripts {
			r.read["cat "+name] = true
			if text, ok := r.script(name); ok {
				r.write(text)
			}
		}
	}
	r.unsure("it prints a file, or what it is given to read")
}

// quietOption are options of grep that take no word of their own.
var quietOption = regexp.MustCompile(`\A(?:-[EFGPivwxs]*(q?)[EFGPivwxs]*|--(quiet|silent))\z`)

// quietGrep reports whether grep is told to print nothing.
func quietGrep(args []string) bool {
	for _, arg := range args {
		switch m := quietOption.FindStringSubmatch(arg); {
		case m == nil:
			return false
		case m[1] != "" || m[2] != "":
			return true
		}
	}
	return false
}

// jq prints an object where its program is one and nothing else.
func (r *textReader) jq(args []string) {
	var plain []string
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--arg":
			i += 2
		case jqOption.MatchString(arg):
		default:
			plain = append(plain, arg)
		}
	}
	if len(plain) == 1 && known(plain[0]) {
		if object := displayOf(plain[0]); object != nil {
			r.says = append(r.says, object)
			return
		}
	}
	r.unsure("what jq prints is put together as it runs")
}

var jqOption = regexp.MustCompile(`\A-[nc]+\z`)
