package commandhooks

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// theirRoot is a directory like an environment's /, which the sandbox's user
// owns.
func theirRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	root := openDir(t)
	giveToSandbox(t, root)
	for name, content := range files {
		path := filepath.Join(root, name)
		mkdir(t, filepath.Dir(path))
		for dir := filepath.Dir(path); dir != root; dir = filepath.Dir(dir) {
			giveToSandbox(t, dir)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		giveToSandbox(t, path)
	}
	return root
}

// deny is a shell line that denies with the words that another prints.
func deny(line string) string {
	return `printf '{"decision":"deny","reason":"%s"}' "$(echo $(` + line + `))"`
}

func TestAntigravity02RootIsTheDirectory(t *testing.T) {
	root := theirRoot(t, map[string]string{".agents/hooks-scripts/gate.sh": "echo from the script", "workspace/a/b": "text", "notes.txt": "said", "-x y/z": "odd"})
	outside := filepath.Join(openDir(t), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	symlink(t, "workspace", root, "project")
	symlink(t, "/workspace/a", root, "absolute")
	symlink(t, filepath.Dir(outside), root, "out")
	symlink(t, "/etc", root, "settings")
	r := newRunner(t, Options{Root: root})
	workspace := filepath.Join(root, "workspace")
	for _, tt := range []struct{ name, line, cwd, want string }{
		{"a script at its absolute path", deny("bash /.agents/hooks-scripts/gate.sh"), workspace, "block from the script"},
		{"the working directory", deny("pwd; cat a/b"), workspace, "block /workspace text"},
		{"a working directory below", deny("pwd"), filepath.Join(workspace, "a"), "block /workspace/a"},
		{"the root as working directory", deny("pwd; cat notes.txt"), root, "block / said"},
		{"a working directory elsewhere", deny("pwd"), filepath.Dir(outside), "block /"},
		{"an odd name", deny("cat '/-x y/z'"), root, "block odd"},
		{"a symbolic link", deny("cat /project/a/b; readlink /project"), root, "block textworkspace"},
		{"an absolute one, from its own root", deny("cat /absolute/b"), root, "block text"},
		{"one that leads out leads nowhere", deny("cat /out/secret || echo nothing"), root, "block nothing"},
		{"one to the system is the sandbox's", deny("grep -c daemon /settings/passwd"), root, "block 0"},
		{"the gate's own files", deny("cat '" + outside + "' '" + root + "/notes.txt' || echo nothing"), root, "block nothing"},
		{"the root itself is not written", deny("{ : > /new; } 2> /dev/null || echo refused"), root, "block refused"},
		{"what lies there is", deny("echo changed > /workspace/new && cat /workspace/new"), root, "block changed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := ask(t, r, tt.line, sandboxed(gate.PreToolUse), in(tt.cwd))
			if told(v) != tt.want {
				t.Errorf("got %s\nwant %s", show(v), tt.want)
			}
		})
	}
	if b, err := os.ReadFile(filepath.Join(workspace, "new")); err != nil || string(b) != "changed\n" {
		t.Errorf("what the hook wrote is %q, %v", b, err)
	}
	t.Run("hooks of other dialects have no part in it", func(t *testing.T) {
		if v := ask(t, r, `[ -e /workspace ] && exit 2; exit 0`, in(workspace)); told(v) != "allow" {
			t.Errorf("got %s", show(v))
		}
	})
}

