package shell

import (
	"slices"
	"strings"
)

// started adds a command and all that it would start itself.
func (r *reader) started(c Command, words []Word, depth int) {
	if depth > MaxDepth {
		r.guess(joined(words))
		return
	}
	for len(words) > 0 && !strings.HasPrefix(words[0].Text, "-") {
		c.Program, c.Args = words[0], words[1:]
		r.Commands = append(r.Commands, c)
		if text, ok := runsText(c); ok {
			r.text(text, depth+1)
		}
		if c.Name() == "find" {
			for _, words := range findActions(c.Args) {
				r.started(Command{}, words, depth+1)
			}
		}
		words, c = started(c), Command{}
	}
}

// starter is a program that starts another, which it is given as words.
type starter struct {
	short     string   // options of one letter that take the next word
	long      []string // … and of a name
	operands  int      // words between the options and the other program
	variables bool     // NAME=value may stand there too
	names     string   // options that only say something about it
}

var starters = map[string]starter{
	"env":     {short: "uCS", long: []string{"unset", "chdir", "split-string"}, variables: true},
	"sudo":    {short: "ughpCDrtTUR", long: []string{"user", "group", "host", "prompt", "close-from", "chdir", "role", "type", "command-timeout", "other-user", "chroot"}, variables: true},
	"doas":    {short: "uC"},
	"command": {names: "vV"},
	"builtin": {},
	"exec":    {short: "a"},
	"nohup":   {},
	"setsid":  {},
	"time":    {short: "fo", long: []string{"format", "output"}},
	"timeout": {short: "ks", long: []string{"kill-after", "signal"}, operands: 1},
	"nice":    {short: "n", long: []string{"adjustment"}},
	"ionice":  {short: "cn", long: []string{"class", "classdata"}},
	"stdbuf":  {short: "ioe", long: []string{"input", "output", "error"}},
	"chroot":  {operands: 1},
	"flock":   {short: "wE", long: []string{"timeout", "conflict-exit-code"}, operands: 1},
	"busybox": {},
	"xargs":   {short: "IndPLsaE", long: []string{"max-args", "delimiter", "max-procs", "max-lines", "max-chars", "arg-file", "process-slot-var"}},
}

// started is the command that a command starts with words of its own, none where
// it does not. A word that only a running shell knows may be a prefix, as in
// `$SUDO make`.
func started(c Command) []Word {
	s, known := starters[c.Name()]
	if !known {
		if strings.HasPrefix(c.Program.Text, "$") && !c.Program.Literal {
			return c.Args
		}
		return nil
	}
	rest, letters := operands(c.Args, s.short, s.long)
	if strings.ContainsAny(letters, s.names) {
		return nil
	}
	for s.variables && len(rest) > 0 && strings.Contains(rest[0].Text, "=") {
		rest = rest[1:]
	}
	if len(rest) > 0 && rest[0].Text == "--" {
		rest = rest[1:]
	}
	return rest[min(s.operands, len(rest)):]
}

// operands are the words after the options, and the letters of those. short and
// long are the options that take the next word if nothing hangs on them.
func operands(args []Word, short string, long []string) (rest []Word, letters string) {
	for len(args) > 0 {
		text := args[0].Text
		if len(text) < 2 || text[0] != '-' && text[0] != '+' {
			break
		}
		args = args[1:]
		if text == "--" {
			break
		}
		var takes bool
		if name, ok := strings.CutPrefix(text, "--"); ok {
			takes = slices.Contains(long, name)
		} else {
			at := strings.IndexAny(text[1:], short)
			takes = at == len(text)-2
			if at >= 0 {
				text = text[:at+2]
			}
			letters += text[1:]
		}
		if takes && len(args) > 0 {
			args = args[1:]
		}
	}
	return args, letters
}

// shells are programs that run a text with -c, and else what they read.
var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "mksh": true, "ash": true, "fish": true, "rbash": true}

// shellOperands are the operands of a shell.
func shellOperands(args []Word) (rest []Word, letters string) {
	return operands(args, "oO", []string{"rcfile", "init-file"})
}

// runsText is the text that a command runs as a shell would; ok is false where it
// runs none.
func runsText(c Command) (text string, ok bool) {
	switch name := c.Name(); name {
	case "eval":
		return joined(c.Args), true
	case "trap":
		rest, _ := operands(c.Args, "", nil)
		return joined(rest[:min(1, len(rest))]), true
	case "watch":
		rest, _ := operands(c.Args, "n", []string{"interval"})
		return joined(rest), true
	case "su", "runuser", "script":
		return optionText(c.Args, "-c", "--command", "--session-command")
	case "flock": // flock FILE -c TEXT
		return optionText(c.Args[:min(len(c.Args), 8)], "-c", "--command")
	case "env":
		rest, _ := operands(c.Args, starters[name].short, starters[name].long)
		return optionText(c.Args[:len(c.Args)-len(rest)], "-S", "--split-string")
	default:
		if !shells[name] {
			return "", false
		}
	}
	rest, letters := shellOperands(c.Args)
	if !strings.Contains(letters, "c") || len(rest) == 0 {
		return "", false
	}
	return rest[0].Text, true
}

// optionText is what stands behind one of these options.
func optionText(args []Word, options ...string) (string, bool) {
	for i, a := range args {
		for _, option := range options {
			rest, ok := strings.CutPrefix(a.Text, option)
			switch {
			case !ok:
			case rest == "" && i+1 < len(args):
				return args[i+1].Text, true
			case rest != "" && strings.HasPrefix(option, "--") == strings.HasPrefix(rest, "="):
				return strings.TrimPrefix(rest, "="), true
			}
		}
	}
	return "", false
}

// readsCommands reports whether a command is, or starts, a shell that takes its
// commands from standard input.
func readsCommands(words []Word) bool {
	for len(words) > 0 {
		c := Command{Program: words[0], Args: words[1:]}
		if shells[c.Name()] {
			rest, letters := shellOperands(c.Args)
			file := len(rest) > 0 && rest[0].Text != "-" && rest[0].Text != "/dev/stdin"
			return !strings.Contains(letters, "c") && (!file || strings.Contains(letters, "s"))
		}
		if reads[c.Name()] {
			return len(c.Args) > 0 && c.Args[0].Text == "/dev/stdin"
		}
		words = started(c)
	}
	return false
}

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

// findActions are the commands that find starts.
func findActions(args []Word) (all [][]Word) {
	for i := 0; i < len(args); i++ {
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, args[i].Text) {
			continue
		}
		from := i + 1
		for i = from; i < len(args) && args[i].Text != ";" && args[i].Text != "+"; i++ {
		}
		all = append(all, args[from:i])
	}
	return all
}
