package shell

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// word is a word without its quotes. source is the text that it stands in.
func word(source string, w *syntax.Word) Word {
	if w == nil {
		return Word{"", true}
	}
	text, literal := unquoted(source, w.Parts, false)
	return Word{text, literal}
}

func words(source string, list []*syntax.Word) []Word {
	all := make([]Word, len(list))
	for i, w := range list {
		all[i] = word(source, w)
	}
	return all
}

// unquoted joins parts; what only a running shell knows stays as it is written.
func unquoted(source string, parts []syntax.WordPart, quoted bool) (text string, literal bool) {
	var b strings.Builder
	literal = true
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value, quoted))
			literal = literal && (quoted || !expands(p.Value))
		case *syntax.SglQuoted:
			if !p.Dollar {
				b.WriteString(p.Value)
			} else if s, _, err := expand.Format(nil, p.Value, nil); err == nil {
				b.WriteString(s)
			} else {
				b.WriteString(p.Value)
				literal = false
			}
		case *syntax.DblQuoted:
			inner, plain := unquoted(source, p.Parts, true)
			b.WriteString(inner)
			literal = literal && plain
		default:
			b.WriteString(written(source, part))
			literal = false
		}
	}
	return b.String(), literal
}

// maxWritten is how much of what only a running shell knows stays in a word:
// nested, such parts would repeat the text once for each level.
const maxWritten = 1 << 10

// written is a node as the text has it; what is too long is an empty
// substitution, as the commands in it are found where they stand.
func written(source string, n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from > to || to > len(source) || to-from > maxWritten {
		return "$()"
	}
	return source[from:to]
}

// unescaped takes backslashes away as a shell does: all of them, or inside
// double quotes those before what they have power over. Escaped line ends are
// gone.
func unescaped(s string, quoted bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) || quoted && !strings.ContainsRune("$`\"\\\n", rune(s[i+1])) {
			b.WriteByte(s[i])
			continue
		}
		if i++; s[i] != '\n' {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// expands reports whether an unquoted text has patterns, braces or a tilde that
// no backslash stands before.
func expands(s string) bool {
	if strings.HasPrefix(s, "~") {
		return true
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return true
		case '{': // {} is itself
			inside, _, closed := strings.Cut(s[i:], "}")
			if closed && (strings.Contains(inside, ",") || strings.Contains(inside, "..")) {
				return true
			}
		}
	}
	return false
}
