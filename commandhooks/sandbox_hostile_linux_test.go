package commandhooks

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stopgate/gate"
)

// TestSandboxIsOutsideOurProcessGroup: a Ctrl-C at the terminal goes to
// the whole foreground process group. "Ctrl-C finishes running evaluations":
// bwrap must not be in it, or every hook that runs ends as sandbox_unavailable
// and fails open.
func TestSandboxIsOutsideOurProcessGroup(t *testing.T) {
	r := newRunner(t, Options{})
	answered := make(chan gate.Verdict, 1)
	go func() { answered <- ask(t, r, "sleep 2; echo judged >&2; exit 2") }()
	var inGroup []string
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, pid := range childPIDs(t) {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			if group, err := syscall.Getpgid(pid); err == nil && group == syscall.Getpgrp() && strings.TrimSpace(string(name)) == "bwrap" {
				inGroup = append(inGroup, strconv.Itoa(pid))
			}
		}
		if len(inGroup) > 0 {
			break
		}
	}
	if len(inGroup) > 0 {
		t.Errorf("bwrap %s is in the gate's own process group", inGroup[0])
		// What the terminal would do to it:
		pid, _ := strconv.Atoi(inGroup[0])
		syscall.Kill(pid, syscall.SIGINT)
	}
	if v := <-answered; told(v) != "block judged" {
		t.Errorf("the hook's verdict was lost: %s", show(v))
	}
}

