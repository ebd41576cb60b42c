//go:build e2e

// Package e2e_test runs real agents, gated by a real `stopgate serve`, against
// a scripted model on loopback. `make e2e` installs the agents and runs it in a
// network namespace that has no way out.
package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
	"stopgate/wire/contracts"
)

const (
	prompt     = "Run the command and report."
	command    = "printf 'the-tool-%s' ran"
	toolResult = "the-tool-ran" // not part of the command, so that it comes from the tool
	// soughtResult is a pattern for toolResult that is not toolResult itself.
	soughtResult = "the-tool-[r]an"
	unfinished   = "The command was run."
	finished     = "The command was run. Task complete."

	markerReason = "End your answer with 'Task complete.' once the task is done."
	dangerReason = "rm -rf is not allowed here."
	neverReason  = "The judge is not content: show more evidence."
)

// lab is one agent with its gate and its model.
type lab struct {
	agent
	model         *model
	gate          *service
	home, project string
}

// newLab sets everything up as a user does: the gate is started, and
// `stopgate init` is run in the project.
func newLab(t *testing.T, a agent, gatedBy string, play func(l *lab, n int, request string) turn) *lab {
	t.Helper()
	l := &lab{agent: a, home: t.TempDir(), project: t.TempDir()}
	l.model = startModel(t, func(n int, request string) turn { return play(l, n, request) })
	l.gate = serve(t, l.home, t.TempDir(), specs(t, "../examples/marker.yaml", "../examples/audit.yaml", "../examples/dangerous-command.yaml", "testdata/never.yaml"), l.model.url)
	writeFile(t, filepath.Join(l.home, a.file), a.configure(l.project, l.model.url))
	if printed, exit := l.stopgate(t, "init", a.host, "--agent", gatedBy, "--server", l.gate.url); exit != 0 {
		t.Fatalf("init ended with %d:\n%s", exit, printed)
	}
	return l
}

// work runs the agent, which must end by itself and well, and be of a version
// that package contracts says was tried.
func (l *lab) work(t *testing.T) {
	t.Helper()
	printed, exit := l.run(t, l.home, l.project, l.model.url, prompt)
	if exit != 0 {
		t.Fatalf("%s ended with %d:\n%s", l.program, exit, printed)
	}
	version := l.version(t)
	if contract, fit, _ := contracts.For(l.host, version); fit != contracts.Tried {
		t.Error(contract.Says(version))
	}
	t.Logf("%s %s ended with 0 after %d requests of its model", l.host, strings.TrimPrefix(version, "codex-cli "), len(l.model.requests()))
}

// recorded holds the gate to its record of the session, an event and its
// decision a line, oldest first; and to counts that are 0 again at its end.
func (l *lab) recorded(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	sessions := map[string]bool{}
	for _, r := range l.gate.records() {
		line := fmt.Sprintf("%s %s", r.Event, r.Decision)
		if r.Forced {
			line += " forced"
		}
		if r.Degraded || r.Protocol != l.host {
			line += fmt.Sprintf(" %s degraded=%v", r.Protocol, r.Degraded)
		}
		got = append(got, line)
		sessions[r.Session] = true
	}
	t.Logf("the gate's record: %s", strings.Join(got, ", "))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the gate's record (-want +got):\n%s", diff)
	}
	if len(sessions) != 1 {
		t.Fatalf("events of %d sessions, want 1: %v", len(sessions), sessions)
	}
	for id := range sessions {
		var state gate.SessionState
		l.gate.read("/v1/sessions/"+id, &state)
		for _, c := range state.Agents {
			if c.StopRejectionCount != 0 || c.PromptRejections != 0 || c.StopHookActive {
				t.Errorf("counts are left: %+v", c)
			}
		}
	}
}

// versionRecorded holds the records of Stops, which hooks were asked about, to
// the agent's version.
func (l *lab) versionRecorded(t *testing.T) {
	t.Helper()
	contract, _, _ := contracts.For(l.host, "")
	want := contract.To
	if l.nameless {
		want = ""
	}
	for _, r := range l.gate.records() {
		if r.Event == gate.Stop && (r.HostVersion != want || r.HostUntried != "") {
			t.Errorf("the record of a Stop has version %q (%s), want %q", r.HostVersion, r.HostUntried, want)
		}
	}
}

// events are what the gate is to have recorded of a session with one tool call
// and these Stops.
func (l *lab) events(stops ...string) []string {
	events := []string{"Start allow", "UserPromptSubmit allow", "PreToolUse allow", "PostToolUse allow"}
	for i, stop := range stops {
		if i > 0 && l.resubmits {
			events = append(events, "UserPromptSubmit allow")
		}
		events = append(events, "Stop "+stop)
	}
	return events
}

