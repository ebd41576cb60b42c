package commandhooks

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// The scripts of these tests exit with 2 and say what they could do; in the
// sandbox they must be an allow. A script that fails by itself is neither.

// TestSandboxHoldsWhatProcessesReach: each of these works without the sandbox,
// which is checked, and not within it.
func TestSandboxHoldsWhatProcessesReach(t *testing.T) {
	left, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	go drop(tcp)
	abstract, err := net.Listen("unix", fmt.Sprintf("@stopgate-test-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	go drop(abstract)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	bare, boxed := newRunner(t, Options{Mode: Process}), newRunner(t, Options{})
	needsPython(t, boxed)

	for _, tt := range []struct{ name, script string }{
		{"read the gate's files", "cat '" + secret + "' && exit 2; exit 0"},
		{"write the gate's files", "{ echo x > '" + secret + "'; } && exit 2; exit 0"},
		{"connect to the host's loopback", fmt.Sprintf("{ : > /dev/tcp/127.0.0.1/%d; } && exit 2; exit 0", tcp.Addr().(*net.TCPAddr).Port)},
		{"connect to an abstract socket", python + fmt.Sprintf(`
import socket, sys
try: socket.socket(socket.AF_UNIX).connect("\0stopgate-test-%d")
except OSError: sys.exit(0)
sys.exit(2)`, os.Getpid())},
		{"see the gate's process", fmt.Sprintf("[ -e /proc/%d/status ] && grep -q '%s' /proc/%[1]d/cmdline && exit 2; exit 0", os.Getpid(), filepath.Base(os.Args[0]))},
		{"signal the gate's process", fmt.Sprintf("kill -0 %d && grep -q '%s' /proc/%[1]d/cmdline && exit 2; exit 0", os.Getpid(), filepath.Base(os.Args[0]))},
		{"list the host's homes", "[ -e /home ] && exit 2; exit 0"},
		{"list the accounts", "grep -q '^daemon:' /etc/passwd && exit 2; exit 0"},
		{"see the host's devices", "[ -e /dev/ptmx ] && [ -e /sys/class ] && exit 2; exit 0"},
		{"learn the host's name", "[ \"$(cat /proc/sys/kernel/hostname)\" = '" + host + "' ] && exit 2; exit 0"},
		{"use more network than loopback", "[ $(grep -c : /proc/net/dev) -gt 1 ] && exit 2; grep -q '00000000' /proc/net/route && exit 2; exit 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if v := ask(t, bare, tt.script); v.Outcome != gate.Block {
				t.Skipf("does not work here without a sandbox either: %s", show(v))
			}
			if v := ask(t, boxed, tt.script); told(v) != "allow" {
				t.Errorf("got %s", show(v))
			}
		})
	}
}

func drop(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Close()
	}
}

func TestSandboxIsReadOnly(t *testing.T) {
	r := newRunner(t, Options{})
	for _, dir := range []string{"/", "/usr", "/usr/bin", "/etc", "/dev", "/hook", "/proc", "/proc/sys/kernel", "/lib"} {
		t.Run(dir, func(t *testing.T) {
			script := fmt.Sprintf(`cd %s || exit 9
{ : > stopgate-test; } 2>/dev/null && echo create >&2 && exit 2
mkdir stopgate-dir 2>/dev/null && echo mkdir >&2 && exit 2
exit 0`, dir)
			if v := ask(t, r, script); told(v) != "allow" {
				t.Errorf("got %s", show(v))
			}
		})
	}
	for _, file := range []string{"/etc/passwd", "/hook/script.sh", "/usr/bin/env", "/etc/ld.so.cache"} {
		t.Run(file, func(t *testing.T) {
			script := fmt.Sprintf(`[ -e %s ] || exit 0
{ echo x >> %[1]s; } 2>/dev/null && echo write >&2 && exit 2
chmod 777 %[1]s 2>/dev/null && echo chmod >&2 && exit 2
rm -f %[1]s 2>/dev/null && echo rm >&2 && exit 2
mv %[1]s /tmp/x 2>/dev/null && echo mv >&2 && exit 2
exit 0`, file)
			if v := ask(t, r, script); told(v) != "allow" {
				t.Errorf("got %s", show(v))
			}
		})
	}
}

