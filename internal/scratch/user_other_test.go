//go:build !linux

package scratch

import (
	"os"
	"testing"
)

// asUser is a directory of a user who is not root.
func asUser(t *testing.T) string {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("root can enter every directory")
	}
	return t.TempDir()
}
