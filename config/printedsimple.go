package config

import (
	"regexp"
	"slices"
	"strings"
)

// grammar is what a simple script of a language may name. By these words nothing
// can be reached that prints on standard output, reads a file, starts a program or
// takes in other code; how they are put together does not matter.
type grammar struct {
	words      []string
	attributes []string // behind a dot
}

var grammars = map[language]grammar{
	pythonText: {
		words: strings.Fields(`if elif else for while in not and or is def return try except finally pass break continue raise global import as None True False
			any all bool dict enumerate exit int isinstance len list max min quit range reversed set sorted str sum tuple zip __name__
			Exception KeyError TypeError ValueError SystemExit`),
		attributes: strings.Fields(`stdin stderr argv exit read readline write flush load loads dumps JSONDecodeError
			compile search match fullmatch findall finditer sub group groups pattern IGNORECASE MULTILINE DOTALL I M S
			get items keys values lower upper casefold strip lstrip rstrip startswith endswith split rsplit splitlines replace join find index count append add extend format`),
	},
	nodeText: {
		words: strings.Fields(`if else return true false null undefined try catch finally throw process console JSON
			decision ok continue permissionDecision hookSpecificOutput reason permissionDecisionReason stopReason systemMessage additionalContext hookEventName`),
		attributes: strings.Fields(`exit exitCode error stderr write stringify`),
	},
}

// modules are what a Python script may take in; sys is a part of Python itself.
var modules = []string{"sys", "json", "re"}

// uncalled are attributes that may stand without being called. What is not called could be
// given another meaning, as json.dumps by a function of the script's.
var uncalled = map[language][]string{
	pythonText: strings.Fields("stdin stderr argv JSONDecodeError pattern IGNORECASE MULTILINE DOTALL I M S"),
	nodeText:   strings.Fields("exitCode stderr"),
}

// simple looks at a script of Python or JavaScript, which is certain only if it is
// simple.
func (r *textReader) simple(text string, l language, dir string) {
	if l == nodeText && strings.HasPrefix(text, "#!") {
		_, text, _ = strings.Cut(text, "\n")
	}
	tokens, ok := tokensOf(text, l)
	if coding := otherCoding.FindStringSubmatch(text); l == pythonText && coding != nil && !strings.EqualFold(coding[1], "utf-8") {
		ok = false // it spells something else
	}
	if !ok {
		r.unseen("it has a script in it that is not simple enough to be followed")
		return
	}
	s := simpleScript{textReader: r, l: l, grammar: grammars[l], tokens: tokens, bound: boundNames(tokens, l)}
	for i := range tokens {
		s.look(i, dir)
	}
}

// otherCoding is what the first two lines of Python say of the bytes of all.
var otherCoding = regexp.MustCompile(`\A(?:[^\n\r]*[\n\r]+)?[ \t\f]*#[^\n\r]*coding[:=][ \t]*([-\w.]+)`)

type simpleScript struct {
	*textReader
	grammar
	l      language
	tokens []token
	bound  map[string]bool
}

// at is the token at a place; behind the end a mark that nothing is.
func (s *simpleScript) at(i int) token {
	if i < 0 || i >= len(s.tokens) {
		return token{kind: markToken}
	}
	return s.tokens[i]
}

// follows reports whether the tokens from a place on are these.
func (s *simpleScript) follows(i int, texts ...string) bool {
	for j, text := range texts {
		if t := s.at(i + j); t.kind == textToken || t.text != text {
			return false
		}
	}
	return true
}

