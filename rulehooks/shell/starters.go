package shell

import (
	"iter"
	"slices"
	"strings"
)

// input is what is known of what a statement's programs read.
type input struct {
	whole bool // their standard input, to the letter
	plain bool // … in which no quotes are, nor backslashes
	files bool // the files that are other commands' outputs
}

// chain is the command that words are, the one that this starts with words of its
// own, and so on.
func chain(words []Word) iter.Seq[Command] {
	return func(yield func(Command) bool) {
		loose, option := false, false // in a loose starter, behind an option
		for first := true; len(words) > 0; {
			if text := words[0].Text; strings.HasPrefix(text, "-") {
				if text != "-" && text != "--" && !loose { // - ls is zsh's, time -- ls bash's
					if first {
						yield(Command{Program: words[0], Args: words[1:]})
					}
					return
				}
				words, option = words[1:], true
				continue
			} else if loose && (text == "." || text == ":" || option && !words[0].Literal && strings.ContainsAny(text, ":=")) {
				words, option = words[1:], false // no program, but a value: -v "$X":/y
				continue
			}
			option, first = false, false
			c := Command{Program: words[0], Args: words[1:]}
			if !yield(c) {
				return
			}
			if loose {
				words = c.Args
				continue
			}
			words, loose = started(c), starters[c.Name()].loose
		}
	}
}

// started gives a command and all that it would start itself.
func (r *reader) started(c Command, words []Word, in input, depth int) {
	if depth > MaxDepth {
		r.guess(joined(words).Text)
		return
	}
	loose, loads := false, false
	var set []Assignment // by what starts the next
	for link := range chain(words) {
		if r.over() {
			return
		}
		name := link.Name()
		c.Program, c.Args = link.Program, link.Args
		texts, loaded := settings(set)
		loads = loads || loaded
		texts = append(texts, r.runsTexts(name, c)...)
		if starters[name].loose && !loose {
			texts = append(texts, r.looseTexts(c.Args)...)
			loose = true
		}
		c.Unread = loads || r.unread(name, c, in) || slices.ContainsFunc(texts, func(w Word) bool { return !w.Literal })
		r.give(c)
		for _, text := range texts {
			r.text(text.Text, depth+1)
		}
		for _, a := range set {
			if a.Value.Literal {
				r.substituted(a.Value.Text, depth)
			}
		}
		switch name {
		case "find":
			for _, words := range findActions(c.Args) {
				r.started(Command{Assignments: slices.Clip(c.Assignments)}, marked(words, "{}"), input{}, depth+1)
			}
		case "xargs":
			words := started(c)
			options := c.Args[:len(c.Args)-len(words)]
			if mark := replaceMark(options); mark != "" || !in.whole || !in.plain || !plainWords(options) {
				r.started(Command{Assignments: slices.Clip(c.Assignments), Partial: mark == ""}, marked(words, mark), input{}, depth+1)
				return
			}
		}
		set = variables(name, c)
		c = Command{Assignments: append(c.Assignments, set...), Partial: c.Partial}
	}
}

// variables are those that a command sets for the words that it starts: those of
// env A=b make.
func variables(name string, c Command) (all []Assignment) {
	if !starters[name].variables {
		return nil
	}
	for _, w := range c.Args[:len(c.Args)-len(started(c))] {
		if name, value, is := strings.Cut(w.Text, "="); is && !strings.HasPrefix(name, "-") {
			all = append(all, Assignment{name, Word{value, w.Literal}})
		}
	}
	return all
}

// marked are words of which those with a mark are not literal: something is put in
// its place.
func marked(words []Word, mark string) []Word {
	if mark == "" {
		return words
	}
	all := slices.Clone(words)
	for i, w := range all {
		all[i].Literal = w.Literal && !strings.Contains(w.Text, mark)
	}
	return all
}

// plainWords reports whether an xargs with these options starts one command, with the words
// of its standard input behind it.
func plainWords(options []Word) bool {
	return !slices.ContainsFunc(options, func(w Word) bool {
		return !slices.Contains([]string{"-r", "-t", "-rt", "-tr", "--no-run-if-empty", "--verbose", "--"}, w.Text)
	})
}

