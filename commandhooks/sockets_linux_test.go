package commandhooks

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/gate"
)

// TestSandboxLeadsToNoSocketBelow: a socket below what a sandbox shows is no more
// a way out than one beside it, by a stream or by datagrams, whose pairs can be
// turned to another address.
func TestSandboxLeadsToNoSocketBelow(t *testing.T) {
	root := theirRoot(t, map[string]string{"workspace/a": "x"})
	workspace := filepath.Join(root, "workspace")
	agent, log := filepath.Join(workspace, "agent.sock"), filepath.Join(workspace, "log.sock")
	calls, err := net.Listen("unix", agent)
	if err != nil {
		t.Fatal(err)
	}
	defer calls.Close()
	letters, err := net.ListenPacket("unixgram", log)
	if err != nil {
		t.Fatal(err)
	}
	defer letters.Close()
	for _, path := range []string{agent, log} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	heard := make(chan string, 8)
	go func() {
		for {
			c, err := calls.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			heard <- "a call"
			c.Close()
		}
	}()
	go func() {
		b := make([]byte, 64)
		for {
			n, _, err := letters.ReadFrom(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			heard <- string(b[:n])
		}
	}()
	reach := func(dir string) string {
		return `python3 - <<'end'
import socket
def tried(what):
    try: what()
    except OSError as e: print(e.strerror)
    else: print("reached")
def pair(): return socket.socketpair(type=socket.SOCK_DGRAM)[0]
tried(lambda: socket.socket(socket.AF_UNIX).connect("` + dir + `/agent.sock"))
tried(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"a letter", "` + dir + `/log.sock"))
tried(lambda: pair().sendto(b"a letter of a pair", "` + dir + `/log.sock"))
tried(lambda: pair().connect("` + dir + `/log.sock"))
tried(lambda: socket.socketpair()[0].connect("` + dir + `/agent.sock"))
end`
	}
	const eachFails = "Operation not permitted\nOperation not permitted\nOperation not permitted\nOperation not permitted\nTransport endpoint is already connected\n"
	for _, tt := range []struct {
		name string
		opt  Options
		dir  string
		as   func(*gate.Input)
		cwd  string
	}{
		{"root", Options{Root: root}, "/workspace", sandboxed(gate.PreToolUse), root},
		{"read-only", Options{Workspace: Workspace{Access: ReadOnly, Roots: []string{root}}}, workspace, inline, workspace},
		{"read-write", Options{Workspace: Workspace{Access: ReadWrite, Roots: []string{root}}}, workspace, inline, workspace},
		{"with network", Options{Network: true, Workspace: Workspace{Access: ReadWrite, Roots: []string{root}}}, workspace, inline, workspace},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRunner(t, tt.opt)
			needsPython(t, r)
			v := ask(t, r, "{ "+reach(tt.dir)+"\n} >&2; exit 1", tt.as, in(tt.cwd))
			if v.Evidence == nil || v.Evidence.Stderr != eachFails {
				t.Errorf("got %s", show(v))
			}
			select {
			case what := <-heard:
				t.Errorf("outside arrived %q", what)
			default:
			}
		})
	}
}

// TestSandboxRunsWhatHooksUse: of what they call, nothing needs a unix socket.
func TestSandboxRunsWhatHooksUse(t *testing.T) {
	r := newRunner(t, Options{})
	needsPython(t, r)
	for _, line := range []string{
		`echo '{"a":[1]}' | jq -e '.a[0] == 1' >/dev/null`,
		`git init -q r && cd r && echo x > f && git add f && git -c user.name=a -c user.email=a@example.com commit -qm one && git log --oneline | grep -q one`,
		`coproc cat; echo x >&"${COPROC[1]}"; read -r got <&"${COPROC[0]}"; [ "$got" = x ]; diff <(echo a) <(echo a)`,
		`python3 -c 'import asyncio, concurrent.futures as f, subprocess; asyncio.run(asyncio.create_subprocess_exec("true")); f.ThreadPoolExecutor().submit(int).result()'`,
	} {
		program, _, _ := strings.Cut(line, " ")
		t.Run(program, func(t *testing.T) {
			if v := ask(t, r, "set -e; export HOME=/tmp; command -v "+program+" >/dev/null || exit 0\n"+line); told(v) != "allow" {
				t.Errorf("got %s", show(v))
			}
		})
	}
}
