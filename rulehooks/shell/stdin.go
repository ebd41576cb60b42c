package shell

import (
	"path"
	"slices"
	"strings"
)

// readsCommands reports whether a command is, or starts, a shell that takes its
// commands from standard input.
func readsCommands(words []Word) bool {
	for c := range chain(words) {
		if readsInput(c.Name(), c) {
			return true
		}
	}
	return false
}

// readsInput is readsCommands of a command without those that it starts.
func readsInput(name string, c Command) bool {
	switch {
	case isShell(name):
		call := shellArguments(name, c.Args)
		file := len(call.operands) > 0 && !standardInput(call.operands[0].Text)
		return !strings.Contains(call.letters, "c") && (!file || strings.Contains(call.letters, "s")) && !asksOnly(c.Args)
	case reads[name]:
		args := behindDashes(c.Args)
		return len(args) > 0 && standardInput(args[0].Text)
	case name == "su" || name == "sg" || name == "newgrp":
		_, letters := operands(c.Args, "gGswT", nil)
		return !strings.Contains(letters, "c")
	case name == "at" || name == "batch":
		_, letters := operands(c.Args, "qt", nil)
		return !strings.ContainsAny(letters, "fldrcV")
	case name == "ssh":
		rest, letters := operands(c.Args, sshShort, nil)
		if len(rest) > 0 {
			rest, _ = operands(rest[1:], sshShort, nil)
		}
		return len(rest) == 0 && !strings.ContainsAny(letters, "NVQGO")
	}
	s := starters[name]
	return s.shell && len(started(c)) == 0 && !asksOnly(c.Args) && !strings.ContainsAny(lettersOf(c, s), "c"+s.names)
}

func lettersOf(c Command, s starter) string {
	_, letters, _ := operandsOf(c.Args, bare[c.Name()], s.short, s.long)
	return letters
}

// asksOnly reports whether a program is asked only what it is.
func asksOnly(args []Word) bool {
	return len(args) == 1 && slices.Contains([]string{"--version", "--help", "-V", "-v", "-h", "-help"}, args[0].Text)
}

// standardInput reports whether a file is, or may be, one that stands open already, or a
// terminal. Those have many paths: through the directory above, and through a process's root.
func standardInput(name string) bool {
	name = path.Clean(name)
	if up := strings.TrimLeft(name, "./"); strings.HasPrefix(name, "../") {
		name = "/" + up
	}
	switch base := path.Base(name); {
	case name == "-" || base == "stdin" || strings.HasPrefix(name, "/proc/") || strings.Contains(name, "/fd/"):
		return true
	case strings.Trim(base, "0123456789") == "": // with /dev/fd for the directory
		return base != ""
	}
	return strings.HasPrefix(name, "/dev/") && name != "/dev/null" && !strings.HasPrefix(name, "/dev/shm/")
}

// firstInput reports whether a file is standard input, and not another that stands open.
func firstInput(w Word) bool {
	name := path.Clean(w.Text)
	return w.Literal && (name == "-" || name == "/dev/fd/0" || name == "/proc/self/fd/0" || path.Base(name) == "stdin")
}

// reads are the builtins that read a file's commands.
var reads = map[string]bool{"source": true, ".": true}

// runsFile reports whether a command, or one that it starts, runs a file as a
// shell does.
func runsFile(words []Word) bool {
	for c := range chain(words) {
		if name := c.Name(); isShell(name) || reads[name] {
			return true
		}
	}
	return false
}
