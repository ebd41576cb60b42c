package prompthooks

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"unicode"

	"stopgate/gate"
)

// leastQuote is how many letters a quote needs to be evidence of anything.
const leastQuote = 3

// verify looks every quote up: on its line and next to it, then anywhere, then
// in the event. A quote that stands elsewhere gets that line.
func (t *trial) verify(ctx context.Context, quotes []gate.Quote) error {
	for i := range quotes {
		q := &quotes[i]
		words := plain(q.Quote)
		if len([]rune(words)) < leastQuote {
			continue
		}
		if strings.Contains(t.eventText(), words) {
			q.Verified = true
		}
		if t.in.Transcript == nil {
			continue
		}
		line, err := t.find(ctx, q.Line, q.Quote)
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
		if strings.Contains(plain(withoutNumbers(text)), plain(quote)) {
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

func unreadable(err error) error {
	if f, ok := errors.AsType[*gate.Failure](err); ok {
		return f
	}
	return err
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

// plain is a text as words: white space of any kind is one space, what takes no
// room is nothing.
func plain(s string) string {
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

// eventText is every text of the event's context, as words.
func (t *trial) eventText() string {
	if t.event == nil {
		var v any
		var b strings.Builder
		if json.Unmarshal(t.in.Context, &v) == nil {
			gather(&b, v)
		}
		text := plain(b.String())
		t.event = &text
	}
	return *t.event
}

func gather(b *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		b.WriteString(v)
		b.WriteByte('\n')
	case []any:
		for _, x := range v {
			gather(b, x)
		}
	case map[string]any:
		for _, x := range v {
			gather(b, x)
		}
	}
}
