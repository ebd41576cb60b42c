package expressions

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cel.dev/cel-go/cel"

	"stopgate/gate"
	"stopgate/internal/nearest"
)

// Problem is one thing that is wrong with an expression.
type Problem struct {
	At      int // runes of the text that stand before it
	Message string
}

// maxProblems of one expression are told: what follows the first is often no
// more than its consequence.
const maxProblems = 3

// problemsOf are what CEL finds, in the words of who wrote the expression. A text that
// is no expression has one: what stands behind it was read askew.
func problemsOf(env *cel.Env, event gate.EventName, text string, issues *cel.Issues) (problems []Problem) {
	for _, issue := range issues.Errors() {
		at := offset(text, issue.Location.Line(), issue.Location.Column())
		if wrong, is := strings.CutPrefix(issue.Message, "Syntax error: "); is {
			return append(problems, Problem{at, misread(wrong, before(text, at))})
		}
		if len(problems) == maxProblems {
			break
		}
		problems = append(problems, Problem{at, inWords(env, event, issue.Message, behind(text, at))})
	}
	return problems
}

// offset is how many runes stand before a place; lines count from 1, columns, in
// runes, from 0.
func offset(text string, line, column int) int {
	before := 0
	for range line - 1 {
		head, rest, found := strings.Cut(text, "\n")
		if !found {
			break
		}
		before += utf8.RuneCountInString(head) + 1
		text = rest
	}
	return before + max(column, 0)
}

func before(text string, at int) string {
	runes := []rune(text)
	return string(runes[:min(at, len(runes))])
}

func behind(text string, at int) string { return strings.TrimPrefix(text, before(text, at)) }

// quotedToken is what a parser's message is about.
var quotedToken = regexp.MustCompile(`(?s)\A(token recognition error at: |mismatched input |extraneous input |no viable alternative at input )'(.*?)'(?: expecting|\z)`)

// misread says what a text that is no expression has most likely instead of what was
// meant.
func misread(message, before string) string {
	token := ""
	if m := quotedToken.FindStringSubmatch(message); m != nil {
		token = strings.TrimSpace(m[2])
	}
	for _, slip := range []struct{ begins, meant string }{{"=>", ">="}, {"=<", "<="}, {"=", "=="}, {"&", "&&"}, {"|", "||"}, {"and", "&&"}, {"or", "||"}, {"not", "!"}} {
		switch {
		case slip.begins == "=" && strings.HasPrefix(token, "=") && strings.HasSuffix(before, "=="):
			return `there is no operator ===; did you mean "=="?`
		case token == slip.begins, !unicode.IsLetter(rune(slip.begins[0])) && strings.HasPrefix(token, slip.begins):
			return fmt.Sprintf("there is no operator %s; did you mean %q?", slip.begins, slip.meant)
		}
	}
	switch {
	case strings.HasPrefix(token, "'") || strings.HasPrefix(token, `"`):
		return "the text that begins here does not end"
	case token == "<EOF>":
		return "ends too early"
	}
	return "cannot be read here: " + gate.FirstRunes(message, 200)
}

// inWords is a message of CEL's as its reader needs it: a name that is not known
// says which are. rest is the text from its place on.
func inWords(env *cel.Env, event gate.EventName, message, rest string) string {
	if name, is := quotedBehind(message, "undeclared reference to '"); is {
		if strings.HasPrefix(rest, "(") {
			return noFunction(env, name)
		}
		if elsewhere := eventsWith(name); elsewhere != "" {
			return fmt.Sprintf("%s is not known on %s, only on %s", name, event, elsewhere)
		}
		names := namesOf(event)
		return fmt.Sprintf("%q is not known; on %s there are %s%s", gate.FirstRunes(name, 60), event, strings.Join(names, ", "), nearest.DidYouMean(name, names))
	}
	if name, is := quotedBehind(message, "undefined field '"); is {
		calls, redirections := fieldsOf[Call](), fieldsOf[Redirection]()
		return fmt.Sprintf("there is no field %q: what shell finds has %s, and a redirection %s%s", gate.FirstRunes(name, 60),
			strings.Join(calls, ", "), strings.Join(redirections, ", "), nearest.DidYouMean(name, append(calls, redirections...)))
	}
	switch {
	case strings.Contains(message, "overload for '@in' applied to '(string, string)'"):
		message += `; whether a text holds another is asked by text.contains("…")`
	case strings.Contains(message, "overload for 'contains' applied to 'list("):
		message += `; whether a list holds a text is asked by "…" in list`
	}
	return message
}

// quotedBehind is what stands in quotes at the end of how a message begins.
func quotedBehind(message, begins string) (name string, is bool) {
	rest, is := strings.CutPrefix(message, begins)
	name, _, _ = strings.Cut(rest, "'")
	return name, is
}

// noFunction says which function was most likely meant.
func noFunction(env *cel.Env, name string) string {
	if name == "not" {
		return `there is no function "not"; did you mean "!"?`
	}
	var names []string
	for _, f := range slices.Sorted(maps.Keys(env.Functions())) {
		if unicode.IsLetter(rune(f[0])) && f != "format" { // which is not to be had, see functions
			names = append(names, f)
		}
	}
	for _, m := range env.Macros() {
		names = append(names, m.Function())
	}
	return fmt.Sprintf("there is no function %q%s", gate.FirstRunes(name, 60), nearest.DidYouMean(name, names))
}

// fieldsOf are the fields that expressions find in a value of ours.
func fieldsOf[T any]() (names []string) {
	for f := range reflect.TypeFor[T]().Fields() {
		names = append(names, f.Tag.Get("cel"))
	}
	return names
}

// whyNoPattern says what of a pattern RE2 does not have; empty: it is one.
func whyNoPattern(pattern string) string {
	_, err := syntax.Parse(pattern, syntax.Perl)
	if err == nil {
		_, err = regexp.Compile(pattern)
	}
	if err == nil {
		return ""
	}
	wrong, ok := err.(*syntax.Error) //nolint:errorlint // neither wraps it
	if !ok {
		return "the pattern is no RE2 pattern: " + err.Error()
	}
	why := fmt.Sprintf("the pattern is no RE2 pattern: %s: %s", wrong.Code, gate.FirstRunes(wrong.Expr, 60))
	if wrong.Code == syntax.ErrInvalidPerlOp || wrong.Code == syntax.ErrInvalidEscape {
		why += "; RE2 has no looking ahead or behind, and no back-references"
	}
	return why
}
