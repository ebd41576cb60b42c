package redact

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Reader is what src holds, redacted, a window at a time. Its errors are src's.
func (r *Redactor) Reader(src io.Reader) io.Reader {
	return &reader{redactor: r, clean: r.settled, src: src, raw: make([]byte, 0, window+overlap)}
}

type reader struct {
	redactor *Redactor
	clean    func(string) string // takes the secrets out of one window
	src      io.Reader
	raw      []byte // read, and not yet redacted
	ready    string // redacted, and not yet handed out
	err      error  // of src
}

func (r *reader) Read(p []byte) (int, error) {
	for r.ready == "" {
		if len(r.raw) == 0 && r.err != nil {
			return 0, r.err
		}
		r.fill()
		r.ready = r.next()
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

func (r *reader) fill() {
	for r.err == nil && len(r.raw) < cap(r.raw) {
		var n int
		n, r.err = r.src.Read(r.raw[len(r.raw):cap(r.raw)])
		r.raw = r.raw[:len(r.raw)+n]
	}
}

// next redacts what is read; while more is to come, the last of it stays, and with
// it a secret that reaches into it.
func (r *reader) next() string {
	text := string(r.raw)
	if r.err != nil {
		r.raw = r.raw[:0]
		return r.clean(text)
	}
	until := breakBefore(text, len(text)-overlap)
	spans := r.redactor.spans(text)
	for _, s := range spans {
		if s.begin >= until || s.end <= until {
			continue
		}
		if s.begin == 0 { // longer than any that is known: it goes as far as it is seen
			until = s.to
			break
		}
		until = s.begin
	}
	r.raw = append(r.raw[:0], text[until:]...)
	if len(spans) == 0 {
		return text[:until]
	}
	return r.clean(text[:until])
}

// breakBefore is where a text is best cut: after the last space or line not far
// before n, so that no word is; else before the character at n.
func breakBefore(text string, n int) int {
	const far = 4 << 10
	if i := strings.LastIndexAny(text[n-far:n], " \n\t"); i >= 0 {
		return n - far + i + 1
	}
	for back := range utf8.UTFMax {
		if utf8.RuneStart(text[n-back]) {
			return n - back
		}
	}
	return n
}
