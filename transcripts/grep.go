package transcripts

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

	"stopgate/gate"
)

// Bounds of one search.
const (
	defaultMatches = 100
	maxMatches     = 1000
	maxContext     = 20

	window     = 256 << 10 // read at once; fits a processor's own cache
	maxInPlace = 1 << 20   // a line that is longer is searched without being held

	// defaultCountFurther is how much text is searched only to count the matches
	// that are not shown, where every line has to be asked.
	defaultCountFurther = 256 << 20
)

// GrepSearch is the lines that a pattern of RE2's syntax finds, each on its
// own, as "number:text", with lines round them as "number-text" and "--"
// between groups; see [gate.Transcript]. By default 100 matches, at most 1,000
// and 64 KiB; a long line is cut round its match. The last line counts the
// matches, also those that are not shown.
//
// When ctx ends, its error is returned.
func (v *view) GrepSearch(ctx context.Context, q gate.Grep) (string, error) {
	p, err := compile(q.Pattern)
	if err != nil {
		return "", err
	}
	select {
	case v.store.searches <- struct{}{}:
		defer func() { <-v.store.searches }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	limit := q.Limit
	if limit < 1 {
		limit = defaultMatches
	}
	v.building.Lock()
	known := v.known
	v.building.Unlock()
	out := printer{index: known, page: v.page(), count: v.page(), around: min(max(q.Context, 0), maxContext),
		left: min(limit, maxMatches), counted: mark{line: 1}}
	s := search{ctx: ctx, view: v, pattern: p, out: &out}
	if err := s.run(); err != nil {
		return "", v.lost(err)
	}
	if err := out.finish(ctx, v.size); err != nil {
		return "", v.lost(err)
	}
	return string(out.text) + s.summary(), nil
}

// search goes through a view once.
type search struct {
	ctx     context.Context
	view    *view
	pattern *pattern
	out     *printer

	matches int64 // lines that match
	further int64 // bytes searched after the printer was full
	stopped bool  // not all lines were searched
}

func (s *search) summary() string {
	shown := s.out.matches
	switch {
	case s.matches == 0:
		return "(no line matches)\n"
	case s.stopped:
		return fmt.Sprintf("(%d matching lines shown, at least %d left out, where the search was stopped: use a narrower pattern)\n", shown, s.matches-shown)
	case shown == s.matches:
		return fmt.Sprintf("(%d matching %s)\n", shown, plural("line", shown))
	}
	return fmt.Sprintf("(%d of %d matching lines shown, %d left out: use a narrower pattern)\n", shown, s.matches, s.matches-shown)
}

func plural(noun string, n int64) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// run reads window by window, each ending with a whole line.
func (s *search) run() error {
	buf := make([]byte, window)
	found := candidates{pattern: s.pattern}
	for at := int64(0); at < s.view.size && !s.stopped; {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		text := buf[:min(int64(len(buf)), s.view.size-at)]
		if n, err := s.view.text.ReadAt(text, at); n < len(text) {
			return cutShort(err)
		}
		if at+int64(len(text)) < s.view.size {
			whole := bytes.LastIndexByte(text, '\n') + 1
			switch {
			case whole > 0:
				text = text[:whole]
			case len(buf) < maxInPlace:
				buf = make([]byte, 2*len(buf))
				continue
			default:
				end, err := s.longLine(at)
				if err != nil {
					return err
				}
				at = end + 1
				continue
			}
		}
		found.begin(text)
		if err := s.window(&found, at); err != nil {
			return err
		}
		at += int64(len(text))
	}
	return s.ctx.Err()
}

// window searches whole lines that lie at base.
func (s *search) window(found *candidates, base int64) error {
	const breath = 32 << 10 // so much may be asked between two looks at ctx
	full, looked := s.out.full(), 0
	for at := 0; ; {
		if at-looked > breath {
			if looked = at; s.ctx.Err() != nil {
				return s.ctx.Err()
			}
		}
		place := found.from(at)
		if place < 0 {
			break
		}
		start := at + bytes.LastIndexByte(found.text[at:place], '\n') + 1
		end := len(found.text)
		if i := bytes.IndexByte(found.text[place:], '\n'); i >= 0 {
			end = place + i
		}
		if s.pattern.matches(s.ctx, found.text[start:end]) {
			found.matched()
			if err := s.match(found.text[start:end], base+int64(start), base+int64(end)); err != nil {
				return err
			}
		}
		at = end + 1
	}
	if full {
		s.spend(int64(len(found.text)))
	}
	return nil
}

// spend stops a costly search that shows no more.
func (s *search) spend(n int64) {
	if len(s.pattern.needles) > 0 || s.pattern.enough || s.pattern.all {
		return
	}
	s.further += n
	s.stopped = s.further >= s.view.store.countFurther
}

// match counts a line and has it printed, round where the match is in it.
func (s *search) match(line []byte, start, end int64) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.matches++
	if s.out.full() {
		return s.out.finish(s.ctx, start)
	}
	focus := start
	if len(line) > maxLineRunes {
		focus += int64(s.pattern.place(line))
	}
	return s.out.match(s.ctx, start, end, focus)
}

// place is where in a matching line the match is; 0 if that takes long to say.
func (p *pattern) place(line []byte) int {
	if p.held() > 0 {
		c := candidates{pattern: p}
		c.begin(line)
		return max(c.from(0), 0)
	}
	if loc := p.law.FindIndex(line[:min(len(line), p.lawBytes)]); loc != nil {
		return loc[0]
	}
	return 0
}

// longLine searches the line that begins at start without holding it, and
// returns its end.
func (s *search) longLine(start int64) (end int64, err error) {
	if end, err = s.view.page().newlineAfter(s.ctx, start); err != nil {
		return 0, err
	}
	focus := start
	if s.pattern.held() > 0 {
		place, err := s.longLineHolds(start, end)
		if err != nil || place < 0 {
			return end, err
		}
		focus = place
	}
	if !s.pattern.enough {
		line := bufio.NewReaderSize(io.NewSectionReader(s.view.text, start, end-start), block)
		if !s.pattern.matchesReader(s.ctx, line) {
			return end, nil
		}
	}
	s.matches++
	if s.out.full() {
		s.spend(end - start)
		return end, s.out.finish(s.ctx, start)
	}
	return end, s.out.match(s.ctx, start, end, focus)
}

// longLineHolds is where the first needle, or run, in the text from start to end is; -1
// if none is there. Windows overlap by the longest.
func (s *search) longLineHolds(start, end int64) (int64, error) {
	overlap := s.pattern.held() - 1
	buf := make([]byte, window)
	found := candidates{pattern: s.pattern}
	for at := start; at < end; at += int64(len(buf) - overlap) {
		if err := s.ctx.Err(); err != nil {
			return 0, err
		}
		text := buf[:min(int64(len(buf)), end-at)]
		if n, err := s.view.text.ReadAt(text, at); n < len(text) {
			return 0, cutShort(err)
		}
		found.begin(text)
		if i := found.from(0); i >= 0 {
			return at + int64(i), nil
		}
	}
	return -1, nil
}