func childPIDs(t *testing.T) []int {
	t.Helper()
	var pids []int
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, file := range tasks {
		list, _ := os.ReadFile(file)
		for _, f := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// TestSandboxSharedMemoryIsLimited: RLIMIT_DATA counts private memory alone, and
// none of a shared mapping of nothing or of /dev/zero.
func TestSandboxSharedMemoryIsLimited(t *testing.T) {
	r := newRunner(t, Options{Limits: Limits{Memory: 64 << 20}})
	needsPython(t, r)
	for _, how := range []string{"mmap.mmap(-1, 300 << 20)", "mmap.mmap(os.open('/dev/zero', os.O_RDWR), 300 << 20)"} {
		script := python + `
import mmap, os, sys
try: m = ` + how + `
except OSError: sys.exit(0)
for i in range(0, len(m), 4096): m[i] = 1
print('holds', len(m) >> 20, 'MiB with a limit of 64', file=sys.stderr)
sys.exit(2)`
		v := ask(t, r, script)
		if told(v) != "no_verdict signalled" || !strings.Contains(v.Failure.Message, "memory limit of 64 MiB") || v.Evidence.ExitCode != nil {
			t.Errorf("%s: %s", how, show(v))
		}
	}
}

// TestSandboxFilesAreMemory: a file without content counts for no size limit
// and for no process, and takes a KiB of the kernel's memory.
func TestSandboxFilesAreMemory(t *testing.T) {
	r := newRunner(t, Options{Limits: Limits{Memory: 64 << 20}})
	needsPython(t, r)
	for _, dir := range []string{"/tmp", "/dev/shm"} {
		v := ask(t, r, python+`
import os, sys
for i in range(400000): os.close(os.open('`+dir+`/%d' % i, os.O_CREAT))
print('made', i + 1, 'files', file=sys.stderr)
sys.exit(2)`)
		if told(v) != "no_verdict signalled" || !strings.Contains(v.Failure.Message, "memory limit of 64 MiB") {
			t.Errorf("%s: %s", dir, show(v))
		}
	}
}

// TestMemoryOfAllProcessesIsLimited: none of these processes passes the limit,
// and none lives in its parent's care.
func TestMemoryOfAllProcessesIsLimited(t *testing.T) {
	everyMode(t, Options{Limits: Limits{Memory: 64 << 20}}, func(t *testing.T, r *Runner) {
		needsPython(t, r)
		hold := func(processes int) string {
			return python + fmt.Sprintf(`
import os, sys, time
for _ in range(%d):
    if os.fork() == 0:
        if os.fork() == 0:
            held = bytearray(24 << 20)
            time.sleep(60)
        os._exit(0)
    os.wait()
time.sleep(1.5)
sys.exit(2)`, processes)
		}
		v := ask(t, r, hold(6))
		if told(v) != "no_verdict signalled" || !strings.Contains(v.Failure.Message, "memory limit of 64 MiB") {
			t.Errorf("6 processes of 24 MiB: %s", show(v))
		}
		if v := ask(t, r, hold(1)); told(v) != "block" {
			t.Errorf("one of them: %s", show(v))
		}
	})
}

// TestSandboxNetworkIsNoWayToLocalSockets: sandbox.network grants the network.
// Abstract unix sockets (an X server, a session bus, containerd-shim) hang on
// the same namespace and are no network.
func TestSandboxNetworkIsNoWayToLocalSockets(t *testing.T) {
	name := fmt.Sprintf("stopgate-test-%d", os.Getpid())
	l, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go drop(l)
	r := newRunner(t, Options{Network: true})
	needsPython(t, r)
	v := ask(t, r, python+fmt.Sprintf(`
import socket, sys
try: socket.socket(socket.AF_UNIX).connect("\0%s")
except OSError: sys.exit(0)
sys.exit(2)`, name))
	if v.Outcome == gate.Block {
		t.Error("a hook with network can talk to the host's abstract sockets")
	}
	if v := ask(t, r, python+"import socket; socket.socketpair(); socket.getaddrinfo('localhost', 80)"); told(v) != "allow" {
		t.Errorf("pairs and names: %s", show(v))
	}
}

// pathTranscript is a conversation that was opened at a path.
type pathTranscript struct {
	gate.Transcript
	path string
	info os.FileInfo // of what was opened; nil: not known
}

func (p pathTranscript) Is(path string, about os.FileInfo) bool {
	return path == p.path && (p.info == nil || os.SameFile(p.info, about))
}

func (p pathTranscript) Path() string    { return p.path }
func (p pathTranscript) RawPath() string { return p.path }

// TestSandboxTranscriptDirectorySwapped: package transcripts has opened the file
// through os.Root, then tells commandhooks a path, which is opened a second time.
// Between the two the agent, who owns the directory, makes it a link to
// somewhere else: O_NOFOLLOW looks at the last element only. A gate that is root
// then even copies, with root's rights, a file that nobody else may read.
func TestSandboxTranscriptDirectorySwapped(t *testing.T) {
	base := openDir(t)
	project := mkdir(t, base, "projects", "p1")
	secrets := mkdir(t, base, "secrets")
	for dir, text := range map[string]string{project: "the conversation", secrets: "THE SECRET"} {
		if err := os.WriteFile(filepath.Join(dir, "t.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(secrets, 0o700); err != nil {
		t.Fatal(err)
	}
	opened := filepath.Join(project, "t.txt") // as Attach opened it, and names it
	info, err := os.Stat(opened)
	if err != nil {
		t.Fatal(err)
	}
	// … and now the agent acts:
	if err := os.Rename(project, project+".old"); err != nil {
		t.Fatal(err)
	}
	symlink(t, secrets, project)

	r := newRunner(t, Options{})
	v := ask(t, r, "grep -q SECRET '"+opened+"' && { cat '"+opened+"' >&2; exit 2; }; exit 0", func(in *gate.Input) {
		in.Transcript = pathTranscript{path: opened, info: info}
	})
	if told(v) != "no_verdict transcript_unreadable" {
		t.Errorf("the file is not the transcript: %s", show(v))
	}
}

// TestSandboxTranscriptSwappedAtTheMount: the same in the moment between our
// look at the file and bwrap's mount of it.
func TestSandboxTranscriptSwappedAtTheMount(t *testing.T) {
	everyRoot(t, sandboxTranscriptSwappedAtTheMount)
}

func sandboxTranscriptSwappedAtTheMount(t *testing.T) {
	base := openDir(t)
	project := mkdir(t, base, "project")
	var link string
	secrets := mkdir(t, base, "secrets")
	for dir, text := range map[string]string{project: "the conversation", secrets: "THE SECRET"} {
		file := filepath.Join(dir, "t.txt")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link = symlink(t, secrets, base, "link")
	opened := filepath.Join(project, "t.txt")
	info, err := os.Stat(opened)
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, Options{})
	defer swap(t, project, link)()
	judged := 0
	for i := range 60 {
		v := ask(t, r, "cat '"+opened+"' >&2; exit 2", func(in *gate.Input) {
			in.Transcript = pathTranscript{path: opened, info: info}
		})
		switch told(v) {
		case "block the conversation":
			judged++
		case "no_verdict transcript_unreadable", "no_verdict sandbox_unavailable": // or bwrap itself stumbles
		default:
			t.Fatalf("attempt %d: %s", i+1, show(v))
		}
	}
	t.Logf("%d of 60 were judged", judged)
}

// everyRoot runs a test as it is, and as a root that has no more capabilities
// than a container gives him: neither CAP_SYS_PTRACE nor CAP_SYS_RESOURCE.
func everyRoot(t *testing.T, test func(t *testing.T)) {
	t.Run("as we are", test)
	t.Run("in a container", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root")
		}
		runtime.LockOSThread() // for good: the thread ends with the test
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var have [2]unix.CapUserData
		if err := unix.Capget(&header, &have[0]); err != nil {
			t.Fatal(err)
		}
		for _, capability := range []int{unix.CAP_SYS_PTRACE, unix.CAP_SYS_RESOURCE, unix.CAP_SYS_ADMIN} {
			have[0].Effective &^= 1 << capability
			have[0].Permitted &^= 1 << capability
		}
		have[1] = unix.CapUserData{}
		if err := unix.Capset(&header, &have[0]); err != nil {
			t.Fatal(err)
		}
		test(t)
	})
}

// TestSandboxThatCannotBeSeen: no hook is run whose mounts cannot be examined,
// and the reason says what helps.
func TestSandboxThatCannotBeSeen(t *testing.T) {
	err := as(sandboxUser(), func() error { return (&boxed{init: 1}).examine(nil) })
	if err == nil {
		t.Skip("process 1 is ours")
	}
	if !strings.Contains(err.Error(), "CAP_SYS_PTRACE") {
		t.Errorf("got %v", err)
	}
}

// swap exchanges two paths over and over until its answer is called.
func swap(t *testing.T, one, other string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for ctx.Err() == nil {
			_ = unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
			time.Sleep(time.Millisecond)
		}
	})
	return func() { cancel(); swapping.Wait() }
}

