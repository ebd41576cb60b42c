package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
	"stopgate/internal/contract"
)

// service is the real server on a temporary data directory, with Gemini's wire
// spoken by a function.
type service struct {
	t   testing.TB
	url string
	// transcriptRoot is a directory in which named transcripts may lie.
	transcriptRoot string

	mu       sync.Mutex
	requests []string // bodies that the model got
	answer   func(request string) string
}

func newService(t testing.TB) *service {
	t.Helper()
	return newServiceOn(t, t.TempDir())
}

// newServiceOn starts a service on a data directory, until the test ends.
func newServiceOn(t testing.TB, data string) *service {
	t.Helper()
	return newServiceWith(t, data, "")
}

// newServiceWith starts a service with a server file, unless that is empty.
func newServiceWith(t testing.TB, data, file string) *service {
	t.Helper()
	s := &service{t: t, answer: func(string) string { return `{"ok":true}` }}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.requests = append(s.requests, string(body))
		text := s.answer(string(body))
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(text, "call:") {
			_, _ = w.Write([]byte(`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":` + text[5:] + `}]},"finishReason":"STOP"}]}`))
			return
		}
		quoted, _ := json.Marshal(text)
		_, _ = w.Write([]byte(`{"candidates":[{"content":{"role":"model","parts":[{"text":` + string(quoted) + `}]},"finishReason":"STOP"}],` +
			`"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":7}}`))
	}))
	t.Cleanup(model.Close)
	p := process{ctx: t.Context(), getenv: func(name string) string {
		return map[string]string{"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": model.URL}[name]
	}}
	cfg, err := loadConfig(p, file, overrides{data: data})
	if err != nil {
		t.Fatal(err)
	}
	s.transcriptRoot = t.TempDir()
	cfg.Transcripts.Roots = []string{s.transcriptRoot}
	web := httptest.NewUnstartedServer(nil)
	srv, app, err := newServer(p, cfg, slog.New(slog.DiscardHandler), web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	web.Config.Handler = srv.Handler()
	web.Start()
	t.Cleanup(func() { web.Close(); _ = app.close() })
	s.url = web.URL
	return s
}

func (s *service) do(method, path, contentType string, body []byte) (int, []byte) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

