package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// Two versions of the agent "a", with a judge on Stop and a script on PreToolUse.
const (
	judgedSpec = `{"name":"a","properties":{"hooks":{"Stop":[{"name":"done","type":"prompt","prompt":"Is it done?"}],
	"PreToolUse":[{"name":"shell","type":"command","matcher":"Bash","timeout":10,"script":"#!/bin/bash\nif grep -q sudo; then echo no sudo >&2; exit 2; fi\n"}]}}}`
	stricterSpec = `{"name":"a","properties":{"hooks":{"Stop":[{"name":"done","type":"prompt","prompt":"Is it done and tested?"}],
	"PreToolUse":[{"name":"shell","type":"command","matcher":"Bash","timeout":10,"script":"#!/bin/bash\nif grep -qE 'sudo|-delete'; then echo no sudo, no find >&2; exit 2; fi\n"}]}}}`
)

// pastWorld is a service whose agent "a" has worked.
func pastWorld(t *testing.T) (s *service, data string) {
	t.Helper()
	data = t.TempDir()
	s = newServiceWith(t, data, fileOf(t, "stopgate.yaml", "sandbox: {mode: process}\n"))
	s.answer = func(string) string { return `{"ok":false,"reason":"not done"}` }
	if status, body := s.do(http.MethodPut, agents+"a", "application/json", []byte(judgedSpec)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, body)
	}
	return s, data
}

func (s *service) say(session, text string) {
	s.t.Helper()
	line, _ := json.Marshal(map[string]string{"role": "user", "content": text})
	if status, body := s.do(http.MethodPost, "/v1/sessions/"+session+"/transcript?agent=a", "application/x-ndjson", line); status != http.StatusOK {
		s.t.Fatalf("%d %s", status, body)
	}
}

func fileOf(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, text)
	return path
}

// replayed runs the command as that server's neighbour.
func (s *service) replayed(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	var out, errs bytes.Buffer
	p := process{ctx: ctx, stdout: &out, stderr: &errs, getenv: s.getenv()}
	code = run(p, append([]string{"replay", "--sandbox", "process"}, args...))
	return code, out.String(), errs.String()
}

// getenv is an environment in which the server and its model are found.
func (s *service) getenv() func(string) string {
	model := httptest.NewServer(scriptedGemini(func(request string) string {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, request)
		return s.answer(request)
	}))
	s.t.Cleanup(model.Close)
	home := s.t.TempDir()
	return func(name string) string {
		return map[string]string{"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": model.URL, "STOPGATE_SERVER": s.url, "HOME": home,
			"PATH": os.Getenv("PATH")}[name]
	}
}

// asked are the requests to the model since the last call.
func (s *service) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.requests
	s.requests = nil
	return all
}

func (s *service) report(args ...string) replayReport {
	s.t.Helper()
	code, out, errs := s.replayed(s.t.Context(), append(args, "--json")...)
	var r replayReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitDone {
		s.t.Fatalf("exit %d: %v: %s%s", code, err, out, errs)
	}
	return r
}

// export writes the server's evaluations as an export has them.
func (s *service) export() string {
	s.t.Helper()
	var list struct{ Value []gate.RecordSummary }
	_, body := s.do(http.MethodGet, "/v1/evaluations?limit=1000", "", nil)
	if err := json.Unmarshal(body, &list); err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range slices.Backward(list.Value) {
		_, record := s.do(http.MethodGet, "/v1/evaluations/"+r.EvaluationID, "", nil)
		b.Write(bytes.TrimSpace(record))
		b.WriteByte('\n')
	}
	return b.String()
}