func TestRootShowsNothingThatLeadsOut(t *testing.T) {
	root := theirRoot(t, map[string]string{"usr/evil": "x", "etc/passwd": "x", "tmp/a": "x", "hook/script.sh": "x", "ok": "x"})
	l, err := net.Listen("unix", filepath.Join(root, "gate.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, Options{Root: root})
	want := []string{`"etc": the sandbox has a /etc of its own`, `"gate.sock" is a socket`, `"hook": the sandbox has a /hook of its own`, `"pipe" is a named pipe`,
		`"tmp": the sandbox has a /tmp of its own`, `"usr": the sandbox has a /usr of its own`}
	if diff := cmp.Diff(want, r.Unshown()); diff != "" {
		t.Errorf("unshown (-want +got)\n%s", diff)
	}
	v := ask(t, r, deny("ls -d /ok /usr/evil /tmp/a /hook /gate.sock /pipe 2> /dev/null"), sandboxed(gate.PreToolUse), in(root))
	if told(v) != "block /ok" {
		t.Errorf("got %s", show(v))
	}
}

// What was a directory when it was listed may be a link by the time that it is
// mounted.
func TestRootEntryThatIsExchanged(t *testing.T) {
	root := theirRoot(t, map[string]string{"workspace/a": "x"})
	r := newRunner(t, Options{Root: root})
	workspace := filepath.Join(root, "workspace")
	secret := openDir(t)
	if err := os.RemoveAll(workspace); err != nil {
		t.Fatal(err)
	}
	symlink(t, secret, workspace)
	if v := ask(t, r, deny("ls -d /workspace/. || echo nothing"), sandboxed(gate.PreToolUse), in(root)); told(v) != "block nothing" {
		t.Errorf("a link in its place: %s", show(v))
	}
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	symlink(t, secret, root)
	if v := ask(t, r, deny("true"), sandboxed(gate.PreToolUse), in(root)); told(v) != "no_verdict sandbox_unavailable" {
		t.Errorf("a link in the root's place: %s", show(v))
	}
}

func TestRootIsBounded(t *testing.T) {
	root := openDir(t)
	for i := range maxEntries + 1 {
		mkdir(t, root, fmt.Sprint(i))
	}
	if _, err := New(t.Context(), complete(Options{Root: root})); err == nil || !strings.Contains(err.Error(), "more than 256 entries") {
		t.Errorf("error %v", err)
	}
	if _, err := New(t.Context(), complete(Options{Root: filepath.Join(root, "none")})); err == nil {
		t.Error("a root that is not there is taken")
	}
}

// Data of the gate that lies in the root is as empty as in a workspace.
func TestRootHidesTheGatesData(t *testing.T) {
	root := theirRoot(t, map[string]string{"state/stopgate/records": "secret"})
	r := newRunner(t, Options{Root: root, Workspace: Workspace{Hidden: []string{filepath.Join(root, "state", "stopgate")}}})
	if v := ask(t, r, deny("ls -A /state/stopgate"), sandboxed(gate.PreToolUse), in(root)); told(v) != "block" {
		t.Errorf("got %s", show(v))
	}
}

// A gate that is root can be nobody else where only root may write.
func TestAsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("about a gate that is root")
	}
	private := t.TempDir() // root's, in a directory that nobody else may enter
	mkdir(t, private, "workspace")
	const try = `{ echo x >> "$PWD/log"; } 2> /dev/null && echo written; grep CapEff /proc/self/status; { echo 1 > /proc/sys/vm/drop_caches; } 2> /dev/null && echo root`
	const wrote = "written\nCapEff:\t0000000000000000"
	t.Run("root", func(t *testing.T) {
		workspace := filepath.Join(private, "workspace")
		v := ask(t, newRunner(t, Options{Root: private, AsRoot: true}), try, sandboxed(gate.PreToolUse), in(workspace))
		if v.Evidence == nil || strings.TrimSpace(v.Evidence.Stdout) != wrote {
			t.Errorf("got %s", show(v))
		}
		if v := ask(t, newRunner(t, Options{Root: private}), try, sandboxed(gate.PreToolUse), in(workspace)); told(v) != "no_verdict sandbox_unavailable" {
			t.Errorf("unasked: %s", show(v))
		}
	})
	t.Run("workspace", func(t *testing.T) {
		dir := mkdir(t, private, "project")
		space := Workspace{Access: ReadWrite, Roots: []string{dir}}
		v := ask(t, newRunner(t, Options{Workspace: space, AsRoot: true}), try, in(dir), inline)
		if v.Evidence == nil || strings.TrimSpace(v.Evidence.Stdout) != wrote {
			t.Errorf("got %s", show(v))
		}
		if v := ask(t, newRunner(t, Options{Workspace: space}), try, in(dir), inline); told(v) != "no_verdict sandbox_unavailable" {
			t.Errorf("unasked: %s", show(v))
		}
	})
	t.Run("memory bounds how many processes there are", func(t *testing.T) {
		r := newRunner(t, Options{Root: private, AsRoot: true, Limits: Limits{Memory: 16 << 20}})
		v := ask(t, r, `for i in {1..400}; do sleep 50 & done; wait; echo '{"decision":"deny"}'`, sandboxed(gate.PreToolUse), in(private))
		if told(v) != "no_verdict signalled" || !strings.Contains(v.Failure.Message, "all its processes taken together") {
			t.Errorf("got %s", show(v))
		}
	})
	t.Run("another's directory is written by its owner", func(t *testing.T) {
		root := theirRoot(t, map[string]string{"workspace/a": "x"})
		ask(t, newRunner(t, Options{Root: root, AsRoot: true}), try, sandboxed(gate.PreToolUse), in(filepath.Join(root, "workspace")))
		about, err := os.Stat(filepath.Join(root, "workspace", "log"))
		if err != nil || about.Sys().(*syscall.Stat_t).Uid != outsideID {
			t.Errorf("%+v, %v", about, err)
		}
	})
}
