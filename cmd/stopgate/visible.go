package main

import (
	"io"

	"stopgate/internal/terminal"
)

// visible writes text of hosts, scripts and models so that a terminal obeys none
// of it.
type visible struct{ w io.Writer }

// Write implements [io.Writer].
func (v visible) Write(p []byte) (int, error) {
	if _, err := io.WriteString(v.w, terminal.Visible(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// visibleJSON does it with lines of JSON, which stay JSON of the same meaning.
type visibleJSON struct{ w io.Writer }

// Write implements [io.Writer].
func (v visibleJSON) Write(p []byte) (int, error) {
	if _, err := v.w.Write(terminal.InJSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
