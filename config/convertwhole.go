package config

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// What a text can say is seen whole only where that is certain. Everything here
// doubts: a doubt costs a warning, a word that was not seen a denial.

const pure = `(?:json|sys|re|datetime|time|string|math|shlex|collections|itertools)`

// taking is a line of Python that takes in what prints nothing by itself and reads
// no file, and nothing else.
var taking = regexp.MustCompile(`(?m)^[ \t]*(?:import[ \t]+` + pure + `(?:[ \t]*,[ \t]*` + pure + `)*|from[ \t]+` + pure + `[ \t]+import[ \t]+\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]*(?:;|$)`)

// reaching is what another language needs to print what stands elsewhere, or
// to write its words in another spelling.
var reaching = regexp.MustCompile(`(?i)subprocess|popen|\bsystem\b\s*[("']|\bexec\w*\s*[("']|\beval\b|\bspawn\w*\s*\(|\bopen\w*\s*\(|urllib|socket|https?:|__import__|importlib|` +
	`(?:^|[^.\w])compile\s*\(|\bfetch\w*\s*\(|child_process|readfile|readlines?\s*\(|\brequire\s+["'\w]|\bFunction\s*\(|\\[uxN0-7]|` +
	`\bchr\s*\(|fromCharCode|base64|\.decode\s*\(|\bgetattr\s*\(|\bglobals\s*\(|<\$?\w+>|\bqx\b|` + "`")

// takingIn is what may take in more of the text, or a file, in whatever form.
var takingIn = regexp.MustCompile(`\b(?:import|require\w*|include|use|do|load|File|IO|ARGF|gets)\b`)

// tellsAll reports whether a text that is no shell's holds all that it can say.
// Only Python and JavaScript are known well enough.
func tellsAll(text, language string) bool {
	if language != "python" && language != "node" {
		return false
	}
	text = taking.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "json.load(sys.stdin)", "")
	return !takingIn.MatchString(text) && !reaching.MatchString(text) && !joined.MatchString(text)
}

// languageOf is whose a script is, by what runs it, else by what it says itself;
// empty: another's.
func languageOf(interpreter, name, first string) string {
	switch {
	case strings.HasPrefix(interpreter, "python"), interpreter == "" && pythonShebang.MatchString(first):
		return "python"
	case interpreter == "node", interpreter == "" && strings.HasPrefix(first, "#!") && strings.HasSuffix(strings.TrimSpace(first), "node"):
		return "node"
	case isShell(interpreter), interpreter == "" && (shellShebang.MatchString(first) || !strings.HasPrefix(first, "#!") && path.Ext(name) == ".sh"):
		return "shell"
	}
	return ""
}

var (
	shellShebang  = regexp.MustCompile(`\A#!\S*[/ ](?:env +)?(?:ba|da|z)?sh\b`)
	pythonShebang = regexp.MustCompile(`\A#!\S*[/ ](?:env +)?python[0-9.]*\s*\z`)
)

// joined is a word that is put together of quoted parts, or written by numbers,
// which nobody finds by looking for it.
var joined = regexp.MustCompile(`\w(?:""|''|"'|'")\w|["']\s*[+.]\s*["']|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}`)

// filters are programs that print what they are given to read, and how many plain
// words they take that are no files; jq, sed and awk a program, that is looked for
// in their own line.
var filters = map[string]int{"grep": 1, "egrep": 1, "fgrep": 1, "jq": 1, "sed": 1, "awk": 1, "tr": 2, "cut": 0, "sort": 0, "uniq": 0, "wc": 0}

// fromFile are their options that name a file, or that may.
var fromFile = regexp.MustCompile(`\A(?:-[a-zA-Z]*[fLe].*|--(?:from-file|file|slurpfile|rawfile|library-path|files0-from|expression)(?:=.*)?)\z`)

// What lets a filter's own program print what stands elsewhere; sed's is taken for
// what it says only where it replaces, prints or deletes.
var (
	awkReaches = regexp.MustCompile(`system|getline|ARG[VC]|@|\|`)
	jqReaches  = regexp.MustCompile(`\b(?:import|include|input\w*)\b`)
	sedPlain   = regexp.MustCompile(`\A(?:[0-9$,]*[pdq]|s([/|#,])[^/|#,\n]*[/|#,][^/|#,\n]*[/|#,][gip0-9]*)\z`)
)

// readsOnly reports whether such a program reads its standard input alone.
func readsOnly(program string, args []string) bool {
	plain := 0
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case strings.HasSuffix(program, "grep") && (arg == "-q" || arg == "--quiet" || arg == "--silent"): // prints nothing
			return true
		case program == "jq" && (arg == "--arg" || arg == "--argjson"):
			i += 2
		case program == "cut" && (arg == "-d" || arg == "-f" || arg == "-c"), program == "sort" && (arg == "-k" || arg == "-t"),
			program == "awk" && (arg == "-F" || arg == "-v"):
			i++
		case program != "cut" && fromFile.MatchString(arg), strings.HasSuffix(program, "grep") && recursive.MatchString(arg):
			return false
		case arg == unplain || !strings.HasPrefix(arg, "-"):
			if plain++; plain == 1 && !tells(program, arg) {
				return false
			}
		}
	}
	return plain <= filters[program]
}

// recursive are the options by which grep looks for files itself.
var recursive = regexp.MustCompile(`\A(?:-[a-zA-Z]*[rRd].*|--.*recurs.*|--directories.*)\z`)

// tells reports whether a filter's program says itself all that it can print.
func tells(program, text string) bool {
	switch program {
	case "awk":
		return text != unplain && !awkReaches.MatchString(text)
	case "jq":
		return text != unplain && !jqReaches.MatchString(text)
	case "sed":
		return text == "" || sedPlain.MatchString(text)
	}
	return true
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