// The main job: a stop without the marker is refused, the agent goes on with
// the reason, and its corrected answer is let through. On the way the audit's
// line about the tool call reaches the model.
func TestRefusedThenCorrected(t *testing.T) {
	for _, a := range agents() {
		t.Run(a.host, func(t *testing.T) {
			l := newLab(t, a, "marker", func(_ *lab, n int, request string) turn {
				switch {
				case n == 1:
					return turn{command: command}
				case strings.Contains(request, markerReason):
					return turn{text: finished}
				}
				return turn{text: unfinished}
			})
			if a.host == "codex" { // whose hooks a person must have read (docs/hosts.md)
				l.reviewHooks(t)
			}
			if printed, exit := l.stopgate(t, "doctor", a.host); exit != 0 {
				t.Errorf("doctor ended with %d:\n%s", exit, printed)
			}
			l.work(t)

			requests := l.model.requests()
			if len(requests) != 3 {
				t.Fatalf("the model was asked %d times, want 3: the task, the tool's result, the gate's reason", len(requests))
			}
			audit := "[AUDIT] Tool '" + a.tool + "' was executed"
			if !strings.Contains(requests[1], toolResult) || !strings.Contains(requests[1], audit) {
				t.Errorf("the request after the tool call has not both %q and %q", toolResult, audit)
			}
			if strings.Contains(requests[1], markerReason) || !strings.Contains(requests[2], markerReason) {
				t.Error("the gate's reason is not in the request after the first answer, or was there before")
			}
			l.recorded(t, l.events("block", "allow")...)
			l.versionRecorded(t)
		})
	}
}

// A tool call that PreToolUse refuses is not made, and the model gets the reason
// in place of a result.
func TestToolCallRefused(t *testing.T) {
	for _, a := range agents() {
		t.Run(a.host, func(t *testing.T) {
			l := newLab(t, a, "careful_operator", func(_ *lab, n int, _ string) turn {
				if n == 1 {
					return turn{command: "rm -rf kept"}
				}
				return turn{text: unfinished}
			})
			kept := filepath.Join(l.project, "kept", "file")
			writeFile(t, kept, "kept")
			l.work(t)

			if _, err := os.Stat(kept); err != nil {
				t.Error(err)
			}
			if requests := l.model.requests(); len(requests) != 2 || !strings.Contains(requests[1], dangerReason) {
				t.Errorf("the model was asked %d times, want 2, the second time with %q", len(requests), dangerReason)
			}
			l.recorded(t, "Start allow", "UserPromptSubmit allow", "PreToolUse block", "Stop allow")
		})
	}
}

// A judge that is never content holds an agent maxRejections times and no
// longer, also where the host itself would go on without end. Each time it has
// read the agent's own session file.
func TestRefusedForEver(t *testing.T) {
	for _, a := range agents() {
		t.Run(a.host, func(t *testing.T) {
			l := newLab(t, a, "never", func(_ *lab, n int, _ string) turn {
				if n == 1 {
					return turn{command: command}
				}
				return turn{text: unfinished}
			})
			l.work(t)

			if n := len(l.model.requests()); n != 5 {
				t.Errorf("the model was asked %d times, want 5: the task, the tool's result, three reasons", n)
			}
			judgements := l.model.judgements()
			if len(judgements) < 3 {
				t.Errorf("the judge was asked %d times, want at least once for each refusal", len(judgements))
			}
			for i, request := range judgements { // of a short conversation the judge is shown the whole
				if !strings.Contains(request, toolResult) {
					t.Errorf("request %d of the judge lacks the tool's result of the agent's transcript", i)
				}
			}
			l.recorded(t, l.events("block", "block", "block", "allow forced")...)
		})
	}
}

// A gate that goes away in the middle of a session holds nobody. What it had
// recorded until then is there when it comes back.
func TestGateGoesDown(t *testing.T) {
	for _, a := range agents() {
		t.Run(a.host, func(t *testing.T) {
			l := newLab(t, a, "marker", func(l *lab, n int, _ string) turn {
				if n == 1 {
					return turn{command: command}
				}
				l.gate.stop()
				return turn{text: unfinished}
			})
			l.work(t)
			if n := len(l.model.requests()); n != 2 {
				t.Errorf("the model was asked %d times, want 2", n)
			}
			l.gate = serve(t, l.home, l.gate.data, specs(t), l.model.url)
			l.recorded(t, l.events()...)
		})
	}
}
