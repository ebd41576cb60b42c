// Package nearest guesses what somebody meant who misspelt a word.
package nearest

import "strings"

// nearest is the legal word that a misspelt one most likely means, or "".
// Letter case, "-" and "_" count for nothing, as in fail_mode for failMode.
func nearest(word string, legal []string) string {
	best, least := "", 1+max(1, min(3, len(word)/3))
	for _, l := range legal {
		if folded(word) == folded(l) {
			return l
		}
		if d := distance(folded(word), folded(l)); d < least {
			best, least = l, d
		}
	}
	if best == "" {
		best = begun(word, legal)
	}
	return best
}

// begun is the one legal word that begins with a word, as claude-code with
// claude; "" where there are none, or several.
func begun(word string, legal []string) string {
	const least = 3 // letters that say anything
	found := ""
	for _, l := range legal {
		if len(word) >= least && strings.HasPrefix(folded(l), folded(word)) {
			if found != "" {
				return ""
			}
			found = l
		}
	}
	return found
}

// DidYouMean is the tail of a message about a word that is none of the legal
// ones: the one it most likely means, or "" when nothing is near.
func DidYouMean(word string, legal []string) string {
	if l := nearest(word, legal); l != "" {
		return `; did you mean "` + l + `"?`
	}
	return ""
}

func folded(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
}

// distance counts the letters to insert, remove, replace or swap with their
// neighbour to make b of a. Words over 40 bytes are far from everything.
func distance(a, b string) int {
	const most = 40
	if len(a) > most || len(b) > most {
		return most
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
