package gate

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// How long a command may be that is looked into, and how many brackets it may
// have. The parser calls itself for each level of a hostile one: within these it
// takes 8 MB of stack, and 64 MB where every byte is a bracket. How many texts may
// stand in texts (`bash -c "bash -c '…'"`).
const (
	maxCommandBytes = 16 << 10
	maxBrackets     = 200
	maxTexts        = 4
)

// commandRule: a shell command, in which * stands for anything. Behind a space
// at the end it stands for nothing too, and so does :* (`ls *` and `ls:*` are
// about ls and ls -l, not about lsof).
func commandRule(pattern string) func(map[string]json.RawMessage, string) bool {
	if head, ok := strings.CutSuffix(pattern, ":*"); ok {
		pattern = head + " *"
	}
	patterns := []string{pattern}
	if bare, ok := strings.CutSuffix(pattern, " *"); ok {
		patterns = append(patterns, bare)
	}
	return func(call map[string]json.RawMessage, _ string) bool {
		line, ok := argument(call, "command")
		if !ok {
			return true
		}
		commands, ok := simpleCommands(line, maxTexts)
		return !ok || slices.ContainsFunc(commands, func(c shellCommand) bool {
			return slices.ContainsFunc(patterns, c.fits)
		})
	}
}

// shellCommand is one command of a shell line, its words unquoted and one space
// apart.
type shellCommand struct {
	text   string // up to where it is known before it runs
	open   bool   // there is more that is not known
	starts bool   // it may start another, which begins at any of its words
	adds   bool   // and gives that one words of its own, at the end
}

// fits reports whether the command is what a pattern says, or may be.
func (c shellCommand) fits(pattern string) bool {
	literal, _, _ := strings.Cut(pattern, "*")
	switch {
	case c.open:
		return strings.HasPrefix(literal, c.text) || strings.HasPrefix(c.text, literal)
	case wild(pattern, c.text):
		return true
	case c.starts && (wild("* "+pattern, c.text) || wild("*/"+pattern, c.text)):
		return true
	case c.adds:
		text := c.text + " "
		for i := max(len(text)-len(literal), 1); i < len(text); i++ {
			if (text[i-1] == ' ' || text[i-1] == '/') && strings.HasPrefix(literal, text[i:]) {
				return true
			}
		}
	}
	return false
}

// simpleCommands are the commands of a shell line, wherever in it they stand,
// without the variables that are set for them, and those of the texts that it
// gives to shells. Not ok: bash could not read the line, what one of them runs is
// only known when it does, one is fed a text that stands in the line, or it is not
// looked into.
func simpleCommands(line string, texts int) (commands []shellCommand, ok bool) {
	if texts == 0 || len(line) > maxCommandBytes || strings.Count(line, "(")+strings.Count(line, "[") > maxBrackets || misread(line) {
		return nil, false
	}
	defer func() { // a fault of the parser's is no reason to let a call pass
		if recover() != nil {
			commands, ok = nil, false
		}
	}()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, false
	}
	ok = true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Redirect:
			ok = ok && n.Hdoc == nil && n.Op != syntax.WordHdoc // which may be a program's
		case *syntax.DeclClause:
			text := line[n.Pos().Offset():n.End().Offset()]
			c := shellCommand{text: text}
			if i := strings.IndexAny(text, "$`'\"\\{~*?["); i >= 0 {
				c = shellCommand{text: text[:i], open: true}
			}
			commands = append(commands, c)
		case *syntax.CallExpr:
			if len(n.Args) > 0 && ok {
				var called []shellCommand
				called, ok = calledBy(n.Args, texts)
				commands = append(commands, called...)
			}
		}
		return ok
	})
	return commands, ok
}

// misread reports whether the parser reads a line otherwise than bash does, which
// keeps carriage returns, cannot be given a zero byte, may drop a backslash at the
// end, and ends a comment with its line even where that ends in a backslash.
func misread(line string) bool {
	return strings.ContainsAny(line, "\r\x00") || strings.HasSuffix(line, `\`) ||
		strings.Contains(line, "\\\n") && continuedComment.MatchString(line)
}

// continuedComment may be one with a backslash at its end.
var continuedComment = regexp.MustCompile("(?:^|[\\s;&|()<>`])#[^\n]*\\\\\n")

