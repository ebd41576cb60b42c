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
	case shells[name]:
		rest, letters := shellOperands(c.Args)
		file := len(rest) > 0 && !standardInput(rest[0].Text)
		return !strings.Contains(letters, "c") && (!file || strings.Contains(letters, "s")) && !asksOnly(c.Args)
	case reads[name]:
		return len(c.Args) > 0 && standardInput(c.Args[0].Text)
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
	_, letters := operands(c.Args, s.short, s.long)
	return letters
}

// asksOnly reports whether a program is asked only what it is.
func asksOnly(args []Word) bool {
	return len(args) == 1 && slices.Contains([]string{"--version", "--help", "-V", "-v", "-h", "-help"}, args[0].Text)
}

// standardInput reports whether a file is one that stands open already.
func standardInput(name string) bool {
	name = path.Clean(name)
	return name == "-" || name == "/dev/stdin" || strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/") && strings.Contains(name, "/fd/")
}

// reads are the builtins that read a file's commands.
var reads = map[string]bool{"source": true, ".": true}

// runsFile reports whether a command, or one that it starts, runs a file as a
// shell does.
func runsFile(words []Word) bool {
	for c := range chain(words) {
		if name := c.Name(); shells[name] || reads[name] {
			return true
		}
	}
	return false
}
