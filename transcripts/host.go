package transcripts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"stopgate/gate"
)

// Formats of the session files that agent hosts write, named as the hosts'
// protocols are: one JSON object a line, the rest differs. Each has a file of
// its own here, host*.go.
const (
	formatClaudeCode = "claude-code"
	formatCodex      = "codex"
	formatCopilot    = "copilot"
	formatGeminiCLI  = "gemini-cli"
	formatQwenCode   = "qwen-code"
)

// hostFormat reads one session file, once. It is asked twice: which lines are
// the conversation, and what these say. So a file of a gigabyte, nearly all of
// it of no use to a judge, is held as one extent for each line that is. When the
// file has grown it is shown the new lines and asked again.
type hostFormat interface {
	// line looks at a line that begins at an offset of the file; the text is
	// valid until it returns. errNoMessage: the line is none and is counted.
	// Lines that are the host's own affair are no error.
	line(text []byte, at int64) error
	// chosen is the conversation, in its order, as far as lines were seen. It is
	// valid until the next line.
	chosen() []extent
	// held is how many lines something is held of.
	held() int
	// steps is what a chosen extent says. An error: it is no message.
	steps(text []byte) ([]step, error)
	// version is that of the host as the lines name it, a [gate.PlainVersion];
	// empty: none does.
	version() string
}

// writer is the program that wrote a session file, as its lines name it.
type writer struct{ named string }

// is takes a version, a JSON value; nil: there is none. The last one counts,
// since newer programs go on with old sessions.
func (w *writer) is(value []byte) {
	if len(value) < 2 || value[0] != '"' {
		return
	}
	text := value[1 : len(value)-1]
	if string(text) == w.named { // as on nearly every line
		return
	}
	if plain := gate.PlainVersion(text); plain != "" {
		w.named = plain
	}
}

func (w *writer) version() string { return w.named }

// extent of a file.
type extent struct {
	at   int64
	size int32
}

func extentOf(text []byte, at int64) extent { return extent{at, int32(len(text))} }

var (
	errNoMessage    = errors.New("the line is no message")
	errTooManyLines = fmt.Errorf("it has more than %d lines of conversation", maxSpans)
)

const (
	// maxSpans bounds what is held of a file: 100 MB at the most. The lines of
	// real files are longer than 400 bytes, so this is some 1.6 GB.
	maxSpans = 4 << 20
	// maxHostLine is the longest line that is read, in bytes.
	maxHostLine = 64 << 20
)

func newHostFormat(format string) (hostFormat, bool) {
	switch format {
	case formatClaudeCode:
		return &claudeCode{}, true
	case formatCodex:
		return &codex{}, true
	case formatCopilot:
		return &copilot{}, true
	case formatGeminiCLI:
		return &geminiCLI{}, true
	case formatQwenCode:
		return &qwenCode{}, true
	}
	return nil, false
}

// hostFile is a session file as it was when it was opened: hosts go on writing.
type hostFile struct {
	host    string // the name of its format
	format  hostFormat
	masks   Masks // of what is rendered; never nil
	file    io.ReaderAt
	size    int64
	most    int       // bytes of a line
	read    int64     // so far whole lines were seen
	skipped int64     // of them, lines that were no messages
	cut     bool      // behind them stands the beginning of another
	mixed   bool      // format has seen what need not stay: a last line without newline, or one too long
	view    *hostView // what the view is written to and continued from; nil: it is made once
	buf     []byte
}

// scan has the format see every line that it has not seen.
func (h *hostFile) scan(ctx context.Context) error {
	from := h.read
	in := lineReader{r: bufio.NewReaderSize(io.NewSectionReader(h.file, from, h.size-from), block), most: h.most}
	h.cut = false
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := from + in.read
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		whole := err == nil && from+in.read > at+int64(len(line))
		if whole && h.view != nil {
			h.view.sums.add(line)
		}
		if err == nil {
			text := bytes.TrimPrefix(line, []byte(byteOrderMark))
			err = h.format.line(text, at+int64(len(line)-len(text)))
		}
		none := errors.Is(err, errNoMessage) || errors.Is(err, errLongLine)
		switch {
		case err != nil && !none:
			return err
		case errors.Is(err, errNoMessage) && !whole: // which changed nothing in format
			h.cut = true
			return nil
		case none:
			h.skipped++
		}
		h.mixed = h.mixed || !whole
		h.read = from + in.read
	}
}

// steps reads an extent, whose text is valid until the next call.
func (h *hostFile) steps(sp extent) ([]step, error) {
	if cap(h.buf) < int(sp.size) {
		h.buf = make([]byte, sp.size)
	}
	text := h.buf[:sp.size]
	if n, err := h.file.ReadAt(text, sp.at); n < len(text) {
		return nil, cutShort(err)
	}
	if crowded(text) {
		return nil, errNoMessage
	}
	steps, err := h.format.steps(h.masks.JSON(text))
	if err != nil {
		return nil, errNoMessage
	}
	return steps, nil
}

// progress is how far a conversation is rendered, and what the rest of the view
// depends on.
type progress struct {
	rendering
	messages int    // extents of the conversation
	skipped  int64  // of them, those that were no messages
	room     []byte // for what is written next
}

// render writes the view of the conversation. A final answer that the file does
// not hold yet is its last message (spec/claude-code.md 10).
func (h *hostFile) render(ctx context.Context, out *bufio.Writer, final string) error {
	if err := h.scan(ctx); err != nil {
		return err
	}
	spans := h.format.chosen()
	var p progress
	var err error
	if h.view != nil {
		if p, err = h.view.resume(out, spans); err != nil {
			return err
		}
	}
	for p.messages < len(spans) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := h.message(&p, spans[p.messages], out); err != nil {
			return err
		}
		if h.view != nil {
			if err := h.view.reached(out, p, len(spans)); err != nil {
				return err
			}
		}
	}
	var b []byte
	if strings.TrimSpace(final) != "" {
		said, err := h.answer(ctx, spans)
		if err != nil {
			return err
		}
		if !sameAnswer(said, string(h.masks.Text([]byte(final)))) {
			b = h.masks.Text(p.append(b, step{kind: says, role: assistant, text: final}))
		}
	}
	skipped := h.skipped + p.skipped
	if h.cut {
		skipped++
	}
	if skipped > 0 {
		b = append(b, skippedLine(skipped)...)
	}
	_, err = out.Write(b)
	return err
}

// message renders the next extent.
func (h *hostFile) message(p *progress, sp extent, out *bufio.Writer) error {
	p.messages++
	steps, err := h.steps(sp)
	if errors.Is(err, errNoMessage) {
		p.skipped++
		return nil
	}
	if err != nil {
		return err
	}
	b := p.room[:0]
	for _, s := range steps {
		b = p.append(b, s)
	}
	b = h.masks.Text(b)
	p.room = b
	_, err = out.Write(b)
	return err
}
