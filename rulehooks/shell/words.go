package shell

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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

// words are those of a call, with what braces make of them.
func (r *reader) words(source string, call *syntax.CallExpr) []Word {
	all, ok := r.calls[call]
	if !ok {
		for _, w := range call.Args {
			all = append(all, r.expanded(source, w)...)
		}
		r.calls[call] = all
	}
	return all
}

// maxBraces is how many a word has at most: each opens another for each word
// that it becomes.
const maxBraces = 64

// expanded is what braces make of a word. Where they make too many words of it,
// nobody knows what they are: the budget is spent.
func (r *reader) expanded(source string, w *syntax.Word) []Word {
	split := &syntax.Word{Parts: slices.Clone(w.Parts)}
	braces := 0
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			braces += strings.Count(lit.Value, "{")
		}
	}
	if braces == 0 || !syntax.SplitBraces(split) {
		return []Word{word(source, w)}
	}
	if braces > maxBraces {
		r.Spend(r.left)
		return nil
	}
	var all []Word
	for one, err := range expand.BracesSeq(nil, split) {
		if err != nil {
			r.Spend(r.left)
			break
		}
		made := word(source, one)
		if !r.Spend(perText*braces + len(made.Text)) {
			break
		}
		if made.Text != "" {
			all = append(all, made)
		}
	}
	return all
}

func literals(words []string) []Word {
	all := make([]Word, len(words))
	for i, w := range words {
		all[i] = Word{w, true}
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
			literal = literal && (quoted || p.Value == "[" && len(parts) == 1 || !expands(p.Value))
		case *syntax.SglQuoted:
			if !p.Dollar {
				b.WriteString(p.Value)
				continue
			}
			inner, plain := dollarQuoted(p.Value)
			b.WriteString(inner)
			literal = literal && plain
		case *syntax.DblQuoted:
			inner, plain := unquoted(source, p.Parts, true)
			b.WriteString(inner)
			literal = literal && plain && !p.Dollar // which is translated
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

// expands reports whether an unquoted text has patterns, braces, or a tilde or
// equals sign at its beginning, that no backslash stands before.
func expands(s string) bool {
	if strings.HasPrefix(s, "~") || strings.Contains(s, "=") && (strings.Contains(s, "=~") || strings.Contains(s, ":~")) || len(s) > 1 && s[0] == '=' && s[1] != '=' { // =ls is zsh's /bin/ls
		return true
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return true
		case 0xc2, 0xe1, 0xe2, 0xe3: // what begins blanks, which some shells take for such
			if r, _ := utf8.DecodeRuneInString(s[i:]); unicode.IsSpace(r) {
				return true
			}
		case '{': // {} is itself
			inside, _, closed := strings.Cut(s[i:], "}")
			if closed && (strings.Contains(inside, ",") || strings.Contains(inside, "..")) {
				return true
			}
		}
	}
	return false
}
