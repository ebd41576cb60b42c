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
// it of no use to a judge, is held as one extent for each line that is.
type hostFormat interface {
	// line looks at a line that begins at an offset of the file; the text is
	// valid until it returns. errNoMessage: the line is none and is counted.
	// Lines that are the host's own affair are no error.
	line(text []byte, at int64) error
	// chosen is the conversation, in its order, when all lines were seen.
	chosen() []extent
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
	file    io.ReaderAt
	size    int64
	most    int   // bytes of a line
	skipped int64 // lines that were no messages
	buf     []byte
}

// scan has the format see every line.
func (h *hostFile) scan(ctx context.Context) error {
	in := lineReader{r: bufio.NewReaderSize(io.NewSectionReader(h.file, 0, h.size), block), most: h.most}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := in.read
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			text := bytes.TrimPrefix(line, []byte("\ufeff"))
			err = h.format.line(text, at+int64(len(line)-len(text)))
		}
		switch {
		case errors.Is(err, errNoMessage) || errors.Is(err, errLongLine):
			h.skipped++
		case err != nil:
			return err
		}
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
	steps, err := h.format.steps(text)
	if err != nil {
		return nil, errNoMessage
	}
	return steps, nil
}

// render writes the view of the conversation. A final answer that the file does
// not hold yet is its last message (spec/claude-code.md 10).
func (h *hostFile) render(ctx context.Context, out *bufio.Writer, final string) error {
	if err := h.scan(ctx); err != nil {
		return err
	}
	spans := h.format.chosen()
	var r rendering
	var b []byte
	for _, sp := range spans {
		if err := ctx.Err(); err != nil {
			return err
		}
		steps, err := h.steps(sp)
		if errors.Is(err, errNoMessage) {
			h.skipped++
			continue
		}
		if err != nil {
			return err
		}
		b = b[:0]
		for _, s := range steps {
			b = r.append(b, s)
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	b = b[:0]
	if strings.TrimSpace(final) != "" {
		said, err := h.answer(ctx, spans)
		if err != nil {
			return err
		}
		if !sameAnswer(said, final) {
			b = r.append(b, step{kind: says, role: assistant, text: final})
		}
	}
	if h.skipped > 0 {
		b = append(b, skippedLine(h.skipped)...)
	}
	_, err := out.Write(b)
	return err
}
