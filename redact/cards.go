package redact

import "strings"

// A card number has 13 to 19 digits, in groups with one space or dash between
// them, begins with 2 to 6 as the issuers' do, and its last digit is the sum of the
// others by Luhn's rule. Digits of a longer number are none. Dots stand only between
// groups as cards have them, since fractions have dots, too.
const (
	leastDigits = 13
	mostDigits  = 19
)

// cards finds card numbers.
func cards(text string, found []span) []span {
	for at := 0; at < len(text); {
		if !digit(text[at]) {
			at++
			continue
		}
		end := max(digitsEnd(text, at), dottedEnd(text, at))
		if at == 0 || !wordly(text[at-1]) {
			found = cardsIn(text, at, end, found)
		}
		at = end
	}
	return found
}

// digitsEnd is the end of the groups of digits that begin at a place.
func digitsEnd(text string, at int) int {
	for at < len(text) {
		if digit(text[at]) {
			at++
			continue
		}
		next := at + separator(text[at:])
		if next == at || next == len(text) || !digit(text[next]) {
			break
		}
		at = next
	}
	return at
}

// separator is how many bytes long the space or dash is that a text begins with: an
// unbreakable one, too.
func separator(text string) int {
	if text[0] == ' ' || text[0] == '-' {
		return 1
	}
	if text[0] < 0x80 {
		return 0
	}
	for _, s := range []string{"\u00a0", "\u202f", "\u2009", "\u2010", "\u2011", "\u2013"} {
		if strings.HasPrefix(text, s) {
			return len(s)
		}
	}
	return 0
}

// dottedEnd is the end of a card's groups with dots between them: 4-4-4-4, or 4-6-5;
// 0: there are none.
func dottedEnd(text string, at int) int {
	for _, groups := range [][]int{{4, 4, 4, 4}, {4, 6, 5}} {
		end := at
		for i, n := range groups {
			from := end
			for end < len(text) && digit(text[end]) {
				end++
			}
			if end-from != n {
				break
			}
			if i == len(groups)-1 {
				return end
			}
			if end == len(text) || text[end] != '.' {
				break
			}
			end++
		}
	}
	return 0
}

// cardsIn finds card numbers among groups of digits: whole groups, so that each
// is tried from where a group begins to where one ends.
func cardsIn(text string, from, to int, found []span) []span {
	for at := from; at < to; {
		end := 0
		if text[at] >= '2' && text[at] <= '6' {
			end = cardEnd(text, at, to)
		}
		if end > 0 {
			found = append(found, spanOf("card", at, end))
			at = end
		}
		for at < to && digit(text[at]) {
			at++
		}
		for at < to && !digit(text[at]) {
			at++
		}
	}
	return found
}

// cardEnd is where the longest card number that begins here ends; 0: none does.
func cardEnd(text string, from, to int) (end int) {
	var sums [2]int // by Luhn, the digits at even places doubled, and those at odd ones
	n := 0
	for i := from; i < to && n <= mostDigits; i++ {
		if !digit(text[i]) {
			continue
		}
		if n == mostDigits {
			break
		}
		d := int(text[i] - '0')
		twice := 2 * d
		if twice > 9 {
			twice -= 9
		}
		sums[n%2] += twice
		sums[1-n%2] += d
		n++
		last := i+1 == len(text) || !wordly(text[i+1])
		// Counted from the right the last digit is not doubled, the one before it is.
		if n >= leastDigits && last && sums[n%2]%10 == 0 {
			end = i + 1
		}
	}
	return end
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// wordly reports a byte that a number next to it is a part of.
func wordly(c byte) bool {
	return digit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}