// TestSandboxForbidsSystemCalls: each call must end with the filter's own
// errno, since many would fail for want of a capability anyway.
func TestSandboxForbidsSystemCalls(t *testing.T) {
	r := newRunner(t, Options{})
	needsPython(t, r)
	const prelude = python + `
import ctypes, errno, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
if platform.machine() != 'x86_64': sys.exit(0)
def expect(want, *args):
    ctypes.set_errno(0)
    result = libc.syscall(*[ctypes.c_long(a) for a in args])
    got = ctypes.get_errno()
    if result != -1 or got != want:
        print(args, 'gave', result, errno.errorcode.get(got), file=sys.stderr)
        sys.exit(2)
EPERM, ENOSYS = errno.EPERM, errno.ENOSYS
`
	for _, tt := range []struct{ name, calls string }{
		{"unshare -U", "expect(EPERM, 272, 0x10000000)"},
		{"unshare nothing", "expect(EPERM, 272, 0)"},
		{"clone with a new user namespace", "expect(EPERM, 56, 0x10000000 | 17, 0, 0, 0, 0)"},
		{"clone with a new mount namespace", "expect(EPERM, 56, 0x00020000 | 17, 0, 0, 0, 0)"},
		{"clone3", "expect(ENOSYS, 435, 0, 0)"},
		{"setns", "expect(EPERM, 308, 0, 0)"},
		{"mount", "expect(EPERM, 165, 0, 0, 0, 0, 0)"},
		{"umount", "expect(EPERM, 166, 0, 0)"},
		{"pivot_root, chroot", "expect(EPERM, 155, 0, 0); expect(EPERM, 161, 0)"},
		{"new mount calls", "[expect(EPERM, n, 0, 0, 0, 0, 0) for n in (428, 429, 430, 431, 432, 433, 442)]"},
		{"ptrace traceme", "expect(EPERM, 101, 0, 0, 0, 0)"},
		{"process_vm_readv", "expect(EPERM, 310, 1, 0, 0, 0, 0, 0); expect(EPERM, 311, 1, 0, 0, 0, 0, 0)"},
		{"bpf", "expect(EPERM, 321, 0, 0, 0)"},
		{"perf_event_open", "expect(EPERM, 298, 0, 0, 0, 0, 0)"},
		{"keys", "expect(EPERM, 248, 0, 0, 0, 0, 0); expect(EPERM, 249, 0, 0, 0, 0); expect(EPERM, 250, 0, 0, 0, 0, 0)"},
		{"kernel modules", "expect(EPERM, 175, 0, 0, 0); expect(EPERM, 313, 0, 0, 0); expect(EPERM, 176, 0, 0)"},
		{"kexec", "expect(EPERM, 246, 0, 0, 0, 0)"},
		{"io_uring", "[expect(ENOSYS, n, 0, 0, 0, 0) for n in (425, 426, 427)]"},
		{"userfaultfd", "expect(ENOSYS, 323, 0)"},
		{"memory that no limit counts", "expect(ENOSYS, 319, 0, 0); expect(ENOSYS, 29, 0, 4096, 0o1600)"},
		{"open_by_handle_at", "expect(EPERM, 304, 0, 0, 0)"},
		{"personality", "expect(EPERM, 135, 0x0040000)"},
		{"TIOCSTI", "expect(EPERM, 16, 0, 0x5412, 0)"},
		{"TIOCSTI with high bits", "expect(EPERM, 16, 0, 0x100005412, 0)"},
		{"TIOCLINUX", "expect(EPERM, 16, 0, 0x541c, 0)"},
		{"socket of netlink, vsock, alg, packet, bluetooth", "[expect(EPERM, 41, family, 3, 0) for family in (16, 40, 38, 17, 31)]"},
		{"socket of unix", "[expect(EPERM, 41, 1, kind, 0) for kind in (1, 2, 3, 5, 1 | 0o2000000)]"},
		{"pair of datagram sockets", "[expect(EPERM, 53, 1, kind, 0, 0) for kind in (2, 3, 2 | 0o2000000, 0x100000002)]"},
		{"socket with high bits", "expect(EPERM, 41, 0x100000000 | 38, 5, 0)"},
		{"x32 calls", "expect(ENOSYS, 0x40000000 | 39)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if v := ask(t, r, prelude+tt.calls); told(v) != "allow" {
				t.Errorf("got %s", show(v))
			}
		})
	}
	for _, tt := range []struct{ name, calls string }{
		{"threads", "import threading; t = threading.Thread(target=print, kwargs={'file': sys.stderr}); t.start(); t.join()"},
		{"processes", "import subprocess; subprocess.run(['true'], check=True)"},
		{"sockets", "import socket; socket.socketpair(); socket.socketpair(type=socket.SOCK_SEQPACKET); socket.socket(); socket.socket(socket.AF_INET6)"},
		{"loopback of its own", "import socket; l = socket.create_server(('127.0.0.1', 0)); socket.create_connection(l.getsockname())"},
		{"localhost has an address", "import socket; socket.getaddrinfo('localhost', 80)"},
		{"who am I", "import pwd; assert pwd.getpwuid(os.getuid()).pw_name == 'hook'"},
		{"descriptors by path", "json = __import__('json'); json.load(open('/dev/stdin')); print('{}', file=open('/dev/stdout', 'w')); open('/proc/self/fd/2', 'w').write('x')"},
		{"asyncio", "import asyncio; asyncio.run(asyncio.sleep(0))"},
		{"multiprocessing", "import multiprocessing as m; q = m.Queue(); p = m.Process(target=q.put, args=(1,)); p.start(); assert q.get() == 1; p.join()"},
	} {
		t.Run("works: "+tt.name, func(t *testing.T) {
			if v := ask(t, r, prelude+tt.calls); told(v) != "allow" {
				t.Errorf("got %s", show(v))
			}
		})
	}
	t.Run("calls of 32 bits end the process", func(t *testing.T) {
		// mov eax, 20 (getpid); int 0x80; ret
		v := ask(t, r, prelude+`
import mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b'\xb8\x14\x00\x00\x00\xcd\x80\xc3')
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
sys.exit(2)`)
		if v.Outcome != gate.NoVerdict || v.Failure.Code != gate.Signalled {
			t.Errorf("got %s", show(v))
		}
	})
}

