package commandhooks

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// program is how a program is called: the letters of its options, and what of its
// words are files. Long options, and letters that are not here, are not known.
type program struct {
	plain  string // letters without a value
	valued string // … with one, in the same word or the next
	file   string // … with one that is a file which it cannot do without
	code   string // … that give it its program in place of a script
	script bool   // its first operand is its script, and what follows is the script's
	shell  bool   // what code gives it is its first operand, behind all options
	pure   bool   // it comes to no file by itself but those that are named
	texts  int    // so many of its first operands are no files
}

// interpreters are called with a script. Others are left to what they say.
var interpreters = map[string]program{
	"bash": shell, "sh": shell, "dash": shell, "zsh": shell, "ksh": shell,
	"python": {plain: "bBdEIOPqsSuv", valued: "WX", code: "cm", script: true},
	"node":   {valued: "r", code: "ep", script: true},
	"ruby":   {plain: "w", valued: "rI", code: "e", script: true},
	"perl":   {plain: "wWtT", valued: "MmI", code: "eE", script: true},
	"php":    {plain: "nq", valued: "dc", file: "f", code: "r", script: true},
}

var shell = program{plain: "aefluvx", valued: "oO", code: "c", script: true, shell: true}

// tellers are programs that say something of their standard input, or of files.
var tellers = map[string]program{
	"cat": {plain: "nsbeEtTuvA", pure: true}, "wc": {plain: "clmwL", pure: true}, "rev": {pure: true}, "tac": {pure: true},
	"head": {valued: "nc", plain: "qvz", pure: true}, "tail": {valued: "nc", plain: "qvz", pure: true}, "cut": {valued: "dfcb", plain: "sz", pure: true},
	"sort": {valued: "kt", plain: "bdfghnruVz", pure: true}, "uniq": {valued: "fsw", plain: "cdiuz", pure: true}, "tr": {texts: 2, plain: "cCdst", pure: true},
	"grep":  {texts: 1, valued: "mABC", plain: "qivwxcnoEFPsazGhH", file: "f", pure: true},
	"egrep": {texts: 1, plain: "qivwxcnos", file: "f", pure: true}, "fgrep": {texts: 1, plain: "qivwxcnos", file: "f", pure: true},
	"jq":  {texts: 1, plain: "recnsjaRMCS", file: "f", pure: true},
	"awk": {valued: "vF", file: "f"}, "gawk": {valued: "vF", file: "f"}, "mawk": {valued: "vF", file: "f"}, "sed": {plain: "nEru", valued: "e", file: "f"},
	"make": {plain: "BeikLnqrRsStw", valued: "jlo", file: "fC"},
}

// projectTools do nothing but on the project that they are started in: with one of
// these words first, or none of them listed, with any.
var projectTools = map[string][]string{
	"make": nil, "npm": {"test", "t", "run", "run-script"}, "pnpm": {"test", "t", "run"}, "yarn": {"test", "run"}, "bun": {"test", "run"},
	"go": {"test", "vet", "build"}, "cargo": {"test", "check", "clippy", "build"}, "mvn": nil, "gradle": nil, "pytest": nil, "tox": nil,
}

// interpreterName is what an interpreter is called without its version.
func interpreterName(word string) string {
	return strings.TrimRight(filepath.Base(word), "0123456789.")
}

// arguments are what a program is called with.
type arguments struct {
	operands []string
	files    []string // that options name
	code     bool     // an option gives it its program
}

// arguments sorts a program's words; ok is false where an option is not known.
func (p program) arguments(words []string) (a arguments, ok bool) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--":
			a.operands = append(a.operands, words[i+1:]...)
			return a, true
		case len(word) < 2 || word[0] != '-':
			if p.script {
				a.operands = words[i:]
				return a, true
			}
			a.operands = append(a.operands, word)
			continue
		}
	letters:
		for at := 1; at < len(word); at++ {
			in := func(letters string) bool { return strings.IndexByte(letters, word[at]) >= 0 }
			switch {
			case in(p.plain):
			case in(p.code):
				if a.code = true; !p.shell {
					return a, true
				}
			case in(p.valued), in(p.file):
				value := word[at+1:]
				if value == "" {
					if i++; i == len(words) {
						return a, false
					}
					value = words[i]
				}
				if in(p.file) {
					a.files = append(a.files, value)
				}
				break letters
			default:
				return a, false
			}
		}
	}
	return a, true
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
		if strings.HasPrefix(word, "-C") || strings.HasPrefix(word, "--chdir") { // env's, into another directory
			return words
		}
		if !beforeStarted.MatchString(word) {
			return words[i+1:]
		}
	}
	return words
}
