package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stopgate/gate"
)

// runTests runs `stopgate test` in process.
func runTests(t testing.TB, ctx context.Context, c testCommand) (stdout string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	p := process{ctx: ctx, stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(name string) string {
		return map[string]string{"HOME": t.TempDir(), "PATH": os.Getenv("PATH"), "OLLAMA_HOST": "127.0.0.1:1"}[name]
	}}
	code = report(p, c.Run(p))
	return out.String() + errs.String(), code
}

// Every example passes its own tests, and each of its hooks is asked.
func TestExamplesPassTheirTests(t *testing.T) {
	out, code := runTests(t, t.Context(), testCommand{Paths: []string{"../../examples"}, Cover: true})
	if code != exitDone || strings.Contains(out, "never asked") {
		t.Errorf("exit %d\n%s", code, out)
	}
	specs, err := filepath.Glob("../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range specs {
		if strings.HasSuffix(path, ".test.yaml") {
			continue
		}
		if want := strings.TrimSuffix(filepath.Base(path), ".yaml") + ".test.yaml"; !strings.Contains(out, want) {
			t.Errorf("%s has no %s", path, want)
		}
	}
}

// What --init writes for the examples passes, but for the cases that somebody has to
// fill in: they fail.
func TestInitOfExamples(t *testing.T) {
	specs, err := filepath.Glob("../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, path := range specs {
		if strings.HasSuffix(path, ".test.yaml") {
			continue
		}
		copied := filepath.Join(dir, filepath.Base(path))
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(copied, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if out, code := runTests(t, t.Context(), testCommand{Init: copied}); code != exitDone {
			t.Errorf("%s: exit %d\n%s", path, code, out)
		}
		written := strings.TrimSuffix(copied, ".yaml") + ".test.yaml"
		text, err := os.ReadFile(written)
		if err != nil {
			t.Fatal(err)
		}
		fill := strings.Count(string(text), "# FILL IN")
		out, code := runTests(t, t.Context(), testCommand{Paths: []string{written}})
		if failed := strings.Count(out, "--- FAIL"); failed != fill || (code == exitDone) != (fill == 0) {
			t.Errorf("%s: exit %d, %d failed, %d to be filled in\n%s", path, code, failed, fill, out)
		}
	}
}

// A recorded Stop becomes a case, conversation and all: what was said is had as messages,
// without secrets, and a rule that asks who called what is answered as it was then.
func TestRecordedStopBecomesACase(t *testing.T) {
	const spec = `{"name":"a","properties":{"hooks":{"Stop":[{"name":"tested","type":"rule","failMode":"block",
		"rules":[{"if":"!('Bash' in tools_used)","then":"block","reason":"Run the tests."}]}]}}}`
	s := newService(t)
	s.want(202, "PUT", agents+"a", spec)
	said := `{"role":"user","content":"Test it."}` + "\n" + `{"role":"assistant","tool_calls":[{"id":"1","name":"Bash","arguments":{"command":"make test"}}]}`
	if status, body := s.do("POST", "/v1/sessions/s/transcript?agent=a", "application/x-ndjson", []byte(said)); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	d := s.evaluate(`{"hook_event_name":"Stop","agent_name":"a","session_id":"s","final_output":"Done."}`)
	if d.Outcome != gate.Allow || d.Degraded {
		t.Fatalf("decision is %+v", d)
	}
	s.say("s", "Now something else.") // of which the hook did not know
	dir := t.TempDir()
	record := s.want(200, "GET", "/v1/evaluations/"+d.EvaluationID, "")
	kind, messages := s.messagesOf(d)
	if kind != "application/x-ndjson" || strings.Count(messages, "\n") != 2 {
		t.Fatalf("%s\n%s", kind, messages)
	}
	// What was uploaded as text stays text: who said what nobody knows.
	if status, body := s.do("PUT", "/v1/sessions/plain/transcript?agent=a", "text/plain", []byte("=== user ===\nTest it.\n")); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	plain := s.evaluate(`{"hook_event_name":"Stop","agent_name":"a","session_id":"plain","final_output":"Done."}`)
	if kind, text := s.messagesOf(plain); !strings.HasPrefix(kind, "text/plain") || text != "=== user ===\nTest it.\n" {
		t.Errorf("%s\n%s", kind, text)
	}
	for name, text := range map[string]string{"a.json": spec, "event.json": record, "talk.ndjson": messages,
		"claude.json": strings.Replace(strings.Replace(record, `"protocol":"native"`, `"protocol":"claude-code"`, 1), `"final_output"`, `"last_assistant_message"`, 1),
		"a.test.yaml": "tests:\n  - {name: then, event_file: event.json, transcript_file: talk.ndjson, want: allow}\n" +
			"  - {name: of a host, event_file: claude.json, transcript_file: talk.ndjson, want: allow}\n" +
			"  - {name: without it, event_file: event.json, want: {decision: block, errors: [bad_expression]}}\n"} {
		write(t, filepath.Join(dir, name), text)
	}
	if out, code := runTests(t, t.Context(), testCommand{Paths: []string{dir}}); code != exitDone {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// messagesOf asks for an evaluation's conversation as messages.
func (s *service) messagesOf(d gate.Decision) (contentType, text string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/v1/evaluations/"+d.EvaluationID+"/transcript", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/x-ndjson, */*;q=0.1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%d %v %s", resp.StatusCode, err, body)
	}
	return resp.Header.Get("Content-Type"), string(body)
}

// Where no sandbox works, the tests of command hooks fail: a hook that was not
// asked is no hook that allows.
func TestCasesFailWithoutSandbox(t *testing.T) {
	out, code := runTests(t, t.Context(), testCommand{Paths: []string{"../../examples/marker.test.yaml"}, Only: "with the marker", Sandbox: "off"})
	if code != exitFindings || !strings.Contains(out, "sandbox_unavailable") {
		t.Errorf("exit %d\n%s", code, out)
	}
	dir := t.TempDir()
	data, err := os.ReadFile("../../examples/marker.yaml")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "marker.yaml"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, code = runTests(t, t.Context(), testCommand{Init: filepath.Join(dir, "marker.yaml"), Sandbox: "off"})
	if _, err := os.Stat(filepath.Join(dir, "marker.test.yaml")); code != exitInput || err == nil {
		t.Errorf("exit %d, file %v\n%s", code, err, out)
	}
}

// A case that is interrupted has neither passed nor failed.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out, code := runTests(t, ctx, testCommand{Paths: []string{"../../examples/completeness.test.yaml"}})
	if code != exitInternal || strings.Contains(out, "ok") || !strings.Contains(out, "interrupted") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// What a hook leaves is read without following it out of its directory.
func TestLeftFilesAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"link", "../secret", "."} {
		if text, err := readLeft(root, name); err == nil {
			t.Errorf("%s is %q", name, text)
		}
	}
}

