package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Hosts write their files too: what one wrote since we read it is not lost.
func TestHostFileKeepsTheChangesOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	for _, c := range []struct{ name, before, meanwhile string }{
		{"changed", "{}", `{"a": 1}`},
		{"made", "", `{"a": 1}`},
		{"taken away", "{}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			putFile(t, path, c.before)
			file, err := readHostFile(path, "")
			if err != nil {
				t.Fatal(err)
			}
			putFile(t, path, c.meanwhile)
			if err := file.write([]byte("ours")); err == nil {
				t.Error("written over it")
			}
			if c.before != "" {
				if err := file.remove(); err == nil && c.meanwhile != "" {
					t.Error("removed it")
				}
			}
			if got, _ := os.ReadFile(path); string(got) != c.meanwhile {
				t.Errorf("%q, want %q", got, c.meanwhile)
			}
			if left, _ := filepath.Glob(path + "*.tmp"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	putFile(t, path, strings.Repeat(" ", maxHostFile+1))
	if _, err := readHostFile(path, ""); err == nil {
		t.Error("a file of any size is read")
	}
}

// putFile makes a file of that content; empty: none.
func putFile(t *testing.T, path, content string) {
	t.Helper()
	err := os.RemoveAll(path)
	if content != "" {
		err = os.WriteFile(path, []byte(content), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
