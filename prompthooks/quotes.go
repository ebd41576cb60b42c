package prompthooks

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"stopgate/gate"
)

// A quote needs so many words, or one as long, to be evidence of anything.
const (
	leastWords = 2
	leastWord  = 6
)

func tooLittle(words string) bool {
	return strings.Count(words, " ")+1 < leastWords && len([]rune(words)) < leastWord
}

// verify looks every quote up: on its line and next to it, then anywhere, then
// in the event. A quote that stands elsewhere gets that line.
func (t *trial) verify(ctx context.Context, quotes []gate.Quote) error {
	within := ctx
	if !t.toolsBy.IsZero() {
		var cancel context.CancelFunc
		within, cancel = context.WithDeadline(ctx, t.toolsBy)
		defer cancel()
	}
	for i := range quotes {
		q := &quotes[i]
		words := asWords(q.Quote)
		if tooLittle(words) {
			continue
		}
		q.Verified = slices.ContainsFunc(t.eventTexts(), func(text string) bool { return strings.Contains(text, words) })
		if t.in.Transcript == nil {
			continue
		}
		line, err := t.find(within, q.Line, q.Quote)
		if within.Err() != nil && ctx.Err() == nil {
			continue // there was no time to look: it is not known to stand there
		}
		if err != nil {
			return err
		}
		if line > 0 {
			q.Line, q.Verified = line, true
		} else if q.Verified {
			q.Line = 0
		}
	}
	return nil
}

// find is the line on which a quote begins, 0 if it is nowhere.
func (t *trial) find(ctx context.Context, line int, quote string) (int, error) {
	const round = 3
	if line > 0 {
		from := max(line-round, 1)
		text, err := t.in.Transcript.ReadFile(ctx, from, 2*round+1+strings.Count(quote, "\n"))
		if err != nil {
			return 0, unreadable(err)
		}
		if text = withoutNumbers(text); strings.Contains(asWords(text), asWords(quote)) || strings.Contains(asWords(neutral(text)), asWords(quote)) {
			return line, nil
		}
	}
	longest := ""
	for part := range strings.SplitSeq(quote, "\n") { // a search sees one line
		if part = strings.TrimSpace(part); len(part) > len(longest) {
			longest = part
		}
	}
	words := strings.Fields(gate.Cut(longest, 300))
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	text, err := t.in.Transcript.GrepSearch(ctx, gate.Grep{Pattern: strings.Join(words, `\s+`), Limit: 1})
	if failure, ok := errors.AsType[*gate.Failure](err); ok && failure.Code == gate.BadOutput {
		return 0, nil // no pattern that can be searched for
	}
	if err != nil {
		return 0, unreadable(err)
	}
	n := 0
	for _, r := range text {
		if r < '0' || r > '9' || n > 1<<30 {
			break
		}
		n = n*10 + int(r-'0')
	}
	if !strings.HasPrefix(strings.TrimLeft(text, "0123456789"), ":") {
		return 0, nil // the search's own words, not a line
	}
	return n, nil
}

// unreadable is why a conversation cannot be judged: one that cannot be read must
// not be judged as if it were empty (fault G15).
func unreadable(err error) error {
	if f, ok := errors.AsType[*gate.Failure](err); ok {
		return f
	}
	return &gate.Failure{Code: gate.TranscriptUnreadable, Message: "the conversation could not be read: " + err.Error()}
}

// withoutNumbers takes the line numbers of ReadFile away.
func withoutNumbers(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		_, said, _ := strings.Cut(line, "\t")
		b.WriteString(said)
	}
	return b.String()
}

// asWords is a text as words: white space of any kind is one space, what takes no
// room is nothing.
func asWords(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// eventTexts are the texts of the event's context, each as words and as the judge
// is shown it.
func (t *trial) eventTexts() []string {
	if t.event == nil {
		t.event = []string{}
		var v any
		if json.Unmarshal(t.in.Context, &v) == nil {
			t.gather(v)
		}
	}
	return t.event
}

func (t *trial) gather(v any) {
	switch v := v.(type) {
	case string:
		t.event = append(t.event, asWords(v), asWords(neutral(v)))
	case []any:
		for _, x := range v {
			t.gather(x)
		}
	case map[string]any:
		for _, x := range v {
			t.gather(x)
		}
	}
}
