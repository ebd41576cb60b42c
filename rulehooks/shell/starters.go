package shell

import (
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
	"chroot":  {long: []string{"groups", "userspec"}, operands: 1},
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