func TestSandboxHasNoPrivileges(t *testing.T) {
	r := newRunner(t, Options{})
	for _, tt := range []struct{ name, script, want string }{
		{"no capability in any set", `grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb):' /proc/self/status | grep -v '0000000000000000$' >&2 && exit 2; exit 0`, "allow"},
		{"no new privileges, seccomp", `grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\t' | tr '\n' ' ' >&2; exit 2`, "block NoNewPrivs:1 Seccomp:2"},
		{"not root inside", `[ $(id -u) = 0 ] && exit 2; exit 0`, "allow"},
		{"one user only", `[ $(wc -l < /proc/self/uid_map) = 1 ] && [ $(awk '{print $3}' /proc/self/uid_map) = 1 ] || exit 2; exit 0`, "allow"},
		{"no terminal", `{ : < /dev/tty; } 2>/dev/null && exit 2; exit 0`, "allow"},
		{"no descriptors but the three", `for n in {3..254}; do [ -e /proc/$$/fd/$n ] && readlink /proc/$$/fd/$n >&2 && exit 2; done; exit 0`, "allow"},
		{"mknod", `mknod /tmp/null c 1 3 2>/dev/null && exit 2; exit 0`, "allow"},
		{"unshare command", `unshare -U true 2>/dev/null && exit 2; exit 0`, "allow"},
		{"bubblewrap in bubblewrap", `bwrap --ro-bind / / true 2>/dev/null && exit 2; exit 0`, "allow"},
		{"no setting of its own process", `for f in oom_score_adj comm timerslack_ns; do { echo 1 > /proc/self/$f; } 2>/dev/null && echo $f >&2 && exit 2; done; exit 0`, "allow"},
		{"its own descriptors still open by path", `cat /dev/stdin | grep -q final_output && echo {} > /dev/stdout && echo said > /proc/self/fd/2; exit 2`, "block said"},
		{"first victim of the OOM killer", `cat /proc/self/oom_score_adj >&2; exit 2`, "block 1000"},
		{"processes of its own only", `set -- /proc/[0-9]*; echo $# >&2; exit 2`, "block 2"}, // bwrap, bash
	} {
		t.Run(tt.name, func(t *testing.T) {
			if v := ask(t, r, tt.script); told(v) != tt.want {
				t.Errorf("got %s\nwant %s", show(v), tt.want)
			}
		})
	}
}

func TestSandboxHasNamespacesOfItsOwn(t *testing.T) {
	r := newRunner(t, Options{})
	for _, kind := range []string{"user", "ipc", "pid", "net", "uts", "mnt", "cgroup"} {
		t.Run(kind, func(t *testing.T) {
			link := "/proc/self/ns/" + kind
			ours, err := os.Readlink(link)
			if err != nil {
				t.Skip(err)
			}
			v := ask(t, r, "readlink "+link+" >&2; exit 2")
			if v.Outcome != gate.Block || !strings.HasPrefix(v.Reason, kind+":[") || v.Reason == ours {
				t.Errorf("got %s, ours is %s", show(v), ours)
			}
		})
	}
}

