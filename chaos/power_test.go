package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestPowerCut takes the power away in the middle of load: what the server has
// written and not synced is gone, by a trace of its own system calls. With
// durability power the checker finds nothing; with process, which promises less,
// it has to find what is lost.
func TestPowerCut(t *testing.T) {
	canTrace(t)
	bin := server(t)
	for _, tc := range []struct {
		durability string
		lost       bool
	}{{"power", false}, {"process", true}} {
		t.Run(tc.durability, func(t *testing.T) {
			w := &world{t: t, setup: setups[0], dir: t.TempDir(), bin: bin, model: startModel(t)}
			r := w.place("replica0", "", tc.durability)
			w.replicas = []*replica{r}
			t.Cleanup(func() { w.replicas[0].kill() })
			trace := filepath.Join(w.dir, "trace")
			// -D: the server is our child, and strace watches it.
			r.prefix = []string{"strace", "-D", "-f", "-y", "-xx", "-s", "4194304", "-e", "trace=" + traced, "-o", trace}
			w.start(r)
			w.putSpecs()

			l := &load{w: w, journal: &Journal{}, until: time.Now().Add(startLimit)}
			for n := range clients + 1 {
				l.sessions = append(l.sessions, fmt.Sprint("cut-", n))
			}
			worked := make(chan struct{})
			go func() { defer close(worked); l.run(1) }()
			for answered(l.journal) < 30 {
				time.Sleep(time.Millisecond)
			}
			r.kill()
			l.over.Store(true)
			<-worked
			ops := l.journal.Ops()
			select {
			case <-r.ended: // strace has written all down
			case <-time.After(startLimit):
				t.Fatal("strace does not end")
			}

			f, err := os.Open(trace)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			left, err := readTrace(f, w.dir) // the data directory itself is made by the server
			if err != nil {
				t.Fatal(err)
			}
			after := w.place("after", "", "power")
			if err := left.writeTo(filepath.Join(w.dir, "left")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(w.dir, "left", "replica0"), filepath.Join(w.dir, "after")); err != nil {
				t.Fatal(err)
			}
			w.start(after)
			w.replicas[0] = after

			found := Check(rules, ops, w.observe(ops, func(int) int { return 0 }))
			lost := slices.ContainsFunc(found, func(v Violation) bool { return v.Fault == DecisionLost })
			switch {
			case tc.lost && !lost:
				t.Errorf("the power was cut with durability %s, and the checker misses nothing: %v", tc.durability, found)
			case !tc.lost && len(found) > 0:
				t.Errorf("%d violations, among them %v", len(found), found[:min(5, len(found))])
			}
			t.Logf("%d wishes, %d syncs, %d violations", len(ops), left.synced, len(found))
		})
	}
}

func answered(j *Journal) (n int) {
	for _, op := range j.Ops() {
		if op.acknowledged() {
			n++
		}
	}
	return n
}

// canTrace skips where there is no strace, but not where `make test` has
// installed it; or where the machine lets nobody trace.
func canTrace(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		if os.Getenv("CI") == "" && os.Getuid() != 0 {
			t.Skip("strace is not installed (Debian: apt-get install strace)")
		}
		t.Fatal(err)
	}
	if out, err := exec.Command("strace", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("nobody may trace here: %s", out)
	}
}
