package gate

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Whatever bash makes of a line: if it starts the program, the rule that is about
// the program is about the line. bash finds nothing to start but a function of that
// name, which says so.
func TestRulesBesideBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	pieces := []string{"rm x", "rm", "'rm' x", `r\m x`, `r"m" x`, "echo ", "a ", "x=1 ", "\n", "\n", ";", "&& ", "|| ", "| ", "\\", "\\\n", "\r", "\r\n",
		"#", " # ", "'", `"`, "`", "$(", ")", "(", "{ ", "; }", "if ", "then ", "fi ", "<<E\n", "\nE\n", "é", "\t", "!", "time ", "$'", "[[ ", "]] ", "case x in x) ", ";; esac", "<(", ">f ", "# \\\n", "\\\r\n"}
	rule := commandRule("rm *")
	rng := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	started := 0
	for i := range 500 {
		var b strings.Builder
		for range 1 + rng.IntN(7) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		line := b.String()
		hit := filepath.Join(dir, strconv.Itoa(i)) // its own: what a line leaves running may be late
		cmd := exec.CommandContext(t.Context(), bash, "--norc", "-c", `hit=$1; rm() { echo hit >>"$hit"; }; eval "$2"`, "bash", hit, line)
		cmd.Dir, cmd.Env = dir, []string{"PATH=/nonexistent"}
		_ = cmd.Run() // most lines are no commands
		if _, err := os.Stat(hit); err != nil {
			continue
		}
		started++
		if call, _ := json.Marshal(line); !rule(map[string]json.RawMessage{"command": call}, "") {
			t.Errorf("bash starts rm for %q, and Bash(rm *) is not about it", line)
		}
	}
	if started < 20 {
		t.Errorf("bash started it %d times: the lines try nothing", started)
	}
}