// TestSandboxWorkspaceSwapped: the same with the agent's working directory,
// which is resolved and checked as a path and mounted by path later. The agent
// exchanges it with a link to a directory outside the roots, over and over.
func TestSandboxWorkspaceSwapped(t *testing.T) { everyRoot(t, sandboxWorkspaceSwapped) }

func sandboxWorkspaceSwapped(t *testing.T) {
	base := openDir(t)
	root, outside := mkdir(t, base, "root"), mkdir(t, base, "outside")
	work := mkdir(t, root, "work")
	link := symlink(t, outside, root, "link")
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("THE SECRET"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, Options{Workspace: Workspace{Access: ReadOnly, Roots: []string{root}}})
	defer swap(t, work, link)()
	for i := range 100 {
		if v := ask(t, r, "cat '"+work+"/secret' >&2 && exit 2; exit 0", in(work)); v.Outcome == gate.Block {
			t.Fatalf("attempt %d: a hook saw a directory outside the roots: %s", i+1, v.Reason)
		}
	}
}

// TestSandboxTranscriptTooLargeToCopy: what the sandbox's user may not read is
// copied, up to a limit. Beyond it the hook still runs, and the verdict says
// what the hook did not see.
func TestSandboxTranscriptTooLargeToCopy(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root's transcripts are copied")
	}
	r := newRunner(t, Options{Limits: Limits{FileSize: 1 << 20}})
	for _, tt := range []struct {
		name string
		size int
		want string
	}{
		{"as large as may be", 1 << 20, "block 1048576 []"},
		{"larger", 1<<20 + 1, "block [transcript_unreadable]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(openDir(t), "view.txt")
			if err := os.WriteFile(path, make([]byte, tt.size), 0o600); err != nil {
				t.Fatal(err)
			}
			v := ask(t, r, "[ -e '"+path+"' ] && wc -c < '"+path+"' >&2; exit 2", withTranscript(path, path))
			if got := fmt.Sprint(told(v), " ", v.Notes); got != tt.want {
				t.Errorf("got %s, want %s\n%s", got, tt.want, show(v))
			}
		})
	}
}

// TestSandboxHiddenIsHiddenEverywhere: hidden is hidden, be it in a workspace,
// below /usr, or below the prefix of an interpreter, as ~/.local, which is where
// the default data directory lies.
func TestSandboxHiddenIsHiddenEverywhere(t *testing.T) {
	secretIn := func(t *testing.T, dir string) (hidden string) {
		hidden = mkdir(t, dir, "state", "stopgate")
		if err := os.WriteFile(filepath.Join(hidden, "stopgate.db"), []byte("THE RECORDS"), 0o644); err != nil {
			t.Fatal(err)
		}
		return hidden
	}
	look := func(t *testing.T, r *Runner, hidden string) {
		if v := ask(t, r, "cat '"+hidden+"/stopgate.db' >&2 && exit 2; exit 0"); v.Outcome == gate.Block {
			t.Errorf("a hook read the data directory: %s", v.Reason)
		}
	}
	t.Run("below an interpreter's prefix", func(t *testing.T) {
		local, err := os.MkdirTemp("/var/tmp", "stopgate-test-") // /tmp is another one inside
		if err != nil {
			t.Skip(err)
		}
		defer os.RemoveAll(local)
		if err := os.Chmod(local, 0o755); err != nil {
			t.Fatal(err)
		}
		hidden := secretIn(t, local)
		r := newRunner(t, Options{Workspace: Workspace{Hidden: []string{hidden}}})
		found := r.tools
		found.bash.prefixes = []string{local} // as of a python3 with --prefix=$HOME/.local
		useTools(t, r, found)
		look(t, r, hidden)
	})
	t.Run("below /usr", func(t *testing.T) {
		dir, err := os.MkdirTemp("/usr/local", "stopgate-test-")
		if err != nil {
			t.Skip(err)
		}
		defer os.RemoveAll(dir)
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		hidden := secretIn(t, dir)
		look(t, newRunner(t, Options{Workspace: Workspace{Hidden: []string{hidden}}}), hidden)
	})
}

// TestSandboxTempDirIsInTheSystem: the self-test's canary lies in TMPDIR, which
// may be a place that every sandbox shows.
func TestSandboxTempDirIsInTheSystem(t *testing.T) {
	newRunner(t, Options{})
	dir, err := os.MkdirTemp("/usr/local", "stopgate-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	r, err := New(t.Context(), complete(Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Status(); !s.Working {
		t.Errorf("a sandbox that works is not used: %s", s.Reason)
	}
}
