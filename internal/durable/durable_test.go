package durable

import (
	"os"
	"path/filepath"
	"testing"
)

// That the entries are synced is what chaos holds the whole server to.
func TestMakeDir(t *testing.T) {
	top := t.TempDir()
	deep := filepath.Join(top, "a", "b", "c")
	for range 2 {
		if err := MakeDir(deep); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(deep); err != nil || !st.IsDir() || st.Mode().Perm() != 0o700 {
			t.Fatalf("%v, %v", st, err)
		}
	}
	file := filepath.Join(top, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MakeDir(filepath.Join(file, "below")); err == nil {
		t.Error("a directory below a file")
	}
}
