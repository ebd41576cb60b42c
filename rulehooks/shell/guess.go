package shell

import "strings"

// guessedArgs is how many arguments a program has that is guessed at.
const guessedArgs = 1000

// guess takes every word for a program, and what follows it up to a separator
// for its arguments, as if there were no quotes: it finds too much rather than
// too little. The text may be far longer than what is parsed, so that the words
// pass by and are not kept. They cost none of the budget but its time.
func (r *reader) guess(text string) {
	for piece := range strings.FieldsFuncSeq(text, separates) {
		if r.over() {
			return
		}
		r.guessPiece(piece)
	}
}

func separates(c rune) bool { return strings.ContainsRune("\n;|&(){}`$<>", c) }

func (r *reader) guessPiece(piece string) {
	var ahead []Word // a window that moves on; commands keep what they were given of it
	for w := range strings.FieldsSeq(piece) {
		if w = unquote.Replace(w); w == "" {
			continue
		}
		if len(ahead) == cap(ahead) {
			ahead = append(make([]Word, 0, min(8*(len(ahead)+1), 8*guessedArgs)), ahead...)
		}
		if ahead = append(ahead, Word{w, true}); len(ahead) > guessedArgs {
			r.giveGuess(ahead)
			ahead = ahead[1:]
		}
		if r.over() {
			return
		}
	}
	for ; len(ahead) > 0 && !r.over(); ahead = ahead[1:] {
		r.giveGuess(ahead)
	}
}

var unquote = strings.NewReplacer(`'`, ``, `"`, ``, `\`, ``)

func (r *reader) giveGuess(words []Word) {
	if r.Spend(0) && !r.stopped {
		r.stopped = !r.yield(Command{Program: words[0], Args: words[1:len(words):len(words)], Guessed: true})
	}
}
