package contracts

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestForSaysIfAVersionWasTried(t *testing.T) {
	for _, c := range []struct {
		host, version string
		want          Fit
	}{
		{"claude-code", "2.1.328", Tried},
		{"claude-code", "2.1.328 (Claude Code)", Tried},
		{"claude-code", "2.1.327", Older},
		{"claude-code", "2.1.1000", Newer}, // by number, not by letter
		{"claude-code", "3.0", Newer},
		{"codex", "codex-cli 0.169.0", Tried},
		{"codex", "0.169", Tried},
		{"codex", "v0.169.1", Newer},
		{"codex", "", Unknown},
		{"codex", "main", Unknown},
		{"codex", strings.Repeat("9", 40) + ".1.1", Newer},
		{"ax-code", "7.24.4", Untried},
	} {
		if _, fit, ok := For(c.host, c.version); !ok || fit != c.want {
			t.Errorf("For(%q, %q) = %s %v, want %s", c.host, c.version, fit, ok, c.want)
		}
	}
	if _, _, ok := For("emacs", "30.1"); ok {
		t.Error("a host that nobody knows has a contract")
	}
}

func TestSaysWhatWasTried(t *testing.T) {
	c, _, _ := For("gemini-cli", "")
	for version, want := range map[string]string{
		"0.61.0":  "",
		"0.62.0":  "Gemini CLI 0.62.0 was not tried; the answers were tried on 0.61.0.",
		"nightly": "The version of Gemini CLI is unknown; the answers were tried on 0.61.0.",
	} {
		if got := c.Says(version); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}

// The record says of a version what doctor says, and nothing of who has no contract.
func TestRemarks(t *testing.T) {
	remark := Remarks()
	for _, c := range All() {
		for _, version := range []string{c.From, c.To, "0.0.1", "99.1", "main"} {
			if got, want := remark(c.Host, version), c.Says(version); got != want {
				t.Errorf("%s %s: %q, want %q", c.Host, version, got, want)
			}
		}
	}
	if got := remark("native", "1.0"); got != "" {
		t.Errorf("native: %q", got)
	}
}

// A unit that is wrong by a thousand either cuts off every hook or lets a gate
// that hangs hold an agent for hours (fault gx-030).
func TestTimeoutUnits(t *testing.T) {
	for host, want := range map[string]time.Duration{
		"claude-code": time.Second, "codex": time.Second, "qwen-code": time.Millisecond, "gemini-cli": time.Millisecond,
	} {
		if c, _, _ := For(host, ""); c.TimeoutUnit != want {
			t.Errorf("%s: %s, want %s", host, c.TimeoutUnit, want)
		}
	}
}

// Only hosts that were measured have a range, every event a way in, every
// answer that is not empty is one JSON object, and none ever is a permission
// or a halt.
func TestContractsAreWhole(t *testing.T) {
	for _, c := range All() {
		if (c.From == "") != (c.To == "") || c.Run == "" || c.Program == "" {
			t.Errorf("%s: from %q to %q, run %q", c.Host, c.From, c.To, c.Run)
		}
		seen := map[string]bool{}
		for _, e := range c.Events {
			if seen[e.Host] || !e.HTTP && !e.Command || c.From == "" && !e.Untried {
				t.Errorf("%s %s: twice, unreachable, or said to be tried", c.Host, e.Host)
			}
			seen[e.Host] = true
			for _, body := range []string{e.Answers.NoObjection, e.Answers.Context, e.Answers.Block, e.Answers.BlockWithContext, e.Answers.Ask} {
				var object map[string]any
				if body != "" && json.Unmarshal([]byte(body), &object) != nil {
					t.Errorf("%s %s: %s", c.Host, e.Host, body)
				}
				if strings.Contains(body, `"continue"`) || strings.Contains(body, `permissionDecision":"allow`) {
					t.Errorf("%s %s: %s", c.Host, e.Host, body)
				}
			}
		}
	}
}

// How many blocks in a row each host takes, as was measured.
func TestClaudeCode14Caps(t *testing.T) {
	for host, want := range map[string]struct {
		blocks   int
		restarts bool
	}{"claude-code": {8, true}, "qwen-code": {7, false}, "copilot": {8, false}, "codex": {0, false}, "gemini-cli": {0, false}} {
		if c, _, ok := For(host, ""); !ok || c.Cap != want.blocks || c.CapRestarts != want.restarts {
			t.Errorf("%s: %d blocks, restarts %t; want %+v", host, c.Cap, c.CapRestarts, want)
		}
	}
}
