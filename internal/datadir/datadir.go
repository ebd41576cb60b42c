// Package datadir says where stopgate keeps its data where nobody says it.
package datadir

import "path/filepath"

// Default is the data directory where nobody names one: in the user's state
// directory; empty if there is none. A relative XDG_STATE_HOME is to be ignored,
// as its specification has it.
func Default(getenv func(string) string) string {
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "stopgate")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "stopgate")
	}
	return ""
}
