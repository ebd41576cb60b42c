package main

import (
	"io"
	"strings"
	"unicode"
)

// visible writes text of hosts, scripts and models so that a terminal obeys none
// of it: control characters become their signs.
type visible struct{ w io.Writer }

// Write implements [io.Writer].
func (v visible) Write(p []byte) (int, error) {
	if _, err := io.WriteString(v.w, visibly(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func visibly(text string) string {
	const controlPictures = 0x2400 // ␀, and the others in their order
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || !unicode.IsControl(r):
			return r
		case r < ' ':
			return controlPictures + r
		}
		return unicode.ReplacementChar
	}, text)
}
