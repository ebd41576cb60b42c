package config

import (
	"slices"
	"strings"
)

// token is a word, a text, a number or a mark of Python, JavaScript or jq. None of
// them is followed as its language would: they are compared with what is known to
// be harmless.
type token struct {
	kind tokenKind
	text string // of a text: what it stands for, [unplain] for what is not known of it
}

type tokenKind int

const (
	wordToken tokenKind = iota
	textToken
	numberToken
	markToken
)

func (t token) is(mark string) bool { return t.kind == markToken && t.text == mark }

// maxTokens is how long a script may be that is followed: brackets are looked for
// from every place in it.
const maxTokens = 4096

// scanner reads tokens.
type scanner struct {
	rest   string
	l      language
	tokens []token
}

// tokensOf are a text's tokens; not ok: there is something in it that is not known
// here.
func tokensOf(text string, l language) (tokens []token, ok bool) {
	s := scanner{rest: text, l: l}
	for s.rest != "" {
		if len(s.tokens) > maxTokens || !s.next() {
			return nil, false
		}
	}
	return s.tokens, true
}

func (s *scanner) take(kind tokenKind, n int) bool {
	s.tokens = append(s.tokens, token{kind, s.rest[:n]})
	s.rest = s.rest[n:]
	return true
}

func (s *scanner) next() bool {
	switch c := s.rest[0]; {
	case strings.IndexByte(" \t\r\n", c) >= 0:
		s.rest = s.rest[1:]
		return true
	case c == '#' && s.l != nodeText, strings.HasPrefix(s.rest, "//") && s.l == nodeText:
		_, s.rest, _ = strings.Cut(s.rest, "\n")
		return true
	case c == '"', c == '\'' && s.l != jqText:
		return s.quoted("")
	case isWordByte(c) && (c < '0' || c > '9'):
		n := wordLength(s.rest)
		if s.l == pythonText && n < len(s.rest) && strings.IndexByte(`'"`, s.rest[n]) >= 0 {
			prefix := strings.ToLower(s.rest[:n])
			s.rest = s.rest[n:]
			return slices.Contains([]string{"r", "f", "rf", "fr"}, prefix) && s.quoted(prefix)
		}
		return s.take(wordToken, n)
	case c >= '0' && c <= '9':
		return s.take(numberToken, wordLength(s.rest))
	case len(s.rest) > 1 && s.rest[1] == '=' && strings.IndexByte("=!<>", c) >= 0:
		return s.take(markToken, 2)
	case strings.IndexByte("()[]{},.:;=+-*%<>!&|^~?", c) >= 0, c == '$' && s.l == jqText, c == '/' && s.l == pythonText:
		return s.take(markToken, 1)
	}
	return false
}

// quoted reads a text. Behind an escape, or what is put in as it runs, it is not
// known.
func (s *scanner) quoted(prefix string) bool {
	quote := s.rest[:1]
	if s.l == pythonText && strings.HasPrefix(s.rest, strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	body, end := s.rest[len(quote):], 0
	for ; ; end++ {
		if end >= len(body) || body[end] == '\n' && len(quote) == 1 {
			return false
		}
		if strings.HasPrefix(body[end:], quote) {
			break
		}
		if body[end] == '\\' {
			if end++; end < len(body) && body[end] == '(' && s.l == jqText {
				return false // with more of the program in it
			}
		}
	}
	text := body[:end]
	s.rest = body[end+len(quote):]
	open := strings.Contains(prefix, "f") && strings.ContainsAny(text, "{}")
	if open && (strings.Contains(text, "(") || strings.Count(text, "{") != strings.Count(text, "}")) { // with calls, or texts, in it
		return false
	}
	unsure := `\`
	if open {
		unsure = `\{}`
	}
	if i := strings.IndexAny(text, unsure); i >= 0 {
		text = text[:i] + unplain
	}
	s.tokens = append(s.tokens, token{textToken, text})
	return true
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func wordLength(text string) int {
	for i := range len(text) {
		if !isWordByte(text[i]) {
			return i
		}
	}
	return len(text)
}

// closing is the place of the bracket that closes the one at open; -1: there is none.
func closing(tokens []token, open int) int {
	depth := 0
	for i := open; i < len(tokens); i++ {
		switch t := tokens[i]; {
		case t.is("("), t.is("["), t.is("{"):
			depth++
		case t.is(")"), t.is("]"), t.is("}"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