// Each evaluation is asked again as it was: with the conversation up to where it
// was then, and the counts of then, from wherever it is recorded; and the ledger
// stays as it is (fault G51).
func TestReplayAsksAsItWas(t *testing.T) {
	s, data := pastWorld(t)
	s.say("s", "Please restart web.")
	stop := `{"hook_event_name":"Stop","agent_name":"a","session_id":"s","final_output":"Done."}`
	if d := s.evaluate(stop); d.Outcome != gate.Block {
		t.Fatal(d)
	}
	s.say("s", "And worker too.")
	s.answer = func(string) string { return `{"ok":true}` }
	s.evaluate(stop)
	s.say("s", "Thanks, that is all.")
	s.answer = func(request string) string { // the stricter judge wants the worker, and is never content at first
		if strings.Contains(request, "And worker too.") && strings.Contains(request, `stop_rejection_count\":1`) {
			return `{"ok":false,"reason":"not tested"}`
		}
		return `{"ok":true}`
	}
	_, before := s.do(http.MethodGet, "/v1/sessions/s", "", nil)
	draft := fileOf(t, "draft.json", stricterSpec)
	for name, source := range map[string][]string{"server": nil, "data directory": {"--data", data}} {
		t.Run(name, func(t *testing.T) {
			s.asked()
			r := s.report(append(source, "-f", draft)...)
			if want := map[string]int{"block→allow": 1, "allow→block": 1}; cmp.Diff(want, r.Decisions) != "" || r.Replayed != 2 || r.Changed != 2 {
				t.Errorf("%+v", r)
			}
			for _, request := range s.asked() {
				if !strings.Contains(request, "Please restart web.") || !strings.Contains(request, "done and tested") || strings.Contains(request, "that is all") {
					t.Errorf("asked %s", request)
				}
			}
			if h := r.Hooks["done"]; h.Was.Usage.Calls != 2 || h.Now.Usage.Calls != 2 || h.Now.Usage.PromptTokens != 200 {
				t.Errorf("%+v", h)
			}
		})
	}
	if _, after := s.do(http.MethodGet, "/v1/sessions/s", "", nil); string(after) != string(before) {
		t.Errorf("the session was %s, and is %s", before, after)
	}
}

// A new hook is tried on Stops that no hook was about, of a host whose
// conversation lies in a file that has grown since; one that is only in an older
// record is not there.
func TestReplayOfAHostWithoutHooks(t *testing.T) {
	s, _ := pastWorld(t)
	if status, body := s.do(http.MethodPut, agents+"b", "application/json", []byte(`{"name":"b","properties":{}}`)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, body)
	}
	line := func(id, parent, kind, text string) string {
		return fmt.Sprintf(`{"parentUuid":%s,"type":%q,"uuid":%q,"message":{"role":%q,"content":%q}}`+"\n", parent, kind, id, kind, text)
	}
	path := filepath.Join(s.transcriptRoot, "host.jsonl")
	then := line("1", "null", "user", "Please restart web.") + line("2", `"1"`, "assistant", "It is restarted.")
	write(t, path, then)
	payload := `{"hook_event_name":"Stop","session_id":"h","transcript_path":"` + path + `","cwd":"/srv"}`
	if status, body := s.do(http.MethodPost, "/v1/hooks/claude-code?agent=b", "application/json", []byte(payload)); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	write(t, path, then+line("3", `"2"`, "user", "Thanks.")+line("4", `"3"`, "assistant", "Not at all."))
	draft := fileOf(t, "draft.json", strings.Replace(stricterSpec, `"a"`, `"b"`, 1))
	cfg := fileOf(t, "stopgate.yaml", "transcripts: {roots: ["+s.transcriptRoot+"]}\n")
	r := s.report("-f", draft, "--config", cfg)
	requests := s.asked()
	if r.Decisions["allow→block"] != 1 || len(requests) != 1 {
		t.Fatalf("%d requests: %+v", len(requests), r)
	}
	if !strings.Contains(requests[0], `final_output\":\"It is restarted.`) || !strings.Contains(requests[0], "Please restart web.") || strings.Contains(requests[0], "Thanks.") {
		t.Errorf("asked %s", requests[0])
	}
	old := strings.Replace(s.export(), `"asked":`, `"not_asked":`, 1)
	code, out, _ := s.replayed(t.Context(), "-f", draft, "--config", cfg, "--from", fileOf(t, "export.ndjson", old))
	if code != exitInput || len(s.asked()) > 0 || !strings.Contains(out, "1 transcript_unreadable") {
		t.Errorf("an older record: exit %d: %s", code, out)
	}
}

