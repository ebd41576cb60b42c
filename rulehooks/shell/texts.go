package shell

import (
	"regexp"
	"slices"
	"strings"
)

// shells are programs that run a text with -c, and else what they read.
var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "mksh": true, "ash": true, "fish": true, "rbash": true}

// shellOperands are the operands of a shell.
func shellOperands(args []Word) (rest []Word, letters string) {
	return operands(args, "oO", []string{"rcfile", "init-file"})
}

// runsTexts are the texts that a command runs as a shell would.
func (r *reader) runsTexts(c Command) []string {
	switch name := c.Name(); name {
	case "eval":
		return r.all(c.Args)
	case "trap":
		rest, _ := operands(c.Args, "", nil)
		return r.all(rest[:min(1, len(rest))])
	case "watch":
		rest, _ := operands(c.Args, "n", []string{"interval"})
		return r.all(rest)
	case "su", "runuser", "script":
		return texts(r.optionTexts(c.Args, 'c', "command", "session-command"))
	case "flock": // flock FILE -c TEXT
		return texts(r.optionTexts(c.Args[:min(len(c.Args), 8)], 'c', "command"))
	case "env":
		return r.splitTexts(c.Args)
	default:
		if shells[name] || unknown(c) {
			return r.shellTexts(c.Args)
		}
	}
	return nil
}

func (r *reader) all(words []Word) []string {
	if !r.Spend(len(words)) {
		return nil
	}
	return []string{joined(words)}
}

// shellTexts are the texts of a shell's -c: what is written, and what it is with
// the shell's arguments in their places.
func (r *reader) shellTexts(args []Word) []string {
	rest, letters := shellOperands(args)
	noexec := strings.Contains(letters, "n") && !strings.ContainsAny(letters, "io") // which only a shell heeds that nobody types into
	if !strings.Contains(letters, "c") || len(rest) == 0 || noexec {
		return nil
	}
	text, args := rest[0].Text, rest[1:]
	places := len(arguments.FindAllStringIndex(text, -1))
	if places == 0 || len(args) == 0 {
		return []string{text}
	}
	size := 0
	for _, a := range args {
		size += len(a.Text) + 3
	}
	if !r.Spend(perByte * size * places) {
		return nil
	}
	return []string{text, arguments.ReplaceAllStringFunc(text, func(place string) string {
		switch which := strings.Trim(place, `"${}`); which {
		case "@", "*":
			return strings.TrimSpace(Quoted(args[1:]))
		default:
			if n := int(which[0] - '0'); n < len(args) {
				return strings.TrimSpace(Quoted(args[n : n+1]))
			}
			return ""
		}
	})}
}

// arguments are the places of a shell's arguments in a text. Inside of quotes the
// arguments' own end them; the text is read as it is written, too.
var arguments = regexp.MustCompile(`"\$(?:[@*0-9]|\{[@*0-9]\})"|\$(?:[@*0-9]|\{[@*0-9]\})`)

// Quoted are words as a shell reads them, a blank before each.
func Quoted(words []Word) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(" '" + strings.ReplaceAll(w.Text, "'", `'\''`) + "'")
	}
	return b.String()
}

// splitTexts are the texts of env's -S, which reads what it makes of one, and what
// stands behind, as its own words.
func (r *reader) splitTexts(args []Word) (all []string) {
	rest, _ := operands(args, starters["env"].short, starters["env"].long)
	for _, found := range r.optionTexts(args[:len(args)-len(rest)], 'S', "split-string") {
		words := args[found.next:]
		if !r.Spend(perByte * len(words)) {
			return nil
		}
		all = append(all, "env "+found.text+Quoted(words))
	}
	return all
}

// optionText is an option's text, and where the next word stands.
type optionText struct {
	text string
	next int
}

func texts(found []optionText) []string {
	all := make([]string, len(found))
	for i, f := range found {
		all[i] = f.text
	}
	return all
}

// optionTexts is what stands behind options of a letter, be it the last of some,
// or a name. Another option's value may look like one: all are taken.
func (r *reader) optionTexts(args []Word, letter byte, names ...string) (all []optionText) {
	if !r.Spend(len(args)) {
		return nil
	}
	for i, a := range args {
		var value string
		var is, joined bool
		if option, long := strings.CutPrefix(a.Text, "--"); long {
			option, value, joined = strings.Cut(option, "=")
			is = option != "" && slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, option) })
		} else if at := strings.IndexByte(a.Text, letter); at > 0 && a.Text[0] == '-' {
			value, is = a.Text[at+1:], true
			joined = value != ""
		}
		switch {
		case is && joined:
			all = append(all, optionText{value, i + 1})
		case is && i+1 < len(args):
			all = append(all, optionText{args[i+1].Text, i + 2})
		}
	}
	return all
}

// readsCommands reports whether a command is, or starts, a shell that takes its
// commands from standard input.
func readsCommands(words []Word) bool {
	for len(words) > 0 {
		c := Command{Program: words[0], Args: words[1:]}
		if shells[c.Name()] {
			rest, letters := shellOperands(c.Args)
			file := len(rest) > 0 && rest[0].Text != "-" && !stdin[rest[0].Text]
			return !strings.Contains(letters, "c") && (!file || strings.Contains(letters, "s"))
		}
		if reads[c.Name()] {
			return len(c.Args) > 0 && stdin[c.Args[0].Text]
		}
		words = started(c)
	}
	return false
}

// stdin are names of standard input.
var stdin = map[string]bool{"/dev/stdin": true, "/dev/fd/0": true, "/proc/self/fd/0": true}

// reads are the builtins that read a file's commands.
var reads = map[string]bool{"source": true, ".": true}

// runsFile reports whether a command, or one that it starts, runs a file as a
// shell does.
func runsFile(words []Word) bool {
	for len(words) > 0 {
		c := Command{Program: words[0], Args: words[1:]}
		if shells[c.Name()] || reads[c.Name()] {
			return true
		}
		words = started(c)
	}
	return false
}
