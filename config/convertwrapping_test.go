package config

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// ended is how a command ended, and what it wrote until then.
type ended struct {
	code           int
	stdout, stderr string
}

// endOf runs a line. Its outputs are files, so that nothing waits for what it leaves
// running.
func endOf(t *testing.T, shell, line, stdin string) ended {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), shell, "-c", line)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TMPDIR=" + dir}
	var files [3]*os.File
	for i, name := range []string{"stdin", "stdout", "stderr"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(stdin), 0o600); err != nil {
			t.Fatal(err)
		}
		how := os.O_RDONLY
		if i > 0 {
			how = os.O_WRONLY | os.O_TRUNC | os.O_APPEND
		}
		f, err := os.OpenFile(path, how, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[1], files[2]
	var e ended
	if err := cmd.Run(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			t.Fatal(err)
		}
		e.code = exit.ExitCode()
	}
	for i, into := range []*string{&e.stdout, &e.stderr} {
		b, err := os.ReadFile(files[i+1].Name())
		if err != nil {
			t.Fatal(err)
		}
		*into = string(bytes.ReplaceAll(b, []byte(dir), nil))
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 {
		t.Errorf("a file is left of %q: %v, %v", line, left, err)
	}
	return e
}

// A wrapping leaves a command's exit code and every byte that it writes as they are,
// but for what it is there to change. (Of what the shell itself says of a command, as
// that it was killed, the line's number differs; and an unset variable ends bash with
// 127, and a part of it with 1: no law knows them apart.)
func TestConvertWrappingKeepsBytes(t *testing.T) {
	commands := []string{
		"exit 0", "exit 1", "echo why >&2; exit 2", "exit 127", "false", "printf 'no end'", `printf 'ends\n\n\n'`, `printf 'a\000b\377\200\n'; printf 'e\000\377' >&2; exit 3`,
		"cat", "head -c 3; exit 1", "exec cat", "head -c 3000000 /dev/zero | tr '\\0' 'x'; head -c 200000 /dev/zero >&2", "set -e\nfalse\necho not",
		"set -euo pipefail\nx=$(false)\necho not", "trap 'echo bye; echo err >&2' EXIT\necho hi\nexit 4", "trap 'exit 6' ERR\nfalse\nexit 0", "trap 'echo term; exit 7' TERM; kill -TERM $BASHPID; sleep 5",
		"(exit 5); echo $?", "( echo in; exit 5 )", "{ exit 8; }", "f() { return 9; }; f", "echo ${kept-unset} ${code-unset} ${said-unset}",
		"[ -e /dev/fd/7 ] || [ -e /dev/fd/8 ] || [ -e /dev/fd/9 ] || echo none", "exec 3>&1; echo three >&3; exec >&2; echo err", "cat <<E\nhere $((1 + 1))\nE", "echo a # comment", "sleep 30 & echo started; exit 1",
		"(sleep 30 >&2; echo late) & echo started >&2", "ulimit -c 0; umask 077; cd /; pwd", "exit 256", "nonexistent-program-x 2>/dev/null", "printf '%s' \"$0\"",
	}
	for _, shell := range []string{"bash", "sh"} {
		for _, command := range commands {
			if shell == "sh" && (strings.Contains(command, "pipefail") || strings.Contains(command, "ERR") || strings.Contains(command, "BASHPID")) {
				continue
			}
			was := endOf(t, shell, command, "stdin\nof it")
			for name, c := range map[string]struct {
				w    wrapping
				want ended
			}{
				"opened":   {opened, ended{min(was.code, 1), was.stdout, was.stderr}},
				"closed":   {closed, ended{2 * min(was.code, 1), was.stdout, was.stderr}},
				"denyAt2":  {denyAt2, was},
				"denyAny":  {denyAny, was},
				"reasoned": {reasoned, was},
			} {
				switch {
				case name == "denyAt2" && was.code == 2, name == "denyAny" && was.code != 0:
					c.want = ended{0, strings.TrimPrefix(strings.TrimSuffix(denial, "'"), "echo '") + "\n", was.stderr + was.stdout}
				}
				began := time.Now()
				if got := endOf(t, shell, c.w.head+command+c.w.tail, "stdin\nof it"); got != c.want {
					t.Errorf("%s by %s of %q: %d %.200q %.200q, want %d %.200q %.200q", name, shell, command, got.code, got.stdout, got.stderr, c.want.code, c.want.stdout, c.want.stderr)
				}
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("%s of %q waits %s for what it leaves running", name, command, took)
				}
			}
		}
	}
}

// Where no file can be made nothing opens the gate.
func TestConvertWrappingWithoutAFile(t *testing.T) {
	for name, c := range map[string]struct {
		w       wrapping
		command string
		want    ended
	}{
		"a denial":         {denyAt2, "exit 0", ended{0, strings.TrimPrefix(strings.TrimSuffix(denial, "'"), "echo '") + "\n", ""}},
		"a reason":         {reasoned, "exit 2", ended{2, "", "A hook refused this stop by its exit code.\n"}},
		"one more":         {reasoned, "echo why >&2; exit 2", ended{2, "", "why\nA hook refused this stop by its exit code.\n"}},
		"none":             {reasoned, "echo fine; echo log >&2", ended{0, "fine\n", "log\n"}},
		"of white space":   {reasoned, `printf ' \302\240\n' >&2; exit 2`, ended{2, "", " \u00a0\nA hook refused this stop by its exit code.\n"}},
		"feedback, unsaid": {fed, "echo x", ended{1, "", ""}},
	} {
		got := endOf(t, "bash", "mktemp() { return 1; }\n"+c.w.head+c.command+c.w.tail, "")
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// What AX Code tells the agent of a hook is told whole elsewhere, and nothing waits.
func TestConvertFedKeepsText(t *testing.T) {
	for command, want := range map[string]string{
		`printf '\n\nfirst\n\n  third\n\n\n'`:   "first\n\n  third",
		`printf 'a\000b'`:                       "ab",
		"sleep 30 & echo started":               "started",
		"trap 'echo bye' EXIT; set -e; echo hi": "hi\nbye",
		"echo \u5b8c\u4e86":                     "\u5b8c\u4e86",
		"cat":                                   "stdin",
	} {
		e := endOf(t, "bash", fed.head+command+fed.tail, "stdin")
		v, err := gate.ReadClaudeCodeAnswer(gate.PostToolUse, []byte(e.stdout))
		if err != nil || v.AdditionalContext != want || e.code != 0 {
			t.Errorf("%q: %q, %v, want %q (%+v)", command, v.AdditionalContext, err, want, e)
		}
	}
}