// A conversation that is gone, or another by now, is not judged in the place of
// the one of then; hooks that do not read it are asked all the same.
func TestReplayOfALostConversation(t *testing.T) {
	s, _ := pastWorld(t)
	s.say("s", "Please restart web.")
	s.evaluate(`{"hook_event_name":"Stop","agent_name":"a","session_id":"s","final_output":"Done."}`)
	s.evaluate(`{"hook_event_name":"PreToolUse","agent_name":"a","session_id":"s","tool_name":"Bash","tool_input":{"command":"find /srv -delete"}}`)
	path := filepath.Join(s.transcriptRoot, "talk.txt")
	write(t, path, "user: hello\n")
	s.evaluate(`{"hook_event_name":"Stop","agent_name":"a","final_output":"Done.","execution_summary":"` + path + `"}`)
	draft := fileOf(t, "draft.json", stricterSpec)
	cfg := fileOf(t, "stopgate.yaml", "transcripts: {roots: ["+s.transcriptRoot+"]}\n")
	others := fileOf(t, "stopgate.yaml", "transcripts: {roots: ["+t.TempDir()+"]}\n")
	check := func(name string, want map[string]int, args ...string) {
		t.Helper()
		s.asked()
		r := s.report(append(args, "-f", draft)...)
		if diff := cmp.Diff(want, r.Obstacles); diff != "" || r.Decisions["allow→block"] != 1 {
			t.Errorf("%s: %s\n%+v", name, diff, r)
		}
		if n := len(s.asked()); n != 2-want["transcript_unreadable"] {
			t.Errorf("%s: the model was asked %d times", name, n)
		}
	}
	check("all there", map[string]int{}, "--config", cfg)
	check("export, uploaded", map[string]int{"transcript_unreadable": 1}, "--config", cfg, "--from", fileOf(t, "export.ndjson", s.export()))
	check("outside of the roots", map[string]int{"transcript_unreadable": 1}, "--config", others)
	write(t, path, "user: hello\nassistant: it has grown\n")
	check("grown", map[string]int{}, "--config", cfg)
	write(t, path, "user: HELLO\nassistant: it has grown\n")
	check("changed", map[string]int{"transcript_unreadable": 1}, "--config", cfg)
	s.do(http.MethodPut, "/v1/sessions/s/transcript?agent=a", "text/plain", []byte("something else\n"))
	check("both", map[string]int{"transcript_unreadable": 2}, "--config", cfg)
}

// What a model said once is enough, as long as the same is asked.
func TestReplayFromARecording(t *testing.T) {
	s, _ := pastWorld(t)
	s.say("s", "Please restart web.")
	for range 2 {
		s.evaluate(`{"hook_event_name":"Stop","agent_name":"a","session_id":"s","final_output":"Done."}`)
	}
	s.answer = func(string) string { return `{"ok":true}` }
	draft, kept := fileOf(t, "draft.json", stricterSpec), filepath.Join(t.TempDir(), "answers")
	args := []string{"-f", draft, "--against", fileOf(t, "old.json", judgedSpec)}
	first := s.report(append(args, "--record", kept)...)
	if s.asked(); first.Compared != "against" || first.Replayed != 2 || first.Changed != 0 {
		t.Errorf("%+v", first)
	}
	again := s.report(append(args, "--replay", kept)...)
	if n := len(s.asked()); n > 0 || again.Replayed != 2 || again.Hooks["done"].Now.Usage != first.Hooks["done"].Now.Usage {
		t.Errorf("the model was asked %d times: %+v", n, again)
	}
	code, out, _ := s.replayed(t.Context(), "-f", fileOf(t, "other.json", strings.ReplaceAll(stricterSpec, "tested", "proven")), "--replay", kept)
	if code != exitInput || len(s.asked()) > 0 || !strings.Contains(out, "2 could not be replayed (2 not_recorded)") {
		t.Errorf("another draft: exit %d: %s", code, out)
	}
}

