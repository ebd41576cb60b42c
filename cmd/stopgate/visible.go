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
