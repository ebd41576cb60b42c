package install

import (
	"net/url"
	"slices"
	"strings"

	"stopgate/gate"
)

// Own reports whether a hook of another system's file is an entry of stopgate's: one
// by which a host, whichever it is, asks a gate, and which does nothing else. A gate
// that took it for a hook would ask itself, and so without end.
//
// A command is one only if all of it is known (see [ownLine]). One that asks a gate
// and does something beside that is the owner's hook: left out, its own check would be
// lost without a word.
//
// It sees what stands in the file. What a script does it does not: of that
// [gate.FromHook] takes care.
func Own(h *gate.Hook) bool {
	switch {
	case h.Type == gate.HTTPHook:
		base, _, _ := strings.Cut(h.URL, "#")
		base, _, _ = strings.Cut(base, "?")
		if plain, err := url.PathUnescape(base); err == nil {
			base = plain
		}
		e := Entry{URL: strings.TrimRight(base, "/")}
		return e.readURL(speaks)
	case h.Type != gate.CommandHook:
		return false
	case h.Args != nil: // no shell reads it
		return ownWords(append([]string{h.Command}, h.Args...), maxShells)
	}
	return ownLine(h.Command, maxShells)
}

// speaks reports whether a gate is asked by a protocol of that name.
func speaks(protocol string) bool {
	return protocol == gate.Native || protocol == string(gate.Antigravity) || slices.Contains(Names(), protocol)
}

// maxShells is how many shells within each other are looked into.
const maxShells = 4

// ownWords reports whether a program and its arguments ask a gate, by way of exec,
// env or a shell too.
func ownWords(words []string, shells int) bool {
	words = behindStarters(words)
	if len(words) == 0 {
		return false
	}
	if text, ok := shellText(words); ok {
		return shells > 0 && ownLine(text, shells-1)
	}
	return asksGate(words)
}

// behindStarters are a command's words without what only starts it: exec, command,
// and env with variables. nil: with an option by which more than that is done.
func behindStarters(words []string) []string {
	for len(words) > 0 {
		switch words[0] {
		case "exec", "command":
			words = words[1:]
			if len(words) > 0 && words[0] == "--" {
				words = words[1:]
			}
		case "env", "/usr/bin/env":
			words = behindEnv(words[1:])
		default:
			return words
		}
	}
	return nil
}

func behindEnv(words []string) []string {
	for len(words) > 0 {
		name, _, assigned := strings.Cut(words[0], "=")
		switch {
		case words[0] == "-i", words[0] == "-", words[0] == "--", strings.HasPrefix(words[0], "--unset="):
		case words[0] == "-u" && len(words) > 1:
			words = words[1:]
		case strings.HasPrefix(words[0], "-"):
			return nil // as -S, which is more of a command
		case !assigned:
			return words
		case takesInCode(name):
			return nil
		}
		words = words[1:]
	}
	return nil
}

// takesInCode reports whether a variable makes a program run what it names.
func takesInCode(name string) bool {
	return name == "ENV" || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || strings.HasPrefix(name, "BASH")
}

// shellText is what a shell is given to read, as in bash -lc '…'.
func shellText(words []string) (text string, ok bool) {
	if !slices.Contains([]string{"sh", "bash", "dash", "zsh"}, programName(words[0])) {
		return "", false
	}
	for i, option := range words[1:] {
		switch letters, isOption := strings.CutPrefix(option, "-"); {
		case !isOption || letters == "" || strings.Trim(letters, "leuc") != "":
			return "", false
		case strings.HasSuffix(letters, "c"):
			if i+2 < len(words) {
				return words[i+2], true
			}
			return "", false
		}
	}
	return "", false
}

// asksGate reports whether words are one call of a gate. A program by another name
// is one if it is called like a gate, and has nothing but what `stopgate hook` takes:
// people rename it.
func asksGate(words []string) bool {
	var e Entry
	if !isClient(words[0]) && (len(words) < 2 || words[1] != "hook") || !e.readWords(words, speaks) {
		return false
	}
	switch name := programName(words[0]); name {
	case "stopgate", "stopgate-hook":
		return true
	default:
		return strings.Contains(name, "gate") && takenByHook(words[2:])
	}
}

// takenByHook reports whether flags are all those of `stopgate hook`.
func takenByHook(words []string) bool {
	for i := 0; i < len(words); i++ {
		switch name, _, joined := strings.Cut(words[i], "="); name {
		case "--unattended":
		case "--protocol", "--agent", "--event", "--server", "--file", "--deadline", "--on-unreachable", "--transcript", "--config", "--data", "-f":
			if !joined {
				i++
			}
		default:
			return false
		}
	}
	return true
}