// An export may be cut, and hold anything.
func TestReplayOfAHostileExport(t *testing.T) {
	s, _ := pastWorld(t)
	for _, command := range []string{"sudo reboot", "find / -delete", "ls"} {
		s.evaluate(`{"hook_event_name":"PreToolUse","agent_name":"a","tool_name":"Bash","tool_input":{"command":"` + command + `"}}`)
	}
	whole := s.export()
	lines := strings.SplitAfter(whole, "\n")
	draft := fileOf(t, "draft.json", stricterSpec)
	changed := func(old, new string) string { return strings.Replace(lines[0], old, new, 1) }
	tests := []struct {
		name, text string
		replayed   int
		obstacles  map[string]int
	}{
		{"whole", whole + `{"complete":true,"evaluations":3}` + "\n", 3, map[string]int{}},
		{"cut", whole[:len(whole)-200], 2, map[string]int{"bad_line": 1}},
		{"no JSON", "\x00\xff\n" + whole, 3, map[string]int{"bad_line": 1}},
		{"another thing", "[1]\n{\"a\":1}\n\n" + whole, 3, map[string]int{"bad_line": 2}},
		{"a line broken in two", whole[:300] + "\n" + whole[300:], 2, map[string]int{"bad_line": 2}},
		{"two lines in one", strings.Replace(whole, "\n", "", 1), 1, map[string]int{"bad_line": 1}},
		{"twice", whole + whole, 3, map[string]int{}},
		{"twice, and edited", whole + changed(`"decision":"block"`, `"decision":"allow"`), 3, map[string]int{"bad_line": 1}},
		{"no protocol of ours", changed(`"protocol":"native"`, `"protocol":"../x"`) + lines[1], 1, map[string]int{"bad_record": 1}},
		{"another event", changed(`"event":"PreToolUse"`, `"event":"Stop"`) + lines[1], 1, map[string]int{"bad_record": 1}},
		{"no payload", changed(`"payload":`, `"load":`) + lines[1], 1, map[string]int{"bad_record": 1}},
		{"of a later version", changed(`"protocol"`, `"new_member":{"x":[1]},"protocol"`) + lines[1], 2, map[string]int{}},
		{"a line too long", `{"a":"` + strings.Repeat("x", maxRecord) + "\"}\n" + whole, 3, map[string]int{"bad_line": 1}},
		{"a payload that is deep", changed(`"tool_input":{`, `"deep":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`,"tool_input":{`) + lines[1], 1, map[string]int{"bad_line": 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, out, errs := s.replayed(t.Context(), "-f", draft, "--from", fileOf(t, "export.ndjson", test.text), "--json")
			var r replayReport
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatalf("exit %d: %v: %s%s", code, err, out, errs)
			}
			if want := map[bool]int{true: exitInput}[r.Obstacles["bad_line"] > 0]; code != want {
				t.Errorf("exit %d, want %d: %s", code, want, errs)
			}
			if diff := cmp.Diff(test.obstacles, r.Obstacles); diff != "" || r.Replayed != test.replayed {
				t.Errorf("%d replayed: %s", r.Replayed, diff)
			}
		})
	}
	for name, text := range map[string]string{"empty": "", "nothing in it": strings.Repeat("\n", 1000), "another agent": strings.ReplaceAll(whole, `"agent":"a"`, `"agent":"b"`)} {
		if code, _, _ := s.replayed(t.Context(), "-f", draft, "--from", fileOf(t, "export.ndjson", text)); code != exitInput {
			t.Errorf("%s: exit %d", name, code)
		}
	}
	export := fileOf(t, "export.ndjson", whole+lines[1]+"\n{\n"+lines[0][:100]+"\n"+strings.Replace(lines[2], `"command":"ls"`, `"command":"id"`, 1)+lines[1])
	code, out, errs := s.replayed(t.Context(), "-f", draft, "--from", export)
	for _, want := range []string{"Not replayed for bad_line, line 6: ", "Not replayed for bad_line, line 7: the record is cut off\n",
		"stands in line 3 too, and they differ\n", "Left out: 2 lines of the export that another has, word for word (line 4 is line 2 again).\n", "3 evaluations replayed, 1 changed"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if code != exitInput || !strings.Contains(errs, "3 lines without a recorded evaluation") {
		t.Errorf("lines that are no records: exit %d: %s", code, errs)
	}
	if code, _, _ := s.replayed(t.Context(), "-f", draft, "--from", "/dev/null"); code != exitInput {
		t.Errorf("a device: exit %d", code)
	}
}

// What the report prints, and how the command ends.
func TestReplayPrints(t *testing.T) {
	s, _ := pastWorld(t)
	d := s.evaluate(`{"hook_event_name":"PreToolUse","agent_name":"a","tool_name":"Bash","tool_input":{"command":"find / -delete"}}`)
	s.evaluate(`{"hook_event_name":"PreToolUse","agent_name":"a","tool_name":"Bash","tool_input":{"command":"ls"}}`)
	draft := fileOf(t, "draft.json", stricterSpec)
	code, out, errs := s.replayed(t.Context(), "-f", draft, "--exit-code")
	for _, want := range []string{d.EvaluationID + "  a  PreToolUse Bash  allow→block\n    shell: allow→block\n        now: no sudo, no find\n        time ",
		"HOOK   WAS      NOW               CHANGED        CALLS  TOKENS  COST  TIME\nshell  2 allow  1 allow, 1 block  1 allow→block  0      0       -     ", "2 evaluations replayed, 1 changed (1 allow→block)\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if code != exitFindings || errs != "" {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, out, _ = s.replayed(t.Context(), "-f", fileOf(t, "same.json", judgedSpec), "--exit-code"); code != exitDone || !strings.Contains(out, " 0 changed\n") {
		t.Errorf("the same hooks: exit %d: %s", code, out)
	}
	less := fileOf(t, "less.json", `{"name":"a","properties":{"hooks":{"Stop":[{"name":"done","type":"prompt","prompt":"Is it done?"}]}}}`)
	if code, out, _ = s.replayed(t.Context(), "-f", less); code != exitDone || !strings.Contains(out, `The draft has no hook "shell", which took part in 2 evaluations`) {
		t.Errorf("a hook less: exit %d: %s", code, out)
	}
	for name, args := range map[string][]string{"session": {"--session", "x"}, "event": {"--event", "Stop"}, "decision": {"--decision", "block"},
		"hook": {"--hook", "done"}, "since": {"--since", "0s"}, "until": {"--until", "1d"}, "agent": {"--agent", "b"}} {
		if code, _, errs := s.replayed(t.Context(), append(args, "-f", draft)...); code != exitInput || !strings.Contains(errs, "no evaluation is picked") {
			t.Errorf("%s: exit %d: %s", name, code, errs)
		}
		if code, _, errs := s.replayed(t.Context(), append(args, "-f", draft, "--from", fileOf(t, "export.ndjson", s.export()))...); code != exitInput || !strings.Contains(errs, "no evaluation is picked") {
			t.Errorf("%s, export: exit %d: %s", name, code, errs)
		}
	}
	if r := s.report("-f", draft, "--limit", "1"); r.Found != 1 || r.Changed != 0 || !r.More {
		t.Errorf("the newest alone: %+v", r)
	}
}

// What cannot be undone is not done again: no request leaves for a hook that is a
// server, unless that is asked for.
func TestReplaySendsNothing(t *testing.T) {
	var got atomic.Int32
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		got.Add(1)
		_, _ = io.WriteString(w, `{"decision":"block","reason":"the server says no"}`)
	}))
	t.Cleanup(hook.Close)
	s, _ := pastWorld(t)
	s.evaluate(`{"hook_event_name":"PreToolUse","agent_name":"a","tool_name":"Bash","tool_input":{"command":"ls"}}`)
	draft := fileOf(t, "settings.json", `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"http","url":"`+hook.URL+`"}]}]}}`)
	code, out, _ := s.replayed(t.Context(), "-f", draft, "--agent", "a")
	if got.Load() > 0 || code != exitInput || !strings.Contains(out, "1 http_hook") {
		t.Errorf("%d requests, exit %d: %s", got.Load(), code, out)
	}
	cfg := fileOf(t, "stopgate.yaml", "http_hooks: {allow: ["+strings.TrimPrefix(hook.URL, "http://")+"]}\n")
	r := s.report("-f", draft, "--agent", "a", "--http", "--config", cfg)
	if got.Load() != 1 || r.Decisions["allow→block"] != 1 {
		t.Errorf("%d requests: %+v", got.Load(), r)
	}
}

// What was done by the time of Ctrl-C is reported, and the report says that it is
// not all.
func TestReplayInterrupted(t *testing.T) {
	s, _ := pastWorld(t)
	for i := range 5 {
		s.evaluate(fmt.Sprintf(`{"hook_event_name":"Stop","agent_name":"a","final_output":"%d"}`, i))
	}
	ctx, stop := context.WithCancel(t.Context())
	n := 0
	s.answer = func(string) string {
		if n++; n == 3 {
			stop()
		}
		return `{"ok":true}`
	}
	code, out, errs := s.replayed(ctx, "-f", fileOf(t, "draft.json", stricterSpec), "--parallel", "1")
	if code != exitInternal || !strings.Contains(out, "PARTIAL") || !strings.Contains(out, "2 evaluations replayed") || !strings.Contains(errs, "2 evaluations of 5") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// A server that goes away, or refuses, is an error, never an answer.
func TestReplayWithoutServerOrModel(t *testing.T) {
	s, _ := pastWorld(t)
	draft := fileOf(t, "draft.json", stricterSpec)
	if code, _, errs := s.replayed(t.Context(), "-f", draft, "--server", "http://127.0.0.1:1"); code != exitUnreachable {
		t.Errorf("no server: exit %d: %s", code, errs)
	}
	if code, _, errs := s.replayed(t.Context(), "-f", draft, "--data", filepath.Join(t.TempDir(), "none")); code != exitInput {
		t.Errorf("no directory: exit %d: %s", code, errs)
	}
	s.evaluate(`{"hook_event_name":"Stop","agent_name":"a","final_output":"x"}`)
	s.answer = func(string) string { return "" } // status 400
	if code, out, _ := s.replayed(t.Context(), "-f", draft); code != exitInput || !strings.Contains(out, "1 model_unavailable") || !strings.Contains(out, "0 changed") {
		t.Errorf("a model that fails: exit %d: %s", code, out)
	}
}

// What the server decides from now on is put to the draft as it comes; --shadow is
// the same.
func TestReplayFollows(t *testing.T) {
	draft := fileOf(t, "draft.json", stricterSpec)
	for name, args := range map[string][]string{"follow": {"-f", draft, "--follow"}, "shadow": {"--shadow", draft}} {
		t.Run(name, func(t *testing.T) {
			s, _ := pastWorld(t)
			s.evaluate(`{"hook_event_name":"PreToolUse","agent_name":"a","tool_name":"Bash","tool_input":{"command":"find /old -delete"}}`)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			out, began := &shownText{seen: make(chan string, 100)}, &shownText{seen: make(chan string, 100)}
			p := process{ctx: ctx, stdout: out, stderr: began, getenv: s.getenv()}
			ended := make(chan int, 1)
			go func() {
				ended <- run(p, append([]string{"replay", "--sandbox", "process", "--exit-code"}, args...))
			}()
			began.await(t, "Following")
			d := s.evaluate(`{"hook_event_name":"PreToolUse","agent_name":"a","tool_name":"Bash","tool_input":{"command":"find /new -delete"}}`)
			out.await(t, d.EvaluationID+"  a  PreToolUse Bash  allow→block")
			stop()
			if code := <-ended; code != exitFindings {
				t.Errorf("exit %d", code)
			}
			out.await(t, "1 evaluation replayed, 1 changed")
		})
	}
}

// shownText is what a command prints while it runs.
type shownText struct {
	mu   sync.Mutex
	text strings.Builder
	seen chan string
}

func (s *shownText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	select {
	case s.seen <- s.text.String():
	default:
	}
	return len(p), nil
}

func (s *shownText) await(t *testing.T, want string) {
	t.Helper()
	late := time.After(time.Minute)
	for text := ""; !strings.Contains(text, want); {
		select {
		case text = <-s.seen:
		case <-late:
			t.Fatalf("no %q in %q", want, text)
		}
	}
}
