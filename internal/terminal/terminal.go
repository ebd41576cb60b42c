// Package terminal is about text that a person reads on a terminal.
package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Is reports whether what is written there is shown on a terminal.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	about, err := f.Stat()
	return err == nil && about.Mode()&os.ModeCharDevice != 0
}

// Visible is text of hosts, scripts and models so that a terminal obeys none of
// it: control characters become their signs, and what turns the direction of writing
// becomes the sign of what cannot be shown.
func Visible(text string) string {
	const controlPictures = 0x2400 // ␀, and the others in their order
	return strings.Map(func(r rune) rune {
		switch {
		case !obeyed(r):
			return r
		case r < ' ':
			return controlPictures + r
		}
		return unicode.ReplacementChar
	}, text)
}

// InJSON is JSON so that a terminal obeys none of it: of what it stands for, nothing
// changes. line itself is not changed.
func InJSON(line []byte) []byte {
	if !bytes.ContainsFunc(line, obeyed) {
		return line
	}
	var out []byte
	for _, r := range string(line) {
		if obeyed(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// obeyed reports a character that a terminal does something at, instead of showing
// it: a control character that ends no line, or one that turns the direction of writing,
// so that a text reads as another.
func obeyed(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}
