package shell

import (
	"regexp"
	"slices"
	"strings"
)

// isShell reports whether a program runs a text with -c, and else what it reads.
func isShell(name string) bool { return shells[name] || shells[family(name)] }

var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "mksh": true, "ash": true, "fish": true, "rbash": true,
	"csh": true, "tcsh": true, "yash": true, "oksh": true, "pdksh": true, "lksh": true, "posh": true, "elvish": true}

// family is a program's name without what says which of its kind it is: its version, the
// machine it is for, how it was linked. "" is none.
func family(name string) string {
	if !strings.ContainsAny(name, "-.0123456789") {
		return ""
	}
	if found := versioned.FindStringSubmatch(name); found != nil {
		return found[1]
	}
	return ""
}

var versioned = regexp.MustCompile(`^(?:[a-z0-9_]+-linux-[a-z]+-)?([A-Za-z]+?)(?:-?[0-9][0-9.]*(?:-?[a-z][a-z0-9_-]*)?|-static|-minimal)?(?:\.exe)?$`)

// shellCall is what a shell makes of its arguments.
type shellCall struct {
	operands []Word
	letters  string // of its options
	unsure   bool   // shells would not agree, or none knows an option
}

// shellArguments are those of a shell. Of the letters in one word each o and O takes a
// word behind it, in their order.
func shellArguments(name string, args []Word) (call shellCall) {
	for len(args) > 0 {
		w := args[0]
		if text := w.Text; text == "" || text[0] != '-' && text[0] != '+' || text == "+" {
			break
		}
		args = args[1:]
		var takes int
		switch long, is := strings.CutPrefix(w.Text, "--"); {
		case w.Text == "-" || w.Text == "--":
			call.operands = args
			return call
		case is:
			takes = call.long(name, long)
		default:
			takes = call.cluster(name, w.Text)
		}
		values := args[:min(takes, len(args))]
		call.unsure = call.unsure || !w.Literal || slices.ContainsFunc(values, func(w Word) bool { return !w.Literal || rereads[w.Text] || standardInput(w.Text) })
		args = args[len(values):]
	}
	call.operands = args
	return call
}

// long takes an option's name, and says how many words behind it are its values.
func (c *shellCall) long(name, option string) (takes int) {
	option, _, joined := strings.Cut(option, "=")
	switch {
	case name == "fish" && option == "command": // its text is found by [reader.fishTexts], too
		c.letters += "c"
	case name == "fish" && option == "init-command", shellValues[option]:
		c.unsure = c.unsure || joined && name != "fish"
		if !joined {
			return 1
		}
	default:
		c.unsure = c.unsure || joined || !slices.Contains(shellFlags, option)
	}
	return 0
}

// cluster takes letters. A bash takes some for a long name, others do not.
func (c *shellCall) cluster(name, text string) (takes int) {
	sign, letters := text[0], text[1:]
	if shellValues[letters] || slices.Contains(shellFlags, letters) {
		c.unsure = true
		if shellValues[letters] {
			return 1
		}
		return 0
	}
	for i, l := range letters {
		switch {
		case l == 'o' || l == 'O' || l == 'C' && name == "fish":
			takes++
			// Some take what stands behind it for the option's name.
			c.unsure = c.unsure || i+1 < len(letters) && name != "bash" && name != "sh" && name != "dash"
		case strings.ContainsRune("dDfHp", l) && name == "fish" || !strings.ContainsRune(shellLetters, l):
			c.unsure = true
		}
	}
	switch {
	case sign == '-':
		c.letters += letters
	case strings.ContainsAny(letters, "cs"): // for bash +c is -c
		c.letters += letters
		c.unsure = true
	default:
		c.letters = strings.Map(func(l rune) rune {
			if strings.ContainsRune(letters, l) {
				return -1
			}
			return l
		}, c.letters)
	}
	return takes
}

const shellLetters = "abcefhilmnprstuvxCDEIPTVoO" // not those that do as [rereads]

var (
	shellValues = map[string]bool{"rcfile": true, "init-file": true}
	shellFlags  = []string{"norc", "noprofile", "login", "posix", "verbose", "noediting", "restricted", "version", "help", "interactive", "no-config", "private", "no-globalrcs", "no-rcs"}
)
