package transcripts

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"stopgate/gate"
)

// WriteMessages writes a rendered conversation as messages again, a JSON object a line:
// what would be rendered so. Whoever said what is taken from the lines that begin a
// message, so the text must not be one that holds what was sent as text (see
// [Store.View]). Images and the like, which are not rendered, are not there; what a view
// itself notes has the role "note". It is never held whole.
func WriteMessages(w io.Writer, text io.Reader) error {
	in := bufio.NewReaderSize(text, block)
	m := messageWriter{out: bufio.NewWriter(w)}
	var held []byte // of a line longer than a block
	for begins := true; ; {
		piece, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		line, isMark := bytes.TrimSuffix(piece, []byte("\n")), false
		if begins {
			words := strings.TrimSuffix(strings.TrimPrefix(string(line), markBegin), markEnd)
			if isMark = len(words) > 0 && len(words) == len(line)-len(markBegin)-len(markEnd); isMark {
				m.begin(strings.Fields(words))
			} else if bytes.HasPrefix(line, []byte(`\`)) && looksLikeMark(line) { // as it was escaped
				piece = piece[1:]
			}
		}
		if !isMark {
			piece = append(held, piece...)
			n := len(piece)
			if errors.Is(err, bufio.ErrBufferFull) {
				n = wholeRunes(piece)
			}
			m.say(piece[:n])
			held = slices.Clone(piece[n:])
		}
		if errors.Is(err, io.EOF) {
			m.finish()
			return m.out.Flush()
		}
		begins = err == nil
	}
}

// wholeRunes is how many bytes of a text stand before a character that is cut at its
// end.
func wholeRunes(text []byte) int {
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// messageWriter writes one message after another, the text of each as it comes. The
// writer keeps what went wrong for its Flush.
type messageWriter struct {
	out *bufio.Writer
	end string // of the message that is open; empty: none is
}

// begin opens the message of a marker's words.
func (m *messageWriter) begin(words []string) {
	m.finish()
	inBrackets := func(w string) bool { return strings.HasPrefix(w, "(") && strings.HasSuffix(w, ")") }
	rest, id := words[1:], ""
	if n := len(rest); n > 0 && rest[n-1] == "failed" { // of a host's result, for which messages have no word
		rest = rest[:n-1]
	}
	if n := len(rest); n > 0 && inBrackets(rest[n-1]) {
		rest, id = rest[:n-1], strings.Trim(rest[n-1], "()")
	}
	switch {
	case len(rest) == 2 && rest[0] == "calls":
		m.open(`"}]}`, words[0], `"tool_calls":[{`, "id", id, "name", rest[1], "arguments")
	case len(rest) <= 1:
		m.open(`"}`, words[0], "", "name", strings.Join(rest, ""), "tool_call_id", id, "content")
	default:
		m.open(`"}`, "note", "", "content")
		m.say([]byte(strings.Join(words, " ")))
	}
}

// open writes a message up to its text: its role, what stands behind that, and members
// that are not empty; the last one is the text's.
func (m *messageWriter) open(end, role, behind string, members ...string) {
	m.end = end
	_, _ = m.out.WriteString(`{"role":` + inJSON(role) + "," + behind)
	for len(members) > 1 {
		if members[1] != "" {
			_, _ = m.out.WriteString(inJSON(members[0]) + ":" + inJSON(members[1]) + ",")
		}
		members = members[2:]
	}
	_, _ = m.out.WriteString(inJSON(members[0]) + `:"`)
}

// say adds to the message's text. What stands before the first marker is a note.
func (m *messageWriter) say(text []byte) {
	if len(text) == 0 {
		return
	}
	if m.end == "" {
		m.begin([]string{"note"})
	}
	quoted := inJSON(string(text))
	_, _ = m.out.WriteString(quoted[1 : len(quoted)-1])
}

func (m *messageWriter) finish() {
	if m.end != "" {
		_, _ = m.out.WriteString(m.end + "\n")
	}
	m.end = ""
}

// inJSON is a text in JSON.
func inJSON(text string) string {
	quoted, err := gate.PlainJSON(text)
	if err != nil { // a text always has a JSON form
		panic(err)
	}
	return string(quoted)
}