func (s *service) copyFile(from, to string) {
	s.t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// upload PUTs a file of the documentation as it is.
func (s *service) upload(path, file string) map[string]any {
	s.t.Helper()
	body, err := os.ReadFile(filepath.Join(contract.Dir(s.t, "spec/examples"), file))
	if err != nil {
		s.t.Fatal(err)
	}
	contentType := "application/json"
	if strings.HasSuffix(file, ".yaml") {
		contentType = "application/yaml"
	}
	status, answer := s.do(http.MethodPut, path, contentType, body)
	if status != http.StatusAccepted {
		s.t.Fatalf("PUT %s with %s: %d %s", path, file, status, answer)
	}
	var stored map[string]any
	if err := json.Unmarshal(answer, &stored); err != nil {
		s.t.Fatal(err)
	}
	return stored
}

func (s *service) evaluate(event string) gate.Decision {
	s.t.Helper()
	status, answer := s.do(http.MethodPost, "/v1/evaluate", "application/json", []byte(event))
	var d gate.Decision
	if err := json.Unmarshal(answer, &d); err != nil || status != http.StatusOK {
		s.t.Fatalf("evaluate %s: %d %s", event, status, answer)
	}
	return d
}

const (
	agents = "/api/v2/extendedAgent/agents/"
	hooks  = "/api/v2/extendedAgent/hooks/"
)

// The documentation's agent, unchanged: its Stop hook judged by a model, its
// PostToolUse hook a script in the sandbox.
func TestDocumentedAgentEndToEnd(t *testing.T) {
	s := newService(t)
	stored := s.upload(agents+"my_hooked_agent", "azure-agent.json")
	if stored["owner"] != "platform" || stored["properties"].(map[string]any)["hooks"] == nil {
		t.Errorf("stored %v", stored)
	}
	s.answer = func(string) string { return `{"ok":false,"reason":"End your response with 'Task complete.'"}` }
	transcript := `[{"role":"user","content":"restart web"},{"role":"assistant","content":"restarting","tool_calls":[{"id":"c1","function":{"name":"Bash","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"ok"}]`
	d := s.evaluate(`{"hook_event_name":"Stop","agent_name":"my_hooked_agent","session_id":"s","final_output":"It is up.","transcript":` + transcript + `}`)
	if d.Outcome != gate.Block || d.Messages[0].Content != "End your response with 'Task complete.'" || d.StopRejectionCount != 1 {
		t.Errorf("first stop: %+v", d)
	}
	if u := d.Hooks[0].Usage; u == nil || u.PromptTokens != 100 || d.Hooks[0].Model == "" {
		t.Errorf("usage %+v of model %q", u, d.Hooks[0].Model)
	}
	if !strings.Contains(s.requests[0], "It is up.") || !strings.Contains(s.requests[0], "GrepSearch") {
		t.Errorf("the model was asked %s", s.requests[0])
	}
	s.answer = func(string) string { return `{"ok":true}` }
	if d := s.evaluate(`{"hook_event_name":"Stop","agent_name":"my_hooked_agent","session_id":"s","final_output":"Task complete."}`); d.Outcome != gate.Allow {
		t.Errorf("second stop: %+v", d)
	}
	d = s.evaluate(`{"hook_event_name":"PostToolUse","agent_name":"my_hooked_agent","session_id":"s","tool_name":"Bash","tool_input":{}}`)
	if d.AdditionalContext != "[AUDIT] Tool 'Bash' was executed." || len(d.Messages) != 1 {
		t.Errorf("tool: %+v", d)
	}
	status, list := s.do(http.MethodGet, "/v1/evaluations?session=s&event=Stop", "", nil)
	if status != http.StatusOK || strings.Count(string(list), `"evaluation_id"`) != 2 {
		t.Errorf("record: %d %s", status, list)
	}
}

// The judge reads the conversation by its tools (spec/azure.md 29).
func TestAzure29JudgeReadsTheUploadedConversation(t *testing.T) {
	s := newService(t)
	s.upload(hooks+"completeness-gate", "azure-globalhook.json")
	s.do(http.MethodPut, "/v1/sessions/s/transcript", "text/plain", []byte("user: fix it\ntool: 3 tests failed\n"+strings.Repeat("assistant: thinking about it\n", 1000)))
	s.answer = func(request string) string {
		if strings.Contains(request, "3 tests failed") {
			return `{"ok":false,"reason":"3 tests failed"}`
		}
		return `call:{"name":"GrepSearch","args":{"pattern":"tests? failed"}}`
	}
	d := s.evaluate(`{"hook_event_name":"Stop","agent_name":"default","session_id":"s","final_output":"All tests pass."}`)
	if d.Outcome != gate.Block || d.Reason != "3 tests failed" || d.Hooks[0].Level != gate.AgentLevel {
		t.Errorf("%+v", d)
	}
	_, record := s.do(http.MethodGet, "/v1/evaluations/"+d.EvaluationID, "", nil)
	if !strings.Contains(string(record), `"tool":"GrepSearch"`) || !strings.Contains(string(record), "All tests pass.") {
		t.Errorf("record %s", record)
	}
}

// Every documented spec is taken unchanged, and YAML and JSON of one resource
// read back the same (spec/azure.md 2, 10).
func TestAzure10DocumentedSpecsReadBackEqual(t *testing.T) {
	s := newService(t)
	for file, path := range map[string]string{
		"azure-agent.json": agents + "my_hooked_agent", "azure-hooked.yaml": agents + "my_hooked_agent",
		"azure-marker.yaml": agents + "marker", "azure-globalhook.json": hooks + "completeness-gate",
		"azure-globalhook.yaml": hooks + "completeness-gate",
	} {
		put := s.upload(path, file)
		delete(put, "warnings")
		status, answer := s.do(http.MethodGet, path, "", nil)
		want, err := json.Marshal(put)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(answer, &got); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(got)
		if status != http.StatusOK || err != nil || !bytes.Equal(want, again) {
			t.Errorf("%s: GET %d\n got %s\nwant %s", file, status, again, want)
		}
	}
}

// fault G31: the failMode that was uploaded is the one that is enforced, also
// after a restart.
func TestUploadedFailModeIsEnforced(t *testing.T) {
	contract.Dir(t, "spec/examples")
	data := t.TempDir()
	for _, start := range []string{"first", "second"} {
		t.Run(start+" start", func(t *testing.T) {
			s := newServiceOn(t, data)
			s.answer = func(string) string { return "I would rather not say." }
			if start == "first" {
				s.upload(hooks+"completeness-gate", "azure-globalhook.json") // failMode "Block"
			}
			d := s.evaluate(`{"hook_event_name":"Stop","agent_name":"default","session_id":"s","final_output":"x"}`)
			if d.Outcome != gate.Block || d.Hooks[0].Failure == nil || d.Hooks[0].Failure.Code != gate.BadVerdict || !d.Hooks[0].Has(gate.FailedClosed) {
				t.Errorf("%+v", d)
			}
		})
	}
}

// A proxy that passes its own Host on, and a console on another origin, are
// served once the server file names them.
func TestServerFileNamesTheProxy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stopgate.yaml")
	if err := os.WriteFile(file, []byte("http: {hosts: [gate.example], origins: ['https://console.example']}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, file, host, origin string
		want                     int
	}{
		{"the proxy's host", file, "gate.example", "", 200},
		{"with a port", file, "gate.example:8443", "", 200},
		{"a page it serves", file, "gate.example", "https://gate.example", 200},
		{"the console", file, "gate.example", "https://console.example", 200},
		{"another host", file, "evil.example", "", 403},
		{"another page", file, "gate.example", "https://evil.example", 403},
		{"not named", "", "gate.example", "", 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServiceWith(t, t.TempDir(), c.file)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/evaluate", strings.NewReader(`{"hook_event_name":"Stop","agent_name":"default"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = c.host
			r.Header.Set("Content-Type", "application/json")
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != c.want {
				t.Errorf("status %d, want %d", resp.StatusCode, c.want)
			}
		})
	}
}

