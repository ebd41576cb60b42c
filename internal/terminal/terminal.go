// Package terminal is about text that a person reads on a terminal.
package terminal

import (
	"io"
	"os"
	"strings"
	"unicode"
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
// it: control characters become their signs.
func Visible(text string) string {
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
