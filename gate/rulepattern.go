package gate

import (
	"encoding/json"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// pathPattern compiles a path pattern, relative to where it is anchored.
func pathPattern(glob string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString(`(?i)\A`)
	for rest := strings.TrimSuffix(glob, "/"); rest != ""; {
		switch {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString(`(?s:.*/)?`)
			rest = rest[3:]
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`(?s:.*)`)
			rest = rest[2:]
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
			rest = rest[1:]
		case rest[0] == '?':
			b.WriteString(`[^/]`)
			rest = rest[1:]
		default:
			n := strings.IndexAny(rest[1:]+"*", "*?") + 1
			b.WriteString(regexp.QuoteMeta(rest[:n]))
			rest = rest[n:]
		}
	}
	b.WriteString(`(?s:/.*)?\z`)
	return regexp.Compile(b.String())
}

// wild reports whether a text is what a pattern says, in which * stands for
// anything.
func wild(pattern, text string) bool {
	p, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0: // let the last * take one more
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// How long a command may be that is looked into, and how many brackets it may
// have. The parser calls itself for each level of a hostile one: within these it
// takes 8 MB of stack, and 64 MB where every byte is a bracket.
const (
	maxCommandBytes = 16 << 10
	maxBrackets     = 200
)

// commandRule: a shell command, in which * stands for anything. Behind a space
// at the end it stands for nothing too, and so does :* (`ls *` and `ls:*` are
// about ls and ls -l, not about lsof).
func commandRule(pattern string) func(map[string]json.RawMessage, string) bool {
	if head, ok := strings.CutSuffix(pattern, ":*"); ok {
		pattern = head + " *"
	}
	bare, prefix := strings.CutSuffix(pattern, " *")
	return func(call map[string]json.RawMessage, _ string) bool {
		command, ok := argument(call, "command")
		if !ok {
			return true
		}
		commands, ok := simpleCommands(command)
		if !ok {
			return true
		}
		for _, c := range commands {
			if wild(pattern, c) || prefix && wild(bare, c) {
				return true
			}
		}
		return false
	}
}

// simpleCommands are the commands of a shell line, wherever in it they stand,
// without the variables that are set for them, their words unquoted and one space
// apart. Not ok: bash could not read the line, what one of them runs is only known
// when it does, one is fed a text that stands in the line, or it is not looked
// into.
func simpleCommands(line string) (commands []string, ok bool) {
	if len(line) > maxCommandBytes || strings.Count(line, "(")+strings.Count(line, "[") > maxBrackets {
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
	source := func(n syntax.Node) string { return line[n.Pos().Offset():n.End().Offset()] }
	ok = true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Redirect:
			ok = ok && n.Hdoc == nil // which may be a program's
		case *syntax.DeclClause:
			commands = append(commands, source(n))
		case *syntax.CallExpr:
			if len(n.Args) == 0 {
				break
			}
			if _, known := unquoted(n.Args[0]); !known {
				ok = false
			}
			words := make([]string, len(n.Args))
			for i, w := range n.Args {
				if text, known := unquoted(w); known {
					words[i] = text
				} else {
					words[i] = source(w)
				}
			}
			commands = append(commands, strings.Join(words, " "))
		}
		return true
	})
	return commands, ok
}

// unquoted is the text that a word of a shell line stands for; not known: that
// depends on when it is run.
func unquoted(w *syntax.Word) (text string, known bool) {
	var b strings.Builder
	var read func(parts []syntax.WordPart) bool
	read = func(parts []syntax.WordPart) bool {
		for _, part := range parts {
			switch p := part.(type) {
			case *syntax.Lit:
				b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
			case *syntax.SglQuoted:
				if p.Dollar {
					return false
				}
				b.WriteString(p.Value)
			case *syntax.DblQuoted:
				if !read(p.Parts) {
					return false
				}
			default:
				return false
			}
		}
		return true
	}
	known = read(w.Parts)
	return b.String(), known
}
