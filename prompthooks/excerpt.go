package prompthooks

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"stopgate/gate"
)

// The part of a conversation that a model without tools gets, in bytes: some
// 8,000 tokens, which local models have room for. The end is the largest: there
// the work was done that is judged.
const (
	headBytes = 6 << 10
	hitBytes  = 6 << 10
	tailBytes = 12 << 10
)

// partLines is how many lines are asked for at once. A line is rarely shorter
// than 40 bytes.
const partLines = 300

// searchedBytes before the tail are searched from the end, so that old lines
// with words of the check, however many, do not hide what came after them.
const searchedBytes = 1 << 20

// excerpt is a transcript's head, the lines between that have words of the
// prompt in them, and its tail.
func excerpt(ctx context.Context, tr gate.Transcript, prompt string) (text string, shown, total int, err error) {
	if total, err = countLines(ctx, tr); err != nil || total == 0 {
		return "", 0, 0, err
	}
	head, err := tr.ReadFile(ctx, 1, partLines)
	if err != nil {
		return "", 0, 0, err
	}
	first := numbered(head)
	if len(first) == total && fitting(first, headBytes+hitBytes+tailBytes) == total {
		return strings.Join(first, ""), total, total, nil
	}
	first = first[:fitting(first, headBytes)]
	var last []string
	room := tailBytes
	for line, err := range backwards(ctx, tr, len(first)+1, total) {
		if err != nil {
			return "", 0, 0, err
		}
		if room -= len(line); room < 0 {
			break
		}
		last = append(last, line)
	}
	slices.Reverse(last)
	between, err := hits(ctx, tr, prompt, len(first), total-len(last)+1)
	if err != nil {
		return "", 0, 0, err
	}
	all := slices.Concat(first, between, last)
	return joined(all, total), len(all), total, nil
}

// backwards are the lines from the last one to the first one, the last first.
// ReadFile ends an answer that gets too long before all lines are told that it
// was asked for: then it is asked for fewer, so that the newest are never those
// that are missing.
func backwards(ctx context.Context, tr gate.Transcript, first, last int) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for section := partLines; last >= first; {
			section = min(section, last-first+1)
			text, err := tr.ReadFile(ctx, last-section+1, section)
			if err != nil {
				yield("", err)
				return
			}
			lines := numbered(text)
			if len(lines) == 0 || lineNumber(lines[len(lines)-1]) != last {
				if section == 1 {
					return // it is not there any more, which the note of a gap says
				}
				section /= 2
				continue
			}
			for _, line := range slices.Backward(lines) {
				if !yield(line, nil) {
					return
				}
			}
			last -= section
		}
	}
}

// joined are numbered lines, with a note for each gap between them and up to
// the last line of all.
func joined(lines []string, total int) string {
	var b strings.Builder
	next := 1
	gap := func(end int) {
		if end > next {
			fmt.Fprintf(&b, "[lines %d to %d are not shown]\n", next, end-1)
			next = end
		}
	}
	for _, line := range lines {
		gap(lineNumber(line))
		b.WriteString(line)
		next++
	}
	gap(total + 1)
	return b.String()
}

// countLines finds the number of lines by reading single ones: what is beyond
// the end has no number.
func countLines(ctx context.Context, tr gate.Transcript) (int, error) {
	has := func(n int) (bool, error) {
		line, err := tr.ReadFile(ctx, n, 1)
		return strings.HasPrefix(line, strconv.Itoa(n)+"\t"), err
	}
	below, above := 0, 1 // the first is there, the second is not
	for ; above < 1<<30; above *= 2 {
		if there, err := has(above); err != nil {
			return 0, err
		} else if !there {
			break
		}
		below = above
	}
	for above-below > 1 {
		middle := (below + above) / 2
		if there, err := has(middle); err != nil {
			return 0, err
		} else if there {
			below = middle
		} else {
			above = middle
		}
	}
	return below, nil
}

// hits are the lines after one and before another that have words of the prompt
// in them, the newest of them that fit: searchedBytes before the end are read
// for them, and what a search from the beginning finds comes after those.
func hits(ctx context.Context, tr gate.Transcript, prompt string, after, before int) ([]string, error) {
	words := searchWords(prompt)
	if len(words) == 0 {
		return nil, nil
	}
	found, err := tr.GrepSearch(ctx, gate.Grep{Pattern: "(?i)" + strings.Join(words, "|"), Limit: 1000})
	if err != nil {
		return nil, err
	}
	lines := map[int]string{}
	room, left := hitBytes, searchedBytes
	for line, err := range backwards(ctx, tr, after+1, before-1) {
		if err != nil {
			return nil, err
		}
		if holds(line, words) {
			lines[lineNumber(line)] = line
			room -= len(line)
		}
		if left -= len(line); left < 0 || room < 0 {
			break
		}
	}
	for _, line := range numbered(found) {
		// The search shows a long line round what it found, so it goes before
		// the same line's beginning.
		if n := lineNumber(line); n > after && n < before {
			lines[n] = line
		}
	}
	newest := make([]string, 0, len(lines))
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(lines))) {
		newest = append(newest, lines[n])
	}
	newest = newest[:fitting(newest, hitBytes)]
	slices.Reverse(newest)
	return newest, nil
}

// holds reports whether a numbered line has one of the words, which are of lower
// case, in its text.
func holds(line string, words []string) bool {
	_, text, _ := strings.Cut(line, "\t")
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

var word = regexp.MustCompile(`[\pL\pN_]{5,}`)

// plain are words that checks are full of and that find everything.
var plain = []string{"about", "after", "agent", "allow", "answer", "before", "block", "check", "conversation", "decision",
	"either", "every", "false", "final", "other", "output", "reason", "response", "return", "shall", "should", "their",
	"there", "these", "those", "unless", "using", "verify", "where", "whether", "which", "while", "would", "arguments"}

// searchWords are the longest words of a check, a dozen: the longer a word, the
// less common it is.
func searchWords(prompt string) []string {
	found := word.FindAllString(strings.ToLower(gate.Cut(prompt, maxPromptBytes)), 5000)
	slices.Sort(found)
	found = slices.DeleteFunc(slices.Compact(found), func(w string) bool { return slices.Contains(plain, w) })
	slices.SortStableFunc(found, func(a, b string) int { return len(b) - len(a) })
	found = found[:min(len(found), 12)]
	for i, w := range found {
		found[i] = gate.Cut(w, 100) // letters and digits: a pattern that finds itself
	}
	return found
}

// numbered are the lines of a tool's result that are the transcript's own.
func numbered(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if lineNumber(line) > 0 {
			lines = append(lines, bounded(strings.TrimSuffix(line, "\n")+"\n"))
		}
	}
	return lines
}

// lineNumber is the number that a line begins with ("12<TAB>text", "12:text");
// 0: none.
func lineNumber(line string) int {
	i := strings.IndexFunc(line, func(r rune) bool { return r < '0' || r > '9' })
	if i < 1 || line[i] != '\t' && line[i] != ':' && line[i] != '-' {
		return 0
	}
	n, err := strconv.Atoi(line[:i])
	if err != nil { // digits, too many for a number
		return 0
	}
	return n
}

// fitting is how many of the lines fit into n bytes.
func fitting(lines []string, n int) int {
	for i, line := range lines {
		if n -= len(line); n < 0 {
			return i
		}
	}
	return len(lines)
}