func (s *simpleScript) look(i int, dir string) {
	t, before := s.at(i), s.at(i-1)
	switch {
	case t.is("[") && s.l == nodeText && (before.kind != markToken || before.is(")") || before.is("]")):
		s.unseen("it looks up names that it makes up as it runs")
	case t.kind != wordToken:
	case before.is("."):
		printing := s.l == nodeText && t.text == "log" && s.at(i-2).text == "console"
		next := s.at(i + 1)
		switch {
		case printing:
			s.printing(i+1, "JSON", "stringify")
		case !slices.Contains(s.attributes, t.text):
			s.unseen("what %q in its script does is not known", cut(t.text))
		case !next.is("(") && !slices.Contains(uncalled[s.l], t.text), next.is("=") && t.text != "exitCode":
			s.unseen("its script may give %q another meaning", cut(t.text))
		}
	case t.text == "import":
		s.importing(i+1, dir)
	case t.text == "print" && s.l == pythonText:
		s.printing(i+1, "json", "dumps")
	case s.l == pythonText && slices.Contains(modules, t.text):
		if s.bound[t.text] {
			s.unseen("its script may give %q another meaning", cut(t.text))
		}
	case !slices.Contains(s.words, t.text) && !s.bound[t.text]:
		s.unseen("what %q in its script does is not known", cut(t.text))
	}
}

// importing follows an import to its end.
func (s *simpleScript) importing(i int, dir string) {
	for ; slices.Contains(modules, s.at(i).text); i += 2 {
		if s.at(i).text != "sys" && !s.alone {
			if s.ran = append(s.ran, anyModule); s.shadowed(dir) {
				s.unseen("a module of the project's may stand for %s", s.at(i).text)
			}
		}
		if !s.at(i + 1).is(",") {
			return
		}
	}
	s.unseen("it takes in %q", cut(s.at(i).text))
}

// printing looks at the arguments of what prints, whose bracket opens at a place: a
// text, or an object that is written by a function of a module.
func (s *simpleScript) printing(open int, module, function string) {
	end := closing(s.tokens, open)
	if !s.at(open).is("(") || end < 0 {
		s.unsure("it prints by another name")
		return
	}
	if s.toStderr(open, end) || end == open+1 {
		return
	}
	first, next := s.at(open+1), s.at(open+2)
	if first.kind == textToken && (next.is(",") || open+2 == end) {
		text := first.text
		if s.l == nodeText && next.is(",") && strings.Contains(text, "%") {
			text = unplain // it is a form for the others
		}
		if next.is(",") {
			text += unplain
		}
		s.prints(text, true)
		return
	}
	if s.follows(open+1, module, ".", function, "(") && closing(s.tokens, open+4) == end-1 {
		if object, rest := display(s.tokens[open+5 : end]); object != nil && len(rest) == 1 {
			s.says = append(s.says, object)
			return
		}
	}
	s.unsure("what its script prints is put together as it runs")
}

// toStderr reports whether print is told to write to standard error.
func (s *simpleScript) toStderr(open, end int) bool {
	for i := open + 1; i < end; i++ {
		switch t := s.at(i); {
		case t.is("("), t.is("["), t.is("{"):
			if i = closing(s.tokens, i); i < 0 {
				return false
			}
		case t.is(",") && s.follows(i+1, "file", "=", "sys", ".", "stderr") && (s.at(i+6).is(",") || i+6 == end):
			return s.l == pythonText
		}
	}
	return false
}

// reaching are Python's own names that a script may not take for its own: where they
// are not bound they reach what is not seen.
var reaching = strings.Fields(`breakpoint classmethod compile copyright credits delattr dir eval exec filter getattr globals hasattr help input iter
	license locals map memoryview next object open print property setattr staticmethod super type vars`)

// boundNames are the names that a script of Python gives to values of its own. One
// of JavaScript that has any is not simple.
func boundNames(tokens []token, l language) map[string]bool {
	bound := map[string]bool{}
	bind := func(t token) {
		if l == pythonText && t.kind == wordToken && !strings.HasPrefix(t.text, "__") && !slices.Contains(reaching, t.text) {
			bound[t.text] = true
		}
	}
	for i, t := range tokens {
		switch next := tokens[min(i+1, len(tokens)-1)]; {
		case t.kind != wordToken:
		case next.is("="):
			bind(t)
		case t.text == "as":
			bind(next)
		case t.text == "for":
			for _, name := range tokens[i+1:] {
				if name.kind != wordToken && !name.is(",") || name.text == "in" {
					break
				}
				bind(name)
			}
		case t.text == "def" && i+2 < len(tokens) && tokens[i+2].is("("):
			bind(next)
			for _, name := range tokens[i+3 : max(closing(tokens, i+2), i+3)] {
				bind(name)
			}
		}
	}
	return bound
}