// TestSandboxIsNeverRoot: the kernel limits the processes of any user but
// root.
func TestSandboxIsNeverRoot(t *testing.T) {
	r := newRunner(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan gate.Verdict)
	go func() { ended <- r.Evaluate(ctx, input(`sleep 600`)) }()
	seen := false
	for deadline := time.Now().Add(20 * time.Second); !seen && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		tasks, _ := filepath.Glob("/proc/self/task/*/children")
		for _, task := range tasks {
			pids, _ := os.ReadFile(task)
			for _, pid := range strings.Fields(string(pids)) {
				status, _ := os.ReadFile("/proc/" + pid + "/status")
				if name, rest, ok := strings.Cut(string(status), "\n"); ok && name == "Name:\tbwrap" {
					seen = true
					if strings.Contains(rest, "Uid:\t0") {
						t.Error("a sandbox runs as root")
					}
				}
			}
		}
	}
	cancel()
	if v := <-ended; !seen {
		t.Errorf("no sandbox was seen: %s", show(v))
	}
}

// TestSandboxInheritsNothing: what whoever started the gate left open is not
// in a hook's hands.
func TestSandboxInheritsNothing(t *testing.T) {
	left, err := os.Open(filepath.Dir(os.Args[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	clearCloseOnExec(t, int(left.Fd()))
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		script := fmt.Sprintf(`[ -e /proc/$$/fd/%d ] && readlink /proc/$$/fd/%[1]d >&2 && exit 2; exit 0`, left.Fd())
		if v := ask(t, r, script); told(v) != "allow" {
			t.Errorf("got %s", show(v))
		}
	})
}

func TestSandboxLimits(t *testing.T) {
	r := newRunner(t, Options{Limits: Limits{Memory: 128 << 20, Processes: 20, FileSize: 1 << 20, OpenFiles: 32, CPU: 1, TempSize: 2 << 20}})
	needsPython(t, r)
	for _, tt := range []struct{ name, script, want string }{
		{"memory", python + "import sys\ntry: x = bytearray(256 << 20)\nexcept MemoryError: sys.exit(0)\nsys.exit(2)", "allow"},
		{"memory below it", python + "x = bytearray(32 << 20)", "allow"},
		{"processes", python + `
import os, signal, sys, time
n = 0
try:
    while n < 40:
        if os.fork() == 0:
            time.sleep(60)
        n += 1
except BlockingIOError: pass
print(10 < n < 20, file=sys.stderr)
sys.exit(2)`, "block True"},
		// The script itself forks once, before the bomb can: later it would be refused, too.
		{"a fork bomb", `b() { b | b & }; b & end=$((${EPOCHREALTIME/./} + 300000)); while ((${EPOCHREALTIME/./} < end)); do :; done; exit 0`, "allow"},
		{"file size", `trap '' XFSZ; head -c 1500000 /dev/zero > /tmp/f 2>/dev/null; wc -c < /tmp/f >&2; exit 2`, "block 1048576"},
		{"open files", python + "import os, sys\nfds = []\ntry:\n  while len(fds) < 100: fds.append(os.dup(0))\nexcept OSError: pass\nprint(len(fds) < 32, file=sys.stderr)\nsys.exit(2)", "block True"},
		{"cpu", `while :; do :; done`, "no_verdict signalled"},
		{"core dumps", `ulimit -H -c >&2; exit 2`, "block 0"},
		{"limits cannot be raised", `for l in -n -u -f -t -d; do ulimit $l unlimited 2>/dev/null && echo $l >&2 && exit 2; done; exit 0`, "allow"},
		{"/tmp is bounded", `for i in 1 2 3 4; do head -c 1000000 /dev/zero > /tmp/$i 2>/dev/null || break; done; [ $i = 3 ] || exit 2; exit 0`, "allow"},
		{"/dev/shm is bounded", `for i in {1..20}; do head -c 1000000 /dev/zero > /dev/shm/$i 2>/dev/null || exit 0; done; exit 2`, "allow"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if v := ask(t, r, tt.script); told(v) != tt.want {
				t.Errorf("got %s\nwant %s", show(v), tt.want)
			}
		})
	}
	t.Run("sandboxes do not share the number of processes", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		first := make(chan gate.Verdict)
		go func() {
			first <- r.Evaluate(ctx, input(`for i in {1..15}; do sleep 1 & done 2>/dev/null; wait; exit 0`))
		}()
		if v := ask(t, r, `for i in {1..15}; do sleep 0.5 & done; wait; exit 0`); told(v) != "allow" || strings.Contains(v.Evidence.Stderr, "fork") {
			t.Errorf("second: got %s", show(v))
		}
		if v := <-first; told(v) != "allow" {
			t.Errorf("first: got %s", show(v))
		}
	})
}

func TestSandboxNetworkOnlyIfGranted(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	go drop(tcp)
	r := newRunner(t, Options{Network: true})
	script := fmt.Sprintf("{ : > /dev/tcp/127.0.0.1/%d; } && echo connected >&2; exit 2", tcp.Addr().(*net.TCPAddr).Port)
	if v := ask(t, r, script); told(v) != "block connected" {
		t.Errorf("got %s", show(v))
	}
}
