package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stopgate/gate"
	"stopgate/store/sqlite"
	"stopgate/store/storetest"
)

func TestLock(t *testing.T) {
	dir := t.TempDir()
	first := open(t, sqlite.Options{Dir: dir, Lock: true})
	_, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Lock: true, Now: time.Now})
	if gate.CodeOf(err) != gate.CodeConflict {
		t.Errorf("second server: %v, want a conflict", err)
	}
	want := fmt.Sprintf("data directory %q is in use by another stopgate serve (pid %d)", dir, os.Getpid())
	if err != nil && err.Error() != want {
		t.Errorf("second server: %q, want %q", err, want)
	}
	if err := first.Ping(t.Context()); err != nil {
		t.Errorf("the refused one disturbed the first: %v", err)
	}
	shared := open(t, sqlite.Options{Dir: dir})
	if err := shared.Ping(t.Context()); err != nil {
		t.Errorf("a store without lock beside a server: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, sqlite.Options{Dir: dir, Lock: true})
}

// TestModes: what others on the machine may see is nothing.
func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data ?%41#[x]")
	s := open(t, sqlite.Options{Dir: dir, Lock: true})
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", d.Name(), info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "stopgate.db")); err != nil {
		t.Error(err)
	}
}

// TestRefusedFiles: what is not ours to open stays as it is.
func TestRefusedFiles(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, file string)
		want string
	}{
		{"not a database", func(t *testing.T, file string) { write(t, file, strings.Repeat("this is no database ", 500)) }, "damaged, or not a database"},
		{"damaged schema", func(t *testing.T, file string) {
			ours(t, file)
			damage(t, file, 100, 4096)
		}, "damaged"},
		{"another program's", func(t *testing.T, file string) { execute(t, file, `CREATE TABLE theirs (x)`) }, "not a stopgate database"},
		{"a newer stopgate's", func(t *testing.T, file string) {
			ours(t, file)
			execute(t, file, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`)
		}, "newer stopgate (schema 9999; this one knows 9)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "stopgate.db")
			c.make(t, file)
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Lock: true, Now: time.Now})
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %q, want it to say %q", err, c.want)
			}
			after, err := os.ReadFile(file)
			if err != nil || string(before) != string(after) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

// TestDamagedLater: a page that turns out to be damaged is an error that says
// so, for a read and for a write, and never a verdict of absence.
func TestDamagedLater(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "stopgate.db")
	s := open(t, sqlite.Options{Dir: dir})
	for n := range 200 {
		if err := s.Commit(t.Context(), gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, storetest.Full(n) }}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	damage(t, file, 30*4096, info.Size()) // behind the schema, of one page each
	s = open(t, sqlite.Options{Dir: dir})
	_, _, err = s.Records(t.Context(), gate.RecordFilter{Limit: 1000})
	if err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("list of a damaged store: %v", err)
	}
	err = s.Commit(t.Context(), gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, storetest.Full(300) }})
	if err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("commit to a damaged store: %v", err)
	}
}

func TestDirectoryCannotBeUsed(t *testing.T) {
	t.Run("a file is in the way", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		write(t, file, "")
		if _, err := sqlite.Open(t.Context(), sqlite.Options{Dir: file, Now: time.Now}); err == nil || !strings.Contains(err.Error(), "data directory") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("read-only", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("root may write anywhere")
		}
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Now: time.Now}); err == nil || !strings.Contains(err.Error(), "cannot be written") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("a lock file that is a link", func(t *testing.T) {
		dir := t.TempDir()
		target := filepath.Join(t.TempDir(), "target")
		write(t, target, "keep")
		if err := os.Symlink(target, filepath.Join(dir, "serve.lock")); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Lock: true, Now: time.Now}); err == nil {
			t.Error("it was followed")
		}
		if b, _ := os.ReadFile(target); string(b) != "keep" {
			t.Errorf("the target holds %q", b)
		}
	})
	t.Run("unknown durability", func(t *testing.T) {
		_, err := sqlite.Open(t.Context(), sqlite.Options{Dir: t.TempDir(), Durability: "fast", Now: time.Now})
		if gate.CodeOf(err) != gate.CodeValidation {
			t.Errorf("error is %v", err)
		}
	})
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ours makes a database of this version.
func ours(t *testing.T, file string) {
	t.Helper()
	s, err := sqlite.Open(context.Background(), sqlite.Options{Dir: filepath.Dir(file), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func execute(t *testing.T, file, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

func damage(t *testing.T, file string, from, to int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(strings.Repeat("\xa5", int(to-from))), from); err != nil {
		t.Fatal(err)
	}
}

// A database of the first version is brought up to date with what it holds.
func TestOlderDatabasesAreMigrated(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "stopgate.db")
	ours(t, file)
	execute(t, file, `ALTER TABLE counts DROP COLUMN same; DROP TABLE session_agents; DROP TABLE keys; DROP TABLE audit; DROP TABLE overrides; DROP TABLE erasures;
		DROP TRIGGER evaluations_outbox; DROP TABLE outbox; DROP TABLE sinks; DELETE FROM goose_db_version WHERE version_id > 1;
		INSERT INTO counts VALUES ('s', 'a', '', 2, 1, 1, 'p', 'run the tests', '', '');
		INSERT INTO evaluations (seq, id, agent, session, event, decision, head)
			VALUES (1, 'e', 'a', 's', 'Stop', 'block', '{"protocol":"codex","reason":"run the tests"}')`)
	s, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := gate.Counts{StopRejections: 2, PromptRejections: 1, Started: true, LastPromptID: "p",
		LastReason: gate.MarkHead("run the tests")}
	if got, _, err := s.Counts(t.Context(), gate.LedgerKey{Agent: "a", Session: "s"}); err != nil || got != want {
		t.Errorf("counts are %+v (%v), want %+v", got, err, want)
	}
	record, err := s.Record(t.Context(), "e")
	if err != nil {
		t.Fatal(err)
	}
	old := gate.Record{Decision: gate.Decision{EvaluationID: "e", Outcome: gate.Block, Reason: "run the tests"},
		Time: time.Unix(0, 1).UTC(), Agent: "a", Session: "s", Event: gate.Stop, Protocol: "codex"}
	if diff := cmp.Diff(old, record, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if agents, err := s.SessionAgents(t.Context(), "s"); err != nil || !slices.Equal(agents, []string{"a"}) {
		t.Errorf("the session belongs to %q (%v), want the agent that has counts in it", agents, err)
	}
}