// The server has the schemas that the examples name: all that lie in schemas/.
func TestServerHasSchemas(t *testing.T) {
	s := newService(t)
	var names []string
	for name := range schemas() {
		names = append(names, name)
		want, err := os.ReadFile("../../schemas/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if status, got := s.do("GET", "/schemas/"+name+".json", "", nil); status != 200 || !bytes.Equal(got, want) {
			t.Errorf("%s: %d %.100s", name, status, got)
		}
	}
	files, err := filepath.Glob("../../schemas/*")
	if err != nil || len(files) != len(names) {
		t.Errorf("the server has %q, schemas/ %q, error %v", names, files, err)
	}
	api, err := os.ReadFile("../../server/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !regexp.MustCompile(`name: file,.*[ \[]` + name + `\.json`).Match(api) {
			t.Errorf("server/openapi.yaml does not have %s.json", name)
		}
	}
}

// The ledger of a case settles with the counts as they are, as a store does.
func TestCaseLedgerSettlesWithWhatIsThere(t *testing.T) {
	l := newCaseLedger()
	key := gate.LedgerKey{Agent: "a", Session: "s"}
	rejected := func(now gate.Counts) (gate.Counts, gate.Record) { now.StopRejections++; return now, gate.Record{} }
	for want := 1; want <= 2; want++ { // the second has not seen what the first counted
		if err := l.Commit(t.Context(), gate.Commit{Key: key, Settle: rejected}); err != nil {
			t.Fatal(err)
		}
		if counts, _, err := l.Counts(t.Context(), key); err != nil || counts.StopRejections != want {
			t.Errorf("counts are %+v, error %v, want %d", counts, err, want)
		}
	}
	stale := gate.Commit{Key: key, Settle: rejected, Stale: func(gate.Counts) bool { return true }}
	if err := l.Commit(t.Context(), stale); !errors.Is(err, gate.ErrStale) {
		t.Errorf("error is %v", err)
	}
	if err := l.Commit(t.Context(), gate.Commit{Key: gate.LedgerKey{Agent: "a"}, Settle: rejected}); err != nil {
		t.Fatal(err)
	}
	if counts, _, _ := l.Counts(t.Context(), gate.LedgerKey{Agent: "a"}); counts != (gate.Counts{}) {
		t.Errorf("without a session %+v was counted", counts)
	}
}

// BenchmarkTest100Cases is a file of 100 cases that ask no model and start no
// process, whole: read, run and reported.
func BenchmarkTest100Cases(b *testing.B) {
	dir := b.TempDir()
	var cases strings.Builder
	cases.WriteString("tests:\n")
	for i := range 50 {
		fmt.Fprintf(&cases, "  - {name: refused %d, event: {hook_event_name: PreToolUse, tool_name: Bash, tool_input: {command: rm -rf /srv}}, want: block}\n", i)
		fmt.Fprintf(&cases, "  - {name: let go %d, event: {hook_event_name: PreToolUse, tool_name: Bash, tool_input: {command: ls /srv}}, want: allow}\n", i)
	}
	spec := `{"name":"a","properties":{"hooks":{"PreToolUse":[{"name":"r","type":"rule","matcher":"Bash","rules":[
	{"if":"shell(tool_input.command).exists(c, c.program == \"rm\")","then":"block","reason":"no"}]}]}}}`
	for name, text := range map[string]string{"rule.test.yaml": cases.String(), "rule.json": spec} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if out, code := runTests(b, b.Context(), testCommand{Paths: []string{dir}, Sandbox: "off"}); code != exitDone {
			b.Fatal(out)
		}
	}
}
