package transcripts

import (
	"bytes"
	"context"
	"strconv"
)

// printer writes matching lines, the lines round them, and their numbers. It
// reads what it prints itself, so that a search need not keep it. Lines are
// numbered only when they are printed.
type printer struct {
	page   *page // for what is printed
	count  *page // for counting lines, which goes forward only
	index  *index
	around int // context lines
	left   int // matches it still takes

	text    []byte
	matches int64
	counted mark // a line whose number is known
	next    mark // the line after the last printed one; line 0: none was
	after   int  // context lines still due after the last match
}

// full reports whether it takes no more matches: a line is cut to maxLineRunes,
// of at most four bytes each.
func (p *printer) full() bool { return p.left == 0 || len(p.text) > maxAnswer-4*maxLineRunes }

// roomy reports whether a context line leaves room for a match.
func (p *printer) roomy() bool { return len(p.text) < maxAnswer-8*maxLineRunes }

// match prints the line from start to end, after the context that is due
// between the last match and this one.
func (p *printer) match(ctx context.Context, start, end, focus int64) error {
	if err := p.finish(ctx, start); err != nil {
		return err
	}
	number, err := p.number(ctx, start)
	if err != nil {
		return err
	}
	first := mark{number, start}
	for n := p.around; n > 0 && first.off > p.next.off; n-- {
		if first.off, err = p.page.newlineBefore(ctx, first.off-1, p.next.off); err != nil {
			return err
		}
		first.line--
	}
	if p.around > 0 && p.next.line > 0 && first.off > p.next.off {
		p.text = append(p.text, "--\n"...)
	}
	for first.off < start {
		if first, err = p.context(ctx, first); err != nil {
			return err
		}
	}
	p.left--
	p.matches++
	p.next, p.after = mark{number + 1, end + 1}, p.around
	return p.line(number, ':', start, end, focus)
}

// finish prints the context that is due after the last match, as far as the
// line that begins at limit.
func (p *printer) finish(ctx context.Context, limit int64) (err error) {
	for ; p.after > 0 && p.next.off < limit; p.after-- {
		if p.next, err = p.context(ctx, p.next); err != nil {
			return err
		}
	}
	p.after = 0
	return nil
}

// context prints a line that did not match, if there is room, and returns the
// next one.
func (p *printer) context(ctx context.Context, at mark) (next mark, err error) {
	end, err := p.page.newlineAfter(ctx, at.off)
	if err == nil && p.roomy() {
		err = p.line(at.line, '-', at.off, end, at.off)
	}
	return mark{at.line + 1, end + 1}, err
}

func (p *printer) line(number int64, sign byte, start, end, focus int64) (err error) {
	p.text = append(strconv.AppendInt(p.text, number, 10), sign)
	p.text, err = p.page.appendLine(p.text, start, end, focus)
	return err
}

// number is the number of the line that begins at start.
func (p *printer) number(ctx context.Context, start int64) (int64, error) {
	if p.index != nil {
		if m := p.index.beforeOffset(start); m.off > p.counted.off {
			p.counted = m
		}
	}
	for p.counted.off < start {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		text, err := p.count.bytes(p.counted.off, min(block, start-p.counted.off))
		if err != nil {
			return 0, err
		}
		p.counted.line += int64(bytes.Count(text, []byte("\n")))
		p.counted.off += int64(len(text))
	}
	return p.counted.line, nil
}

// newlineBefore is the offset after the last newline in the text from floor to
// off, or floor.
func (p *page) newlineBefore(ctx context.Context, off, floor int64) (int64, error) {
	for off > floor {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		from := max(floor, off-block)
		if p.at < off && off <= p.at+int64(len(p.buf)) {
			from = max(floor, p.at) // what is at hand first
		}
		text, err := p.bytes(from, off-from)
		if err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		off = from
	}
	return floor, nil
}
