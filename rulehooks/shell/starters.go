package shell

import (
	"regexp"
	"slices"
	"strings"
)

// started gives a command and all that it would start itself.
func (r *reader) started(c Command, words []Word, depth int) {
	if depth > MaxDepth {
		r.guess(joined(words))
		return
	}
	for len(words) > 0 && !strings.HasPrefix(words[0].Text, "-") && !r.over() {
		c.Program, c.Args = words[0], words[1:]
		r.give(c)
		for _, text := range r.runsTexts(c) {
			r.text(text, depth+1)
		}
		if c.Name() == "find" {
			for _, words := range findActions(c.Args) {
				r.started(Command{Assignments: slices.Clip(c.Assignments)}, words, depth+1)
			}
		}
		words = started(c)
		c = Command{Assignments: append(c.Assignments, variables(c, words)...)}
	}
}

// variables are those that a command sets for the words that it starts: those of
// env A=b make.
func variables(c Command, started []Word) (all []Assignment) {
	if !starters[c.Name()].variables {
		return nil
	}
	for _, w := range c.Args[:len(c.Args)-len(started)] {
		if name, value, is := strings.Cut(w.Text, "="); is && !strings.HasPrefix(name, "-") {
			all = append(all, Assignment{name, Word{value, w.Literal}})
		}
	}
	return all
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
	"sudo":    {short: "ughpCDrtTUR", long: []string{"user", "group", "host", "prompt", "close-from", "chdir", "role", "type", "command-timeout", "other-user", "chroot"}, variables: true, names: "lv"},
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
	"chrt":    {short: "TPD", long: []string{"sched-runtime", "sched-period", "sched-deadline"}, operands: 1},
	"taskset": {operands: 1},
	"prlimit": {short: "po", long: []string{"pid", "output"}},
	"unshare": {short: "RwSGl", long: []string{"root", "wd", "setuid", "setgid", "map-user", "map-group", "map-users", "map-groups", "propagation", "setgroups", "monotonic", "boottime", "load-interp"}},
	"nsenter": {short: "tSG", long: []string{"target", "setuid", "setgid"}},
	"setpriv": {long: []string{"ruid", "euid", "reuid", "rgid", "egid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set", "securebits", "pdeathsig", "selinux-label", "apparmor-profile"}},
	"runuser": {short: "ugGcsw", long: []string{"user", "group", "supp-group", "command", "session-command", "shell", "whitelist-environment"}},
	"stdbuf":  {short: "ioe", long: []string{"input", "output", "error"}},
	"chroot":  {short: "", long: []string{"groups", "userspec"}, operands: 1},
	"flock":   {short: "wE", long: []string{"timeout", "conflict-exit-code"}, operands: 1},
	"strace":  {short: "abeEIoOpPsSuUX"},
	"busybox": {},
	"xargs":   {short: "IndPLsaE", long: []string{"max-args", "delimiter", "max-procs", "max-lines", "max-chars", "arg-file", "process-slot-var"}},
}

// started is the command that a command starts with words of its own, none where
// it does not. A word that only a running shell knows may be a prefix, as in
// `$SUDO make`.
func started(c Command) []Word {
	s, known := starters[c.Name()]
	if !known {
		if unknown(c) {
			return c.Args
		}
		return nil
	}
	rest, letters := operands(c.Args, s.short, s.long)
	if strings.ContainsAny(letters, s.names) {
		return nil
	}
	for s.variables && len(rest) > 0 && (rest[0].Text == "-" || strings.Contains(rest[0].Text, "=")) { // env - A=b make
		rest = rest[1:]
	}
	if len(rest) > 0 && rest[0].Text == "--" {
		rest = rest[1:]
	}
	return rest[min(s.operands, len(rest)):]
}

// unknown reports whether a command may be any, as $SUDO.
func unknown(c Command) bool { return !c.Program.Literal && strings.HasPrefix(c.Program.Text, "$") }

// operands are the words after the options, and the letters of those; a letter
// with a plus takes back one with a minus. short and long are the options that
// take the next word if nothing hangs on them.
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
		if name, ok := strings.CutPrefix(text, "--"); ok { // any beginning does
			takes = slices.ContainsFunc(long, func(option string) bool { return strings.HasPrefix(option, name) })
		} else {
			at := strings.IndexAny(text[1:], short)
			takes = at == len(text)-2
			if at >= 0 {
				text = text[:at+2]
			}
			if letters += text[1:]; text[0] == '+' {
				letters = strings.Map(func(l rune) rune {
					if strings.ContainsRune(text, l) {
						return -1
					}
					return l
				}, letters)
			}
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
