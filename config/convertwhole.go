package config

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// What a text can say is seen whole only where that is certain. Everything here
// doubts: a doubt costs a warning, a word that was not seen a denial.

// importing is where a text in another language takes in more of it, and the
// modules that it names.
var importing = regexp.MustCompile(`(?m)^\s*(?:import|from|use)\s+([\w.]+(?:\s*,\s*[\w.]+)*)|\b(?:require|import)\s*\(\s*["']([^"')]*)`)

// pureModules print nothing by themselves and read no file.
var pureModules = strings.Fields(`json sys re datetime time string math shlex collections itertools strict warnings utf8`)

// reaching is what another language needs to print what stands elsewhere, or
// to write its words in another spelling.
var reaching = regexp.MustCompile(`(?i)subprocess|popen|\bsystem\b\s*[("']|\bexec\w*\s*[("']|\beval\b|\bspawn\w*\s*\(|\bopen\w*\s*\(|urllib|socket|https?:|__import__|importlib|` +
	`(?:^|[^.\w])compile\s*\(|\bfetch\w*\s*\(|child_process|readfile|readlines?\s*\(|\brequire\s+["'\w]|\bFunction\s*\(|\\[uxN0-7]|` +
	`\bchr\s*\(|fromCharCode|base64|\.decode\s*\(|\bgetattr\s*\(|\bglobals\s*\(|<\$?\w+>|\bqx\b|` + "`")

// tellsAll reports whether a text that is no shell's holds all that it can say.
func tellsAll(text string) bool {
	for _, m := range importing.FindAllStringSubmatch(text, -1) {
		for _, module := range strings.Split(m[1]+m[2], ",") {
			if !slices.Contains(pureModules, strings.TrimSpace(module)) {
				return false
			}
		}
	}
	return !reaching.MatchString(text) && !joined.MatchString(text)
}

// joined is a word that is put together of quoted parts, or written by numbers,
// which nobody finds by looking for it.
var joined = regexp.MustCompile(`\w(?:""|''|"'|'")\w|["']\s*[+.]\s*["']|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}`)

// filters are programs that print what they are given to read, and how many plain
// words they take that are no files; jq, sed and awk a program, that is looked for
// in their own line.
var filters = map[string]int{"grep": 1, "egrep": 1, "fgrep": 1, "jq": 1, "sed": 1, "awk": 1, "tr": 2, "cut": 0, "sort": 0, "uniq": 0, "wc": 0}

// fromFile are their options that name a file, or that may.
var fromFile = regexp.MustCompile(`\A(?:-[a-zA-Z]*[fLe].*|--(?:from-file|file|slurpfile|rawfile|library-path|files0-from|expression)(?:=.*)?)\z`)

// awkReaches is what lets awk print what stands elsewhere.
var awkReaches = regexp.MustCompile(`system|getline|\|`)

// readsOnly reports whether such a program reads its standard input alone.
func readsOnly(program string, args []string) bool {
	plain := 0
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "-q" || arg == "--quiet" || arg == "--silent": // prints nothing
			return program != "jq"
		case program == "jq" && (arg == "--arg" || arg == "--argjson"):
			i += 2
		case (program == "cut" || program == "sort") && (arg == "-d" || arg == "-f" || arg == "-c" || arg == "-k" || arg == "-t"),
			program == "awk" && (arg == "-F" || arg == "-v"):
			i++
		case program != "cut" && fromFile.MatchString(arg):
			return false
		case arg == unplain || !strings.HasPrefix(arg, "-"):
			plain++
			if program == "awk" && (arg == unplain || awkReaches.MatchString(arg)) {
				return false
			}
		}
	}
	return plain <= filters[program]
}

// mute are the redirections of a statement that nothing of it is heard by.
func mute(redirs []*syntax.Redirect) bool {
	switch {
	case len(redirs) == 1:
		return silences(redirs[0])
	case len(redirs) == 2 && silences(redirs[0]) && redirs[0].Op != syntax.DplOut: // >/dev/null 2>…
		return redirs[1].N != nil && redirs[1].N.Value == "2"
	case len(redirs) == 2 && silences(redirs[1]) && redirs[1].Op != syntax.DplOut: // 2>FILE >/dev/null
		return redirs[0].N != nil && redirs[0].N.Value == "2" && redirs[0].Op != syntax.DplOut
	}
	return false
}

// swaps reports whether a statement may turn its standard error, or another
// stream, into its answer; takesIn, whether it reads a file.
func swaps(redirs []*syntax.Redirect) bool {
	return !mute(redirs) && slices.ContainsFunc(redirs, func(r *syntax.Redirect) bool {
		return r.Op == syntax.DplOut && (r.N != nil && r.N.Value != "1" || plainWord(r.Word) != "2")
	})
}

func takesIn(redirs []*syntax.Redirect) bool {
	return slices.ContainsFunc(redirs, func(r *syntax.Redirect) bool {
		return (r.Op == syntax.RdrIn || r.Op == syntax.RdrInOut || r.Op == syntax.DplIn) && plainWord(r.Word) != "/dev/null"
	})
}
