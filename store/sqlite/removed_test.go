package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A data directory that is removed, or whose database is replaced, under the
// server: what is acknowledged after that is gone with the process. A commit
// must fail (on_gate_error), or readiness must.
func TestDeletedDirectory(t *testing.T) {
	for name, remove := range map[string]func(dir string) error{
		"directory removed": os.RemoveAll,
		"database removed":  func(dir string) error { return os.Remove(filepath.Join(dir, "stopgate.db")) },
		"database moved": func(dir string) error {
			return os.Rename(filepath.Join(dir, "stopgate.db"), filepath.Join(dir, "old.db"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			s, err := Open(t.Context(), Options{Dir: dir, Lock: true, Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Commit(t.Context(), plainCommit(1)); err != nil {
				t.Fatal(err)
			}
			if err := remove(dir); err != nil {
				t.Fatal(err)
			}
			acknowledged := s.Commit(t.Context(), plainCommit(2)) == nil
			ready := s.Ping(t.Context()) == nil
			if acknowledged && ready {
				t.Error("a commit is acknowledged and the store says that it can be written, though nothing of it outlives the process")
			}
		})
	}
}
