// Package shell says which programs a command line would start, reading it as a
// shell does, without running anything:
//
//	reading := shell.Read(`cd d && sudo bash -c 'git push -f'`)
//	for _, c := range reading.Commands {
//		fmt.Println(c.Name(), c.Args) // cd, then sudo, bash and git
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
// branches of an if.
package shell

import (
	"path"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Word is one word of a command.
type Word struct {
	Text string // without its quotes
	// Literal: the text is the word's whole value. If not, a shell would put
	// something in the place of a part of it: variables, patterns, braces.
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
	Program      Word
	Args         []Word
	Assignments  []Assignment
	Redirections []Redirection
}

// Name is the program without its directory, "" where only a running shell
// knows it.
func (c Command) Name() string {
	if !c.Program.Literal {
		return ""
	}
	return path.Base(c.Program.Text)
}

// Reading is what a command line would start.
type Reading struct {
	// Commands are in the order of the text, one that starts another before it.
	Commands []Command
	// Guessed: some of the text is no shell that this package can read, or is
	// beyond one of its bounds. Whatever word of it might be a program is one.
	Guessed bool
}

// Bounds of a reading. What is beyond them is guessed at.
const (
	MaxBytes = 64 << 10 // of a text that is parsed
	MaxDepth = 8        // of texts inside texts, as bash -c "bash -c …"
	// maxNesting is how many openings a text that is parsed has: the parser
	// recurses on them.
	maxNesting = 4000
	// maxWork is how much is parsed in all, texts inside texts counted for each
	// way that leads to them: those can multiply.
	maxWork = 4 * MaxBytes
	// guessedArgs is how many arguments a program has that is guessed at.
	guessedArgs = 1000
)

// Read reads a command line. It never fails: a shell that runs what it can of a
// broken text is to be expected.
func Read(text string) Reading {
	r := &reader{}
	r.text(text, 0)
	if r.work > maxWork {
		r.guess(text)
	}
	return r.Reading
}

// reader gathers what one text, and those inside it, would start.
type reader struct {
	Reading
	work int // bytes, and some for each text
}

// text reads one text at a depth of texts inside texts.
func (r *reader) text(text string, depth int) {
	if r.work += len(text) + 64; r.work > maxWork {
		return // Read guesses at the whole
	}
	if len(text) > MaxBytes || depth > MaxDepth || len(openings.FindAllStringIndex(text, maxNesting)) == maxNesting {
		r.guess(text)
		return
	}
	statements, rest := parse(text)
	for _, s := range statements {
		r.statement(text, s, depth)
	}
	if rest != "" {
		r.guess(rest)
	}
}

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

// guess takes every word for a program, and what follows it up to a separator
// for its arguments, as if there were no quotes: it finds too much rather than
// too little.
func (r *reader) guess(text string) {
	r.Guessed = true
	plain := strings.NewReplacer(`'`, ``, `"`, ``, `\`, ``).Replace(text)
	for piece := range strings.FieldsFuncSeq(plain, func(c rune) bool { return strings.ContainsRune("\n;|&(){}`$<>", c) }) {
		all := literals(strings.Fields(piece))
		for i := range all {
			r.Commands = append(r.Commands, Command{Program: all[i], Args: all[i+1 : min(i+1+guessedArgs, len(all))]})
		}
	}
}

func literals(words []string) []Word {
	all := make([]Word, len(words))
	for i, w := range words {
		all[i] = Word{w, true}
	}
	return all
}
