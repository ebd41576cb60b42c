//go:build e2e

package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Codex runs a project's hooks only when the project is trusted and each hook
// was reviewed, that is, its hash stands in the user's config.toml. Else it goes
// on as if there were none: what `stopgate init codex` warns of.
func TestCodexTrust(t *testing.T) {
	ungated := func(l *lab, n int, _ string) turn {
		if n == 1 {
			return turn{command: command}
		}
		return turn{text: finished}
	}
	bypass := "--dangerously-bypass-hook-trust"
	reviewed := codex()
	reviewed.args = slices.DeleteFunc(slices.Clone(reviewed.args), func(a string) bool { return a == bypass })
	untrusted := codex()
	untrusted.configure = func(_, modelURL string) string { return codexModel(modelURL) }

	t.Run("the project is not trusted", func(t *testing.T) {
		l := newLab(t, untrusted, "marker", ungated)
		if printed, exit := l.stopgate(t, "doctor", l.host); exit != 1 {
			t.Errorf("doctor ended with %d:\n%s", exit, printed)
		}
		l.work(t)
		if got := l.gate.records(); len(got) != 0 {
			t.Errorf("hooks ran: %+v", got)
		}
	})
	t.Run("the hooks are not reviewed", func(t *testing.T) {
		l := newLab(t, reviewed, "marker", ungated)
		if printed, _ := l.stopgate(t, "doctor", l.host); !strings.Contains(printed, "type /hooks in codex") {
			t.Errorf("doctor says nothing of hooks that nobody reviewed:\n%s", printed)
		}
		l.work(t)
		if got := l.gate.records(); len(got) != 0 {
			t.Errorf("hooks ran: %+v", got)
		}
	})
	t.Run("both", func(t *testing.T) {
		l := newLab(t, reviewed, "marker", ungated)
		l.reviewHooks(t)
		if printed, exit := l.stopgate(t, "doctor", l.host); exit != 0 || strings.Contains(printed, "warning") {
			t.Errorf("doctor ended with %d:\n%s", exit, printed)
		}
		l.work(t)
		l.recorded(t, l.events("allow")...)
	})
}

// reviewHooks notes for every hook that Codex finds that a person has read it,
// as Codex itself does after /hooks.
func (l *lab) reviewHooks(t *testing.T) {
	t.Helper()
	config, err := os.OpenFile(filepath.Join(l.home, l.file), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer config.Close()
	for key, hash := range l.hookHashes(t) {
		fmt.Fprintf(config, "\n[hooks.state.%q]\ntrusted_hash = %q\n", key, hash)
	}
}

// hookHashes asks Codex itself for the hooks of the project, by the protocol of
// its app-server: a JSON-RPC message a line.
func (l *lab) hookHashes(t *testing.T) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), agentTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, installed(t, "bin", "e2e", "node_modules", ".bin", l.program), "app-server")
	cmd.Dir, cmd.Env = l.project, append(l.environment(l.home, l.model.url), "HOME="+l.home, "PATH="+os.Getenv("PATH"))
	// Its end comes when it has answered and is killed, or with ctx.
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = cmd.Wait() }()
	fmt.Fprintln(in, `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"e2e","version":"1"}}}`)
	fmt.Fprintln(in, `{"method":"initialized"}`)
	fmt.Fprintf(in, `{"id":2,"method":"hooks/list","params":{"cwds":[%q]}}`+"\n", l.project)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var answer struct {
			ID     int
			Result struct {
				Data []struct {
					Hooks []struct{ Key, CurrentHash, TrustStatus string }
				}
			}
		}
		if json.Unmarshal(lines.Bytes(), &answer) != nil || answer.ID != 2 || len(answer.Result.Data) == 0 {
			continue
		}
		hashes := map[string]string{}
		for _, h := range answer.Result.Data[0].Hooks {
			if h.TrustStatus != "untrusted" {
				t.Errorf("%s is %s before it was reviewed", h.Key, h.TrustStatus)
			}
			hashes[h.Key] = h.CurrentHash
		}
		return hashes
	}
	t.Fatalf("codex app-server lists no hooks: %v", lines.Err())
	return nil
}
