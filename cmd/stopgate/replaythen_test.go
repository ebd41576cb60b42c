package main

import (
	"bytes"
	"context"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

const looking = `{"name":"a","properties":{"hooks":{"PreToolUse":[{"name":"looks","type":"command","matcher":"Bash","timeout":10,
	"script":"#!/bin/bash\ncat >/dev/null\n[ -f ok ] || { echo no ok file >&2; exit 2; }\n"}]}}}`

// workedIn is a service of agent "a" that sees its workspace, if it may, and has
// answered one call there.
func workedIn(t *testing.T, spec, sandbox string) (s *service, data, work string) {
	t.Helper()
	data, work = t.TempDir(), t.TempDir()
	write(t, filepath.Join(work, "ok"), "")
	s = newServiceWith(t, data, fileOf(t, "stopgate.yaml", strings.ReplaceAll(sandbox, "WORK", work)))
	if status, body := s.do(http.MethodPut, agents+"a", "application/json", []byte(spec)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, body)
	}
	s.evaluate(strings.Replace(bash, `"session_id"`, `"cwd":"`+work+`","session_id"`, 1))
	return s, data, work
}

const inWorkspace = "sandbox: {mode: process, workspace: read-only, workspace_roots: [WORK]}\n"

// A script that looked at its agent's directory has no such thing here, and an
// unchanged one is not told to have changed.
func TestReplayOfAHookThatLooksAtItsWorkspace(t *testing.T) {
	s, data, work := workedIn(t, looking, inWorkspace)
	draft := fileOf(t, "same.json", looking)
	for name, source := range map[string][]string{"server": nil, "data directory": {"--data", data}, "export": {"--from", fileOf(t, "export.ndjson", s.export())}} {
		code, out, _ := s.replayed(t.Context(), append(source, "-f", draft)...)
		if code != exitInput || !strings.Contains(out, "Not replayed for workspace, the first ") || !strings.Contains(out, `hook "looks" may look at its agent's directory`) || !strings.Contains(out, " 0 changed;") {
			t.Errorf("%s: exit %d: %s", name, code, out)
		}
	}
	_, out, _ := s.replayed(t.Context(), "-f", draft, "--no-workspace")
	for _, want := range []string{"  allow→block (without its workspace)\n", "; in 1 of them scripts may have looked at a workspace, which they had not here\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("asked all the same: no %q in\n%s", want, out)
		}
	}
	if r := s.report("-f", hooksOf(t, `{"name":"looks",`+refuses+`}`)); r.Decisions["allow→block"] != 1 || r.Blind != 0 {
		t.Errorf("a hook that does not look: %+v", r)
	}
	old := fileOf(t, "old.ndjson", strings.ReplaceAll(s.export(), `"workspace":"read-only"`, `"later":""`))
	if _, out, _ := s.replayed(t.Context(), "-f", draft, "--from", old); !strings.Contains(out, " (without its workspace)\n") {
		t.Errorf("an older record does not say, and neither does the row: %s", out)
	}
	cfg := fileOf(t, "stopgate.yaml", strings.ReplaceAll(inWorkspace, "WORK", work))
	if code, out, _ := s.replayed(t.Context(), "-f", draft, "--from", old, "--config", cfg); code != exitInput || !strings.Contains(out, "1 workspace") {
		t.Errorf("an older record, with the server's file: exit %d: %s", code, out)
	}
}

// What no hook saw then is not missed now.
func TestReplayWhereNoWorkspaceWasSeen(t *testing.T) {
	s, _, _ := workedIn(t, looking, "sandbox: {mode: process}\n")
	if r := s.report("-f", fileOf(t, "same.json", looking)); r.Replayed != 1 || r.Changed != 0 || r.Blind != 0 {
		t.Errorf("%+v", r)
	}
}

// A pattern for paths of the project is one for those alone: the event's directory
// is that of then.
func TestReplayKnowsTheDirectoryOfPatterns(t *testing.T) {
	s, _ := pastWorld(t)
	const hooks = `{"hooks":{"PreToolUse":[{"matcher":"Edit","hooks":[{"type":"command","command":"exit 2","if":"Edit(src/**)"}]}]}}`
	if status, body := s.do(http.MethodPut, "/v1/agents/a/hooks?dialect=claude-code", "application/json", []byte(hooks)); status >= 300 {
		t.Fatalf("%d %s", status, body)
	}
	for path, want := range map[string]gate.Outcome{"/srv/elsewhere/src/a.go": gate.Allow, "/srv/project/src/a.go": gate.Block} {
		d := s.evaluate(`{"hook_event_name":"PreToolUse","agent_name":"a","cwd":"/srv/project","tool_name":"Edit","tool_input":{"file_path":"` + path + `"}}`)
		if d.Outcome != want {
			t.Fatalf("%s: %+v", path, d)
		}
	}
	if r := s.report("-f", fileOf(t, "settings.json", hooks), "--agent", "a"); r.Replayed != 2 || r.Changed != 0 {
		t.Errorf("%+v", r)
	}
}

