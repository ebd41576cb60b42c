// Package shell says which programs a command line would start, reading it as a
// shell does, without running anything:
//
//	budget := shell.NewBudget(ctx)
//	for c := range shell.Read(budget, `cd d && sudo bash -c 'git push -f'`) {
//		fmt.Println(c.Name(), c.Args) // cd, then sudo, bash and git
//	}
//	if budget.Spent() {
//		fmt.Println("and who knows what else")
//	}
//
// It goes into what a shell would go into: lists, subshells, functions, `$( )`,
// shells with -c, eval, programs that start another (env, sudo, timeout, xargs,
// find -exec, …), and text that is written into a shell (`echo … | sh`, here
// documents). What only a running shell knows, as a variable's value, stays as it
// is written, and its word is not Literal: `git push $FLAGS` may be anything.
//
// A reading is for rules that look for something forbidden, so it rather lists
// a command too many than one too few: functions count as called, and both
// branches of an if. What cannot be read at all, as the text that `curl … | sh`
// runs, or a program in another language, is not passed over in silence: the
// command that runs it is [Command.Opaque].
package shell

import (
	"iter"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Word is one word of a command.
type Word struct {
	Text string // without its quotes
	// Literal: the text is the word's whole value. If not, a shell would put
	// something in the place of a part of it: variables, patterns.
	Literal bool
}

// Assignment is a variable that is set for one command, as A=b in `A=b make`.
type Assignment struct {
	Name  string
	Value Word
}

// Redirection is one of a command's.
type Redirection struct {
	Operator string // as in "2>>", without the number: ">", ">>", "<", "<<<", …
	Target   Word   // a file or descriptor; of a here document its end mark
}

// Command is one program that would be started, or a builtin.
type Command struct {
	Program Word
	Args    []Word
	// Assignments are those of the command, and of what starts it: `A=b env C=d make`.
	Assignments  []Assignment
	Redirections []Redirection
	// Guessed: the text is no shell that this package can read, or is beyond one
	// of its bounds. Whatever word of it might be a program is one.
	Guessed bool
	// Partial: it gets more arguments, which only a running shell knows, as from
	// xargs.
	Partial bool
	// Unread: what it is given to run is not, or not all, among the commands of
	// the reading.
	Unread bool
}

// Name is the program without its directory, "" where only a running shell
// knows it: `"$PREFIX"/bin/git` is a git. It is "" too where there is none: redirections of
// what is no program (`> file`), variables that make the shell run something.
func (c Command) Name() string {
	if c.Program.Text == "" {
		return ""
	}
	name := path.Base(c.Program.Text)
	if !c.Program.Literal && (strings.ContainsAny(name, "$`*?[](){}~=") || strings.ContainsFunc(name, unicode.IsSpace)) {
		return ""
	}
	return name
}

// Opaque reports whether the command may start what the reading does not list: its
// program is not known, it is guessed at, or it runs a text that is Unread.
func (c Command) Opaque() bool {
	return c.Guessed || c.Unread || !c.Program.Literal && (c.Name() == "" || strings.ContainsAny(c.Program.Text, "$`"))
}

// Bounds of a reading. What is beyond them is guessed at.
const (
	MaxBytes = 64 << 10 // of a text that is parsed
	MaxDepth = 8        // of texts inside texts, as bash -c "bash -c …"
	// maxNesting is how many openings a text that is parsed has: the parser
	// recurses on them.
	maxNesting = 4000
)

// Read gives what a command line would start, in the order of the text, one that
// starts another before it. It never fails: a shell that runs what it can of a
// broken text is to be expected. Where the budget is spent it ends early.
func Read(budget *Budget, text string) iter.Seq[Command] {
	return func(yield func(Command) bool) {
		r := &reader{Budget: budget, yield: yield, outputs: map[*syntax.Stmt]known{}, calls: map[*syntax.CallExpr][]Word{}, read: map[*syntax.CallExpr]known{}}
		r.text(text, 0)
	}
}

// reader gives what one text, and those inside it, would start.
type reader struct {
	*Budget
	yield   func(Command) bool
	stopped bool                        // nobody wants more
	outputs map[*syntax.Stmt]known      // of the statements of a pipe, each of which would ask all before it
	calls   map[*syntax.CallExpr][]Word // what is worked out of braces may be long
	read    map[*syntax.CallExpr]known  // what those are piped of which something is known
	// redefined: there are functions, which may have the names of echo and cat.
	redefined bool
	functions map[string][]string // the bodies of those that have places for arguments
	dollar    bool                // a variable's value ends with one
}

// over reports whether the reading ends here.
func (r *reader) over() bool { return r.stopped || r.Spent() }

func (r *reader) give(c Command) {
	if r.Spend(1) && !r.stopped {
		r.stopped = !r.yield(c)
	}
}

// text reads one text at a depth of texts inside texts.
func (r *reader) text(text string, depth int) {
	if r.stopped || !r.Spend(perByte*min(len(text), MaxBytes)+perText) {
		return
	}
	if len(text) > MaxBytes || depth > MaxDepth || strings.Contains(text, "\x00") || len(text) >= maxNesting && len(openings.FindAllStringIndex(text, maxNesting)) == maxNesting {
		r.guess(text)
		return
	}
	if readOtherwise(text) {
		r.guess(text)
	}
	statements, rest := parse(text)
	for _, s := range statements {
		r.statement(text, s, depth)
	}
	if rest != "" {
		r.guess(rest)
	}
}

// readOtherwise reports whether a shell reads a text as others than the parser here do: it
// keeps carriage returns, ends a comment with its line, and may drop a backslash at the end.
func readOtherwise(text string) bool {
	return strings.Contains(text, "\r") || strings.HasSuffix(text, `\`) || !utf8.ValidString(text) || strings.Contains(text, "\\\n") && comment.MatchString(text)
}

// comment may be one with a backslash at its end.
var comment = regexp.MustCompile("(?:^|[\\s;&|()<>`])#[^\n]*\\\\\n")

var openings = regexp.MustCompile("[([{`]|\\b(?:if|while|until|for|select|case|do|then|else)\\b|[!&|]")

// parse reads the statements of a text up to what is no shell, which is the
// rest: a shell, too, has run what stands on the lines before. The parser's own
// failures are no better than the text's.
func parse(text string) (statements []*syntax.Stmt, rest string) {
	end := uint(0)
	defer func() {
		if recover() != nil {
			rest = text[min(end, uint(len(text))):]
		}
	}()
	for s, err := range syntax.NewParser(syntax.Variant(syntax.LangBash)).StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			return statements, text[min(end, uint(len(text))):]
		}
		statements, end = append(statements, s), s.End().Offset()
	}
	return statements, ""
}
