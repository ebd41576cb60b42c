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
		there, err := t.standsAt(ctx, from, 2*round+1+strings.Count(quote, "\n"), quote)
		if err != nil || there {
			return line, err
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
	n := lineNumber(text)
	if n == 0 {
		return 0, nil // the search's own words, not a line
	}
	breaks := strings.Count(quote, "\n") // of the quote one line was searched for: the rest must be there too
	there, err := t.standsAt(ctx, max(n-breaks, 1), 2*breaks+1, quote)
	if err != nil || !there {
		return 0, err
	}
	return n, nil
}

// standsAt reports whether a quote stands in a range of lines, as they are or as
// the judge was shown them.
func (t *trial) standsAt(ctx context.Context, from, count int, quote string) (bool, error) {
	text, err := t.in.Transcript.ReadFile(ctx, from, count)
	if err != nil {
		return false, unreadable(err)
	}
	text, quote = withoutNumbers(text), asWords(quote)
	return strings.Contains(asWords(text), quote) || strings.Contains(asWords(neutral(text)), quote), nil
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
		t.event = textsOf(t.in.Context, func(string) bool { return true })
	}
	return t.event
}

// shows reports whether a quote of a verdict shows anything: words of the
// conversation, or of a tool. What the agent says of itself, and the gate's own
// words, do not.
func (t *trial) shows(q gate.Quote) bool {
	if !q.Verified || q.Line > 0 {
		return q.Verified
	}
	tools := textsOf(t.in.Context, func(field string) bool { return field == "tool_input" || field == "tool_result" })
	return slices.ContainsFunc(tools, func(text string) bool { return strings.Contains(text, asWords(q.Quote)) })
}

// textsOf are the texts in some fields of an event's context.
func textsOf(context []byte, in func(field string) bool) []string {
	texts := []string{}
	var fields map[string]any
	if json.Unmarshal(context, &fields) != nil {
		return texts
	}
	var gather func(v any)
	gather = func(v any) {
		switch v := v.(type) {
		case string:
			texts = append(texts, asWords(v), asWords(neutral(v)))
		case []any:
			for _, x := range v {
				gather(x)
			}
		case map[string]any:
			for _, x := range v {
				gather(x)
			}
		}
	}
	for name, value := range fields {
		if in(name) {
			gather(value)
		}
	}
	return texts
}