// A Stop that an override let through is asked about as it was: its hooks are not.
func TestReplayOfAnOverride(t *testing.T) {
	s, _ := pastWorld(t)
	if status, body := s.do(http.MethodPut, "/v1/sessions/s/override", "application/json", []byte(`{"reason":"it is urgent","minutes":5}`)); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if d := s.evaluate(`{"hook_event_name":"Stop","agent_name":"a","session_id":"s","final_output":"Done."}`); !d.Forced {
		t.Fatalf("%+v", d)
	}
	r := s.report("-f", fileOf(t, "same.json", judgedSpec))
	if r.Replayed != 1 || r.Changed != 0 || len(s.asked()) > 0 {
		t.Fatalf("%+v", r)
	}
	if h := r.Evaluations[0].Hooks[0]; !strings.Contains(h.Was.Reason, "it is urgent") || h.Now.Reason != h.Was.Reason {
		t.Errorf("was %+v, now %+v", h.Was, h.Now)
	}
}

// Hooks that nobody had switched on are not asked, and that is said.
func TestReplayOfOnDemandHooks(t *testing.T) {
	s, _ := pastWorld(t)
	s.evaluate(bash)
	onDemand := func(name, matcher string) string {
		return fileOf(t, name+".json", `{"name":"`+name+`","type":"GlobalHook","properties":{"eventType":"PreToolUse","activationMode":"onDemand","hook":{`+
			strings.Replace(refuses, "Bash", matcher, 1)+`}}}`)
	}
	draft := []string{"-f", onDemand("shell", "Bash"), "-f", onDemand("other", "Write")}
	code, out, errs := s.replayed(t.Context(), draft...)
	if want := `1 on-demand hook was not active in these sessions: --all-active asks everywhere ("shell" in 1 evaluation).` + "\n"; !strings.Contains(out, want) {
		t.Errorf("exit %d: no %q in\n%s%s", code, want, out, errs)
	}
	if r := s.report(append(draft, "--all-active")...); len(r.Inactive) != 0 || r.Changed != 1 {
		t.Errorf("all active: %+v", r)
	}
}

// A program gets every reason, also of what did not change.
func TestReplayTellsReasonsOfWhatDidNotChange(t *testing.T) {
	s, _ := pastWorld(t)
	s.evaluate(strings.Replace(bash, "ls", "sudo reboot", 1))
	row := s.report("-f", fileOf(t, "draft.json", stricterSpec)).Evaluations[0]
	h := row.Hooks[0]
	got := []string{row.Was.Reason, row.Now.Reason, h.Was.Reason, h.Now.Reason}
	if diff := cmp.Diff([]string{"no sudo", "no sudo, no find", "no sudo", "no sudo, no find"}, got); diff != "" || row.Changed {
		t.Errorf("changed %v: %s", row.Changed, diff)
	}
}

// A model is asked for when a judge needs it.
func TestReplayWithoutAModel(t *testing.T) {
	s, _ := pastWorld(t)
	s.evaluate(bash)
	draft := fileOf(t, "draft.json", stricterSpec)
	replay := func(args ...string) (code int, out, errs string) {
		var stdout, stderr bytes.Buffer
		p := process{ctx: t.Context(), stdout: &stdout, stderr: &stderr, getenv: func(name string) string {
			return map[string]string{"STOPGATE_SERVER": s.url, "OLLAMA_HOST": "127.0.0.1:1"}[name]
		}}
		code = run(p, append([]string{"replay", "--sandbox", "process", "-f", draft}, args...))
		return code, stdout.String(), stderr.String()
	}
	if code, out, errs := replay(); code != exitDone || !strings.Contains(out, "1 evaluation replayed, 0 changed\n") {
		t.Errorf("none is needed: exit %d: %s%s", code, out, errs)
	}
	s.evaluate(`{"hook_event_name":"Stop","agent_name":"a","final_output":"x"}`)
	code, out, errs := replay()
	for _, want := range []string{`hook "done": ` + noModel, "1 evaluation replayed, 0 changed; 1 could not be replayed (1 model_unavailable)\n"} {
		if code != exitDone || !strings.Contains(out, want) {
			t.Errorf("one needs it: exit %d: no %q in\n%s%s", code, want, out, errs)
		}
	}
	if code, out, errs := replay("--event", "Stop"); code != exitUnreachable || !strings.Contains(errs, noModel) {
		t.Errorf("all need it: exit %d: %s%s", code, out, errs)
	}
}