// calledBy is a simple command, with those that it gives to a shell to read.
func calledBy(args []*syntax.Word, texts int) (commands []shellCommand, ok bool) {
	var words []string
	open := false
	for _, arg := range args {
		text, known := unquoted(arg)
		words = append(words, text)
		if open = !known; open {
			break
		}
	}
	if open && len(words) == 1 {
		return nil, false // even the program is not known
	}
	c := shellCommand{text: strings.Join(words, " "), open: open}
	name := path.Base(words[0])
	reads, starts := starters[name]
	if !starts {
		commands = append(commands, c)
		if name != words[0] {
			c.text = name + strings.TrimPrefix(c.text, words[0])
			commands = append(commands, c)
		}
		return commands, true
	}
	c.starts, c.adds = true, name == "xargs"
	if open || c.adds && slices.ContainsFunc(words, replaces) {
		return nil, false // the other command may begin with what is not known
	}
	for i, word := range words {
		if i > 0 {
			reads = starters[path.Base(word)]
		}
		if reads && c.adds {
			return nil, false
		}
		if reads {
			commands, ok = textsOf(words[i+1:], texts)
			return append(commands, c), ok
		}
	}
	return []shellCommand{c}, true
}

// replaces reports whether a word has xargs put what it reads in the place of
// others.
func replaces(word string) bool {
	return strings.HasPrefix(word, "-I") || strings.HasPrefix(word, "-i") || strings.HasPrefix(word, "--replace")
}

// textsOf are the commands in what a shell gets for arguments: a text in each, or
// all of them together as of eval. Not ok: it has none, and reads what it is fed.
func textsOf(words []string, texts int) (commands []shellCommand, ok bool) {
	if !slices.ContainsFunc(words, func(w string) bool { return !strings.HasPrefix(w, "-") }) {
		return nil, false
	}
	lines := words
	if len(words) > 1 {
		lines = append(slices.Clone(words), strings.Join(words, " "))
	}
	for _, line := range lines {
		if !strings.ContainsAny(line, " \t\n;&|<>()$`\\'\"{*?[~") {
			continue // a single word
		}
		inner, ok := simpleCommands(line, texts-1)
		if !ok {
			return nil, false
		}
		commands = append(commands, inner...)
	}
	return commands, true
}

// starters are the programs that start what stands among their arguments; true:
// they read a text there as a shell does.
var starters = map[string]bool{
	"sudo": false, "doas": false, "timeout": false, "time": false, "nice": false, "ionice": false, "chrt": false, "taskset": false,
	"nohup": false, "setsid": false, "stdbuf": false, "unbuffer": false, "xargs": false, "env": false, "command": false, "builtin": false,
	"exec": false, "source": false, ".": false, "find": false, "fd": false, "strace": false, "ltrace": false, "chroot": false, "unshare": false, "nsenter": false,
	"systemd-run": false, "setarch": false, "prlimit": false, "busybox": false, "docker": false, "podman": false, "kubectl": false,
	"bash": true, "sh": true, "dash": true, "zsh": true, "ksh": true, "ash": true, "fish": true, "eval": true, "su": true, "runuser": true,
	"ssh": true, "trap": true, "watch": true, "script": true, "flock": true, "parallel": true,
}

// unquoted is the text that a word of a shell line stands for; not known: that
// depends on when it is run, and text is what comes before.
func unquoted(w *syntax.Word) (text string, known bool) {
	var b strings.Builder
	for i, part := range w.Parts {
		known := false
		switch p := part.(type) {
		case *syntax.Lit:
			known = plain(&b, p.Value, i == 0, len(w.Parts) == 1)
		case *syntax.SglQuoted:
			if known = !p.Dollar; known {
				b.WriteString(p.Value)
			}
		case *syntax.DblQuoted:
			known = doubleQuoted(&b, p)
		}
		if !known {
			return b.String(), false
		}
	}
	return b.String(), true
}

// plain reads what is not quoted, up to where bash puts something else in its
// place: the names of files, the alternatives in braces, a home directory. first
// and whole: it is the beginning of its word, or all of it.
func plain(b *strings.Builder, value string, first, whole bool) (known bool) {
	if whole && (value == "[" || value == "{}" || value == "{" || value == "}") {
		b.WriteString(value) // which stand for themselves
		return true
	}
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\' && i+1 < len(value):
			if i++; value[i] != '\n' {
				b.WriteByte(value[i])
			}
		case strings.IndexByte("*?[{", c) >= 0, c == '~' && first && i == 0:
			return false
		default:
			b.WriteByte(c)
		}
	}
	return true
}

// doubleQuoted reads what stands between double quotes, where a backslash stands
// for itself but before a few.
func doubleQuoted(b *strings.Builder, q *syntax.DblQuoted) (known bool) {
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || q.Dollar {
			return false
		}
		for i := 0; i < len(lit.Value); i++ {
			if lit.Value[i] == '\\' && i+1 < len(lit.Value) && strings.IndexByte("$`\"\\\n", lit.Value[i+1]) >= 0 {
				if i++; lit.Value[i] == '\n' {
					continue
				}
			}
			b.WriteByte(lit.Value[i])
		}
	}
	return true
}