// replaceMark is what an xargs with these options puts what it reads in the place
// of, "" where it puts that behind all.
func replaceMark(options []Word) (mark string) {
	const long = "--replace"
	for i, w := range options {
		name, value, _ := strings.Cut(w.Text, "=")
		at := strings.IndexAny(w.Text, "IJi")
		switch {
		case len(name) > len("--r") && strings.HasPrefix(long, name):
			mark = value
		case strings.HasPrefix(w.Text, "--") || !strings.HasPrefix(w.Text, "-") || at < 0:
			continue
		case at+1 < len(w.Text):
			mark = w.Text[at+1:]
		case w.Text[at] != 'i' && i+1 < len(options):
			mark = options[i+1].Text
		}
		if mark == "" {
			mark = "{}"
		}
	}
	return mark
}

// started is the command that a command starts with words of its own, none where
// it does not. A word that only a running shell knows may be a prefix, as in
// `$SUDO make`.
func started(c Command) []Word {
	name := c.Name()
	s, known := starters[name]
	if !known {
		if unknown(c) {
			return c.Args
		}
		return nil
	}
	if name == "capsh" || name == "script" { // what stands behind -- is capsh's shell's
		if at := slices.IndexFunc(c.Args, func(w Word) bool { return w.Text == "--" || w.Text == "==" }); at >= 0 {
			if words := c.Args[at+1:]; name == "script" {
				return words
			} else if c.Args[at].Text == "--" {
				return slices.Concat([]Word{{"bash", true}}, words)
			}
			return slices.Concat([]Word{{"capsh", true}}, c.Args[at+1:])
		}
	}
	rest, letters, _ := operandsOf(c.Args, bare[name], s.short, s.long)
	if strings.ContainsAny(letters, s.names) {
		return nil
	}
	for s.variables && len(rest) > 0 && (rest[0].Text == "-" || strings.Contains(rest[0].Text, "=")) { // env - A=b make
		rest = rest[1:]
	}
	if len(rest) > 0 && rest[0].Text == "--" {
		rest = rest[1:]
	}
	return rest[min(s.operands, len(rest)):]
}

// unknown reports whether a command may be any, as $SUDO.
func unknown(c Command) bool {
	return !c.Program.Literal && (strings.HasPrefix(c.Program.Text, "$") || strings.HasPrefix(c.Program.Text, "`"))
}

// operands are the words after the options, and the letters of those; a letter
// with a plus takes back one with a minus. short and long are the options that
// take the next word if nothing hangs on them.
func operands(args []Word, short string, long []string) (rest []Word, letters string) {
	rest, letters, _ = operandsOf(args, bareOptions{}, short, long)
	return rest, letters
}

// operandsOf is operands of a program whose other options are known. unsure: there are
// some that are not.
func operandsOf(args []Word, others bareOptions, short string, long []string) (rest []Word, letters string, unsure bool) {
	for len(args) > 0 {
		text := args[0].Text
		if len(text) < 2 || text[0] != '-' && text[0] != '+' {
			break
		}
		unsure = unsure || !args[0].Literal && !strings.HasPrefix(text, "--") // of which more may be an option
		args = args[1:]
		if text == "--" {
			break
		}
		more, takes, unknown := others.read(text, short, long)
		unsure = unsure || unknown
		if letters += more; text[0] == '+' {
			letters = strings.Map(func(l rune) rune {
				if strings.ContainsRune(text, l) {
					return -1
				}
				return l
			}, letters)
		}
		if takes && len(args) > 0 {
			args = args[1:]
		}
	}
	return args, letters, unsure
}

// doubtful reports whether a program that starts another has options that are not
// known, so that it may start it at another word.
func doubtful(name string, args []Word) bool {
	s, is := starters[name]
	if !is || s.loose {
		return false
	}
	_, _, unsure := operandsOf(args, bare[name], s.short, s.long)
	return unsure
}

// findActions are the commands that find starts.
func findActions(args []Word) (all [][]Word) {
	for i := 0; i < len(args); i++ {
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, args[i].Text) {
			continue
		}
		from := i + 1
		for i = from; i < len(args) && args[i].Text != ";" && args[i].Text != "+"; i++ {
		}
		all = append(all, args[from:i])
	}
	return all
}
