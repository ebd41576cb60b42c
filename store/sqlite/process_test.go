package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"stopgate/gate"
	"stopgate/store/sqlite"
	"stopgate/store/storetest"
)

// The test binary is also the child process that the tests below kill.
const childVariable = "STOPGATE_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch job, dir, _ := strings.Cut(os.Getenv(childVariable), ":"); job {
	case "":
		os.Exit(m.Run())
	case "serve":
		childServes(dir)
	case "share":
		childShares(dir)
	}
}

func child(t *testing.T, job, dir string) (*exec.Cmd, io.Reader) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childVariable+"="+job+":"+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// rejectOnce counts one rejection in the session, as the gate does: read,
// settle, commit.
func rejectOnce(ctx context.Context, s *sqlite.Store, session string) (id string, err error) {
	key := gate.LedgerKey{Agent: "builder", Session: session}
	seen, _, err := s.Counts(ctx, key)
	if err != nil {
		return "", err
	}
	r := storetest.Record(0)
	r.EvaluationID, r.Time, r.Session, r.Event, r.Outcome = uuid.Must(uuid.NewV7()).String(), time.Now(), session, gate.Stop, gate.Block
	return r.EvaluationID, s.Commit(ctx, gate.Commit{Key: key, Seen: seen, Settle: func(now gate.Counts) (gate.Counts, gate.Record) {
		now.StopRejections++
		r.StopRejectionCount = now.StopRejections
		return now, r
	}})
}

const servedSessions = 4

// childServes commits for ever, in each of its sessions, and prints every
// acknowledged id.
func childServes(dir string) {
	s, err := sqlite.Open(context.Background(), sqlite.Options{Dir: dir, Lock: true, Now: time.Now})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for i := range servedSessions {
		go func() {
			_, _ = s.Reserve(context.Background(), gate.Request{Key: gate.IdempotencyKey{Key: fmt.Sprint("left open ", i)}, Body: [32]byte{}}, time.Hour)
			for {
				session := fmt.Sprint("s", i)
				id, err := rejectOnce(context.Background(), s, session)
				if err != nil {
					fmt.Println("error", err)
					continue
				}
				fmt.Println(session, id) // one write, so never half a line of two
			}
		}()
	}
	select {}
}

// TestKilled kills a server at random moments. Whatever it had acknowledged is
// there, and the counts are those of the records.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	acknowledged := map[string][]string{}
	for round := range 10 {
		cmd, out := child(t, "serve", dir)
		lines := bufio.NewScanner(out)
		killAfter := 1 + rand.IntN(300)
		for n := 0; lines.Scan(); n++ {
			session, id, ok := strings.Cut(lines.Text(), " ")
			if !ok || session == "error" {
				t.Errorf("round %d: child says %q", round, lines.Text())
				break
			}
			acknowledged[session] = append(acknowledged[session], id)
			if n == killAfter {
				_ = cmd.Process.Kill() // what it had printed meanwhile is still read
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}

	s := open(t, sqlite.Options{Dir: dir, Lock: true})
	for i := range servedSessions {
		session := fmt.Sprint("s", i)
		stored := map[string]bool{}
		f := gate.RecordFilter{Session: session, Limit: 1000}
		for {
			items, next, err := s.Records(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range items {
				stored[r.EvaluationID] = true
			}
			if f.Cursor = next; next == "" {
				break
			}
		}
		for _, id := range acknowledged[session] {
			if !stored[id] {
				t.Errorf("session %s: acknowledged record %s is lost", session, id)
			}
		}
		counts, _, err := s.Counts(t.Context(), gate.LedgerKey{Agent: "builder", Session: session})
		if err != nil {
			t.Fatal(err)
		}
		if counts.StopRejections != len(stored) {
			t.Errorf("session %s: %d rejections counted, %d recorded", session, counts.StopRejections, len(stored))
		}
		if extra := len(stored) - len(acknowledged[session]); extra > 10 { // one in flight per kill
			t.Errorf("session %s: %d records more than were acknowledged", session, extra)
		}
		// The killed server's reservations do not outlive it.
		if _, err := s.Reserve(t.Context(), gate.Request{Key: gate.IdempotencyKey{Key: fmt.Sprint("left open ", i)}, Body: [32]byte{1}}, time.Minute); err != nil {
			t.Errorf("reservation of a killed server: %v", err)
		}
	}
}

const sharedCommits = 60

// childShares commits in one session that another process uses too.
func childShares(dir string) {
	s, err := sqlite.Open(context.Background(), sqlite.Options{Dir: dir, Now: time.Now})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			for range sharedCommits / 2 {
				if _, err := rejectOnce(context.Background(), s, "shared"); err != nil {
					fmt.Println("error", err)
				}
			}
		})
	}
	running.Wait()
	if err := s.Close(); err != nil {
		fmt.Println("error", err)
	}
}

// TestProcessesShare: three processes that make the database together and
// count in one session lose nothing and count nothing twice.
func TestProcessesShare(t *testing.T) {
	dir := t.TempDir()
	var cmds []*exec.Cmd
	var outs []io.Reader
	for range 3 {
		cmd, out := child(t, "share", dir)
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	for i, cmd := range cmds {
		if said, _ := io.ReadAll(outs[i]); len(said) > 0 {
			t.Errorf("child %d says %s", i, said)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("child %d: %v", i, err)
		}
	}
	s := open(t, sqlite.Options{Dir: dir})
	counts, _, err := s.Counts(t.Context(), gate.LedgerKey{Agent: "builder", Session: "shared"})
	if err != nil {
		t.Fatal(err)
	}
	items, _, err := s.Records(t.Context(), gate.RecordFilter{Session: "shared", Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if counts.StopRejections != 3*sharedCommits || len(items) != 3*sharedCommits {
		t.Errorf("%d counted, %d recorded, want %d", counts.StopRejections, len(items), 3*sharedCommits)
	}
	seen := map[int]bool{}
	for _, i := range items {
		r, err := s.Record(t.Context(), i.EvaluationID)
		if err != nil {
			t.Fatal(err)
		}
		if seen[r.StopRejectionCount] {
			t.Errorf("two records have the count %d", r.StopRejectionCount)
		}
		seen[r.StopRejectionCount] = true
	}
}
