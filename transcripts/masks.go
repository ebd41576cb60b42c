package transcripts

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Masks hide secrets before anything of a conversation is written. What they give is
// as long as what they took, in bytes, with its newlines where they were: who sends a
// conversation in parts counts both. They are safe for concurrent use, and what they
// give may be what they took.
type Masks interface {
	// Text masks a text that is seen whole, or the part of one that stands alone.
	Text(text []byte) []byte
	// Behind masks a text that stands behind another, which is masked already.
	Behind(before, text []byte) []byte
	// JSON masks a JSON text, which stays one.
	JSON(doc []byte) []byte
	// Reader masks what is read.
	Reader(r io.Reader) io.Reader
	// Overlap is how many bytes on either side of an edge are to be seen together.
	Overlap() int
}

// asItComes hides nothing.
type asItComes struct{}

func (asItComes) Text(text []byte) []byte      { return text }
func (asItComes) Behind(_, text []byte) []byte { return text }
func (asItComes) JSON(doc []byte) []byte       { return doc }
func (asItComes) Reader(r io.Reader) io.Reader { return r }
func (asItComes) Overlap() int                 { return 0 }

// masked reports whether secrets are hidden.
func (s *Store) masked() bool {
	_, plain := s.masks.(asItComes)
	return !plain
}

// message appends the view of a message in JSON. It is masked twice: a value is known
// by its name and behind its escapes before it is rendered, and what rendering has
// decoded is seen after it.
func (s *Store) message(buf, raw []byte) ([]byte, error) {
	m, err := parseMessage(s.masks.JSON(bytes.TrimPrefix(raw, []byte(byteOrderMark))))
	if err != nil {
		return buf, err
	}
	return s.masks.Text(m.render(buf)), nil
}

const byteOrderMark = "\ufeff"

// copyText copies a text, masked.
func (s *Store) copyText(in io.Reader, out *bufio.Writer) error {
	_, err := io.Copy(out, s.masks.Reader(in))
	return err
}

// beginning is what a text begins with, as it was sent. It is held in memory.
type beginning struct {
	text []byte
	most int
}

func (b *beginning) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), b.most-len(b.text))]...)
	return len(p), nil
}

// behind masks what a spooled text begins with once more, now that it is known what
// it goes on from. The caller is the session's only writer.
func (s *Store) behind(k key, m meta, sp *spool) error {
	if len(sp.begins) == 0 || m.Bytes == 0 {
		return nil
	}
	before, err := s.storedEnd(k, m.Bytes, s.masks.Overlap())
	if err != nil {
		return err
	}
	clean := s.masks.Behind(before, sp.begins)
	spooled := make([]byte, len(sp.begins))
	if _, err := sp.file.ReadAt(spooled, 0); err != nil {
		return err
	}
	for i := range spooled { // what was masked for what follows it stays so
		if spooled[i] == sp.begins[i] {
			spooled[i] = clean[i]
		}
	}
	_, err = sp.file.WriteAt(spooled, 0)
	return err
}

// storedEnd is the last up to most bytes of the session's view, which has size bytes.
func (s *Store) storedEnd(k key, size int64, most int) ([]byte, error) {
	f, _, err := openCommitted(s.sessionDir(k))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	end := make([]byte, min(size, int64(most)))
	if n, err := f.ReadAt(end, size-int64(len(end))); n < len(end) {
		return nil, cutShort(err)
	}
	return end, nil
}

// copyLines copies what a host writes, one JSON object a line, masked. No reader
// shows a line that is none, or that is longer than a message may be: its bytes become
// stars. With whole, the last line is left where it has no newline and is no object:
// the rest of it comes with the next part, and half an object cannot be looked into.
// sent is told what was copied, as it came.
func (s *Store) copyLines(in io.Reader, out *bufio.Writer, whole bool, sent *ending) error {
	r := bufio.NewReaderSize(in, block)
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		last := errors.Is(err, io.EOF)
		line = append(line, part...)
		long = long || len(line) > s.maxMessage
		switch {
		case !long && err != nil && !last:
			continue // it goes on
		case !long && last && whole && !object(line):
			sent.left = len(line) > 0
			return nil
		}
		sent.add(line)
		if _, err := out.Write(s.maskedLine(line, long)); err != nil {
			return err
		}
		if last {
			return nil
		}
		line = line[:0]
		long = long && err != nil
	}
}

// maskedLine is a host's line, or with long a piece of one.
func (s *Store) maskedLine(line []byte, long bool) []byte {
	text := bytes.TrimPrefix(line, []byte(byteOrderMark))
	switch {
	case !long && object(text):
		if len(text) < len(line) {
			return append([]byte(byteOrderMark), s.masks.JSON(text)...)
		}
		return s.masks.JSON(line)
	case blank(line):
		return line
	}
	stars := bytes.Repeat([]byte{'*'}, len(line))
	if line[len(line)-1] == '\n' {
		stars[len(line)-1] = '\n'
	}
	return stars
}

// object reports whether a line is a JSON object.
func object(line []byte) bool {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte(byteOrderMark)))
	return len(line) > 0 && line[0] == '{' && json.Valid(line)
}
