package commandhooks

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"stopgate/gate"
)

// What is left out would not have refused: bash itself runs such texts where they miss
// their files, and none ends as what else is in it, or says anything.
func TestLeftOutTextsRefuseNothingInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	bin, empty := t.TempDir(), t.TempDir()
	const does = "#!/bin/sh\nexit 42\n"
	if err := os.WriteFile(filepath.Join(bin, "does"), []byte(does), 0o755); err != nil {
		t.Fatal(err)
	}
	_, project := hookedProject(t)
	s := blind(project)
	random := rand.New(rand.NewPCG(1, 2))
	ran := 0
	for i := range 20_000 {
		text := randomText(random, 3)
		if _, sure := s.lacks(job{inline: text}, &gate.Hook{Command: text}); !sure {
			continue
		}
		if ran++; ran > 300 {
			break
		}
		cmd := exec.CommandContext(t.Context(), bash, "-c", text)
		cmd.Dir, cmd.Env = empty, []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + empty}
		out, err := cmd.Output()
		if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code == 42 || len(out) > 0 {
			t.Errorf("text %d is left out, and refuses: %s: %d, %q", i, text, code, out)
		}
	}
	if ran < 300 {
		t.Errorf("only %d texts were left out", ran)
	}
}

// randomText is a shell text of commands that miss something, do nothing, ask, end
// the text, or do something.
func randomText(random *rand.Rand, depth int) string {
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	if depth == 0 || random.IntN(3) == 0 {
		return one("bash hooks/x.sh", "python3 hooks/x.py", "cd hooks", "bash hooks/x.sh", "exec bash hooks/x.sh", "source hooks/x.sh", "grep -f hooks/x y", "bash < hooks/x.sh",
			"make check", "cat >/dev/null </dev/null", "echo x >&2", "true", ":", "set -e", "set +e", "set -euo pipefail", "set -o pipefail", "x=1", "x=$(cat </dev/null)", "x=$(does)",
			"export y=1", "cd /usr", "[ -n \"$x\" ]", "[ -z \"$x\" ]", "[[ $x ]]", "test -e hooks", "exit", "exit 0", "exit $?", "exit 1", "exit 42", "does", "does", "echo y", "false",
			"f() { does; }", "f", "trap does EXIT", "eval 'bash hooks/x.sh'", "eval does", "bash -c 'bash hooks/x.sh'", "bash -c does", "jq . </dev/null")
	}
	a, b := randomText(random, depth-1), randomText(random, depth-1)
	switch random.IntN(11) {
	case 0, 1, 2, 3:
		return a + "; " + b
	case 4:
		return a + " && " + b
	case 5:
		return a + " || " + b
	case 6:
		return a + " | " + b
	case 7:
		return "( " + a + " )"
	case 8:
		return "{ " + a + "; }"
	case 9:
		return "if " + a + "; then " + b + "; fi"
	}
	return "! { " + a + "; }"
}
