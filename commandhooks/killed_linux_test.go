package commandhooks

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// killedGate names, to a gate that is to be killed, the directory of its hook.
const killedGate = "STOPGATE_TEST_KILLED_GATE"

// TestKilledGateLeavesNoHook: a gate that is killed while it starts a hook, or
// just after, takes the hook with it, and none has run without limits. What may
// be left is a bwrap that sleeps in its set-up (see boxed.confine).
func TestKilledGateLeavesNoHook(t *testing.T) {
	newRunner(t, Options{})
	ours, err := filters(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 16 {
		dir := openDir(t)
		giveToSandbox(t, dir)
		killGate(t, dir, time.Duration(i)*750*time.Microsecond)
		for _, pid := range soonLeft(t, dir) {
			if n, err := filters(pid); err == nil && n > ours {
				t.Errorf("round %d: process %d outlives its gate", i, pid)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		// It may have been killed before it wrote anything.
		if files, _ := os.ReadFile(filepath.Join(dir, "files")); len(files) > 0 && string(files) != "99\n" {
			t.Errorf("round %d: the hook ran with %q open files", i, files)
		}
		if t.Failed() {
			break
		}
	}
}

// killGate starts a gate that runs a hook, and kills it so long after it began
// with that.
func killGate(t *testing.T, dir string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestGateToBeKilled$")
	cmd.Env = append(os.Environ(), killedGate+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	time.Sleep(after)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	if err != nil || line != "begins\n" {
		t.Fatalf("the gate said %q, %v", line, err)
	}
}

func TestGateToBeKilled(t *testing.T) {
	dir := os.Getenv(killedGate)
	if dir == "" {
		t.Skip("is a part of TestKilledGateLeavesNoHook")
	}
	r := newRunner(t, Options{Limits: Limits{OpenFiles: 99}, Workspace: Workspace{Access: ReadWrite, Roots: []string{dir}}})
	fmt.Println("begins")
	ask(t, r, "ulimit -n > files; while :; do read -t 0.01 < <(:); done; : "+dir, inline, in(dir))
}

// processesNaming are the processes with a text in their command lines.
func processesNaming(t *testing.T, text string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		line, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && bytes.Contains(line, []byte(text)) {
			pids = append(pids, pid)
		}
	}
	return pids
}