// A decision that changes since a hook went into shadow names the hook.
func TestReplayIntoShadow(t *testing.T) {
	s, _ := pastWorld(t)
	s.evaluate(strings.Replace(bash, "ls", "sudo reboot", 1))
	shadow := fileOf(t, "draft.json", strings.Replace(judgedSpec, `"timeout":10`, `"timeout":10,"mode":"shadow"`, 1))
	_, out, _ := s.replayed(t.Context(), "-f", shadow)
	if want := "  block→allow\n    shell: block→block (shadow)\n        was: no sudo\n        now: no sudo\n"; !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
}

// A decision of the gate's own, which no hook explains, tells its reasons.
func TestReplayPrintsReasonsWithoutAHook(t *testing.T) {
	row := replayRow{Event: gate.Stop, EvaluationID: "e", Agent: "a"}
	row.compare(gate.Decision{Outcome: gate.Block, Reason: "the store is away"}, gate.Decision{Outcome: gate.Allow}, hookNames{})
	var b strings.Builder
	row.print(&b)
	if want := "block→allow\n    was: the store is away\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("no %q in %q", want, b.String())
	}
}

// What a list is cut to is said as it is.
func TestReplayTellsOfMore(t *testing.T) {
	s, _ := pastWorld(t)
	for range 3 {
		s.evaluate(bash)
	}
	draft := fileOf(t, "draft.json", stricterSpec)
	for order, args := range map[string][]string{"newest": nil, "first": {"--from", fileOf(t, "export.ndjson", s.export())}} {
		_, out, _ := s.replayed(t.Context(), append(args, "-f", draft, "--limit", "2")...)
		if want := "There are more: this is of the " + order + " 2 (--limit).\n"; !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// Records from before there was redaction are shown as newer ones are, by the
// server file's patterns, and so is what a script says of them.
func TestReplayShowsNoSecrets(t *testing.T) {
	const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	s, data := pastWorld(t)
	s.evaluate(strings.Replace(bash, "ls", "sudo BLUEBIRD-4711", 1))
	old := strings.ReplaceAll(s.export(), "no sudo", "no sudo of "+secret+" by BLUEBIRD-4711")
	draft := hooksOf(t, `{"name":"shell","type":"rule","matcher":"Bash","rules":[{"if":"true","then":"ask","reason":"{{ tool_input.command }}"}]}`)
	own := fileOf(t, "stopgate.yaml", "redaction: {patterns: {bird: \"BLUEBIRD-[0-9]+\"}}\n")
	from := fileOf(t, "old.ndjson", old)
	for _, form := range [][]string{nil, {"--json"}} {
		_, out, _ := s.replayed(t.Context(), append(form, "-f", draft, "--from", from, "--config", own)...)
		if strings.Contains(out, "ghp_") || strings.Contains(out, "4711") || !strings.Contains(out, "[redacted:github_token]") || strings.Count(out, "[redacted:bird]") < 2 {
			t.Errorf("%q: %s", form, out)
		}
	}
	if _, out, _ := s.replayed(t.Context(), "-f", draft, "--data", data, "--config", own); strings.Contains(out, "4711") || !strings.Contains(out, "sudo [redacted:bird]") {
		t.Errorf("data directory: %s", out)
	}
}

// Rows of one look come in the order in which their evaluations began, however long
// each takes.
func TestReplayFollowsInOrder(t *testing.T) {
	s, _ := pastWorld(t)
	draft := hooksOf(t, `{"name":"shell","type":"command","matcher":"Bash","timeout":30,"script":"#!/bin/bash\nif grep -q slow; then sleep 2; fi\nexit 2\n"}`)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, began := &shownText{seen: make(chan string, 100)}, &shownText{seen: make(chan string, 100)}
	p := process{ctx: ctx, stdout: out, stderr: began, getenv: s.getenv()}
	ended := make(chan int, 1)
	go func() { ended <- run(p, []string{"replay", "--sandbox", "process", "--follow", "-f", draft}) }()
	began.await(t, "Following")
	var want []string
	for _, command := range []string{"slow", "ls", "pwd"} {
		want = append(want, s.evaluate(strings.Replace(bash, "ls", command, 1)).EvaluationID)
	}
	out.await(t, want[2])
	stop()
	<-ended
	var got []string
	for _, row := range regexp.MustCompile(`(?m)^\d\S+  (\S+)`).FindAllStringSubmatch(out.text.String(), -1) {
		got = append(got, row[1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
