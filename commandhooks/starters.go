package commandhooks

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// neutral are commands of the shell that leave everything where it was.
var neutral = []string{"set", "shopt", ":", "true"}

// interpreters take a script's file. Others, and other options, are left to what
// they say.
var interpreters = map[string]interpreterKind{"bash": aShell, "sh": aShell, "dash": aShell, "zsh": aShell, "ksh": aShell,
	"python": {letters: "uBEIsSOqvb", valued: "WX"}, "node": {}, "ruby": {letters: "w"}, "perl": {letters: "wTt", joined: "MIm"}, "php": {}}

var aShell = interpreterKind{letters: "eux", shell: true}

// interpreterKind is how an interpreter reads its arguments.
type interpreterKind struct {
	letters string // options that take no value
	valued  string // those whose value is the rest of their word, or the next one
	joined  string // those whose value is the rest of their word
	shell   bool   // behind -c stands a text that it runs
}

// behindOptions are the words behind the options that are known.
func (k interpreterKind) behindOptions(words []string) []string {
	for len(words) > 0 && len(words[0]) > 1 && words[0][0] == '-' {
		option := words[0][1:]
		switch {
		case strings.Trim(option, k.letters) == "":
			words = words[1:]
		case strings.ContainsRune(k.joined, rune(option[0])) && len(option) > 1, strings.ContainsRune(k.valued, rune(option[0])) && len(option) > 1:
			words = words[1:]
		case strings.ContainsRune(k.valued, rune(option[0])):
			words = words[min(2, len(words)):]
		default:
			return words
		}
	}
	return words
}

// interpreterName is what an interpreter is called without its version.
func interpreterName(word string) string {
	return strings.TrimRight(filepath.Base(word), "0123456789.")
}

// starters are programs that start another, behind options with their values,
// variables, numbers and the names of signals.
var (
	starters      = []string{"exec", "env", "timeout", "nohup", "nice", "ionice", "setsid", "stdbuf"}
	beforeStarted = regexp.MustCompile(`^(-.*|\w+=.*|[\d.]+[smhd]?|[A-Z]+)$`)
)

func started(words []string) []string {
	if len(words) == 0 || !slices.Contains(starters, filepath.Base(words[0])) {
		return words
	}
	for i, word := range words[1:] {
		if !beforeStarted.MatchString(word) {
			return words[i+1:]
		}
	}
	return words
}

// filesOf are the options of programs behind which a file or directory stands that
// they cannot do without.
var filesOf = map[string][]string{"awk": {"-f"}, "gawk": {"-f"}, "mawk": {"-f"}, "sed": {"-f"}, "make": {"-C", "-f"}, "gmake": {"-C", "-f"}}