// DESIGN §5: broken JSON is invalid_json on every route that reads some, and
// the answer says where.
func TestBrokenTranscriptIsInvalidJSON(t *testing.T) {
	s := newService(t)
	for _, c := range []struct{ name, method, contentType, body, where string }{
		{"array", "PUT", "application/json", `[{"role":"user","content":"x"},{]`, "message 2"},
		{"array that ends early", "POST", "application/json", `[{"role":"user"`, "message 1"},
		{"string that ends early", "PUT", "application/json", `"user: x`, "ends too early"},
		{"line", "POST", "application/x-ndjson", `{"role":"user","content":"x"}` + "\n" + `{"role":`, "line 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, answer := s.do(c.method, "/v1/sessions/s/transcript", c.contentType, []byte(c.body))
			var got struct {
				Error struct{ Code, Message string }
			}
			if err := json.Unmarshal(answer, &got); err != nil {
				t.Fatal(err)
			}
			if status != 400 || got.Error.Code != "invalid_json" || !strings.Contains(got.Error.Message, c.where) {
				t.Errorf("%d %s, want 400 invalid_json that says %q", status, answer, c.where)
			}
		})
	}
}

// What validate says of a file the service says of the same body.
func TestValidateAgreesWithTheService(t *testing.T) {
	s := newService(t)
	for name, text := range map[string]string{
		"agent.json":    `{"name":"a","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"x","timeout":0}]}}}`,
		"agent.yaml":    "api_version: azuresre.ai/v2\nkind: ExtendedAgent\nmetadata: {name: a}\nspec: {hooks: {Stop: [{prompt: x, timeout: 301}]}}\n",
		"groups.json":   `{"g":{"pre_tool_execution":[{"matcher":"*_file","hooks":[{"type":"command","command":"exit 2"}]}]}}`,
		"ax.json":       `{"hooks":[{"event":"BeforeTool","command":"x"}]}`,
		"settings.json": `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"exit 1"}]}]}}`,
		"nobodys.json":  `{"name":"x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			run(process{ctx: t.Context(), stdout: &out, stderr: io.Discard, getenv: func(string) string { return "" }}, []string{"validate", "--json", file})
			contentType := "application/json"
			if strings.HasSuffix(name, ".yaml") {
				contentType = "application/yaml"
			}
			status, answer := s.do(http.MethodPost, "/v1/validate", contentType, []byte(text))
			type verdict struct {
				Valid    bool
				Findings []gate.Finding
			}
			var here, there verdict
			if err := errors.Join(json.Unmarshal(out.Bytes(), &here), json.Unmarshal(answer, &there)); err != nil || status != http.StatusOK {
				t.Fatalf("%d, %v: %s%s", status, err, out.Bytes(), answer)
			}
			if diff := cmp.Diff(here, there); diff != "" || len(here.Findings) == 0 {
				t.Errorf("command line and service differ (-command +service):\n%s\n%s", diff, out.Bytes())
			}
		})
	}
}
