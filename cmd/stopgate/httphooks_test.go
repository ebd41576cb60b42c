package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/config"
)

// withServerFile is a service with such a server file.
func withServerFile(t *testing.T, data, text string) *service {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stopgate.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return newServiceWith(t, data, file)
}

// want sends a request that must be answered with the status.
func (s *service) want(status int, method, path, body string) string {
	s.t.Helper()
	got, answer := s.do(method, path, "application/json", []byte(body))
	if got != status {
		s.t.Fatalf("%s %s: status %d, want %d: %s", method, path, got, status, answer)
	}
	return string(answer)
}

// decide is a decision with its evidence.
func (s *service) decide(event string) (record map[string]any, text string) {
	s.t.Helper()
	var d struct {
		ID string `json:"evaluation_id"`
	}
	if err := json.Unmarshal([]byte(s.want(200, "POST", "/v1/evaluate", event)), &d); err != nil {
		s.t.Fatal(err)
	}
	text = s.want(200, "GET", "/v1/evaluations/"+d.ID, "")
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		s.t.Fatal(err)
	}
	return record, text
}

// An http hook of claude-code, attached to an agent over HTTP, on this machine
// since the server file names it; and after a restart.
func TestClaudeCode04HTTPHookOverTheServer(t *testing.T) {
	var payload string
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		payload = r.Header.Get("X-Model-Key") + string(body)
		fmt.Fprint(w, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"not on Friday"}}`)
	}))
	defer hook.Close()
	const tool = `{"hook_event_name":"PreToolUse","agent_name":"a","tool_name":"Bash","tool_input":{"command":"ls"}}`
	settings := `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"http","url":"` + hook.URL + `",
		"headers":{"X-Model-Key":"<$GEMINI_API_KEY>"},"allowedEnvVars":["GEMINI_API_KEY"]}]}]}}`
	file := "http_hooks: {allow: ['" + strings.TrimPrefix(hook.URL, "http://") + "']}"
	data := t.TempDir()
	t.Run("as it is put", func(t *testing.T) {
		s := withServerFile(t, data, file)
		s.want(404, "POST", "/v1/evaluate", tool)
		s.want(202, "PUT", "/v1/agents/a/hooks?dialect=claude-code", settings)
		d, text := s.decide(tool)
		if d["decision"] != "block" || d["reason"] != "not on Friday" || !strings.Contains(text, `"status":200`) {
			t.Errorf("record %s", text)
		}
		if !strings.HasPrefix(payload, `<>{`) || !strings.Contains(payload, `"tool_name":"Bash"`) {
			t.Errorf("the hook was told %s, want its payload, and no key of stopgate's own", payload)
		}
	})
	t.Run("after a restart", func(t *testing.T) {
		s := withServerFile(t, data, file)
		if got := s.want(200, "GET", "/v1/agents/a/hooks?dialect=claude-code", ""); !strings.Contains(got, hook.URL) {
			t.Errorf("GET answers %s", got)
		}
		if d, text := s.decide(tool); d["decision"] != "block" {
			t.Errorf("record %s", text)
		}
	})
	t.Run("and where the server file has no list", func(t *testing.T) {
		d, text := newServiceOn(t, data).decide(tool)
		if d["decision"] != "allow" || !strings.Contains(text, "egress_denied") || !strings.Contains(text, "failed_open") {
			t.Errorf("record %s", text)
		}
	})
}

// An agent's network holds for its hooks of antigravity, and its secrets come
// out nowhere.
func TestAntigravity16NetworkOverTheServer(t *testing.T) {
	const secret = "telemetry-secret-123"
	data := t.TempDir()
	s := newServiceOn(t, data)
	s.want(202, "PUT", "/v1/agents/a/hooks?dialect=antigravity",
		`{"audit":{"pre_tool_execution":[{"matcher":"*","hooks":[{"type":"http","url":"https://localhost:1/audit"}]}]}}`)
	const tool = `{"hook_event_name":"PreToolUse","agent_name":"a","tool_name":"read_file"}`
	for _, c := range []struct{ network, says string }{
		{"", "is this machine"},
		{`{"allowlist":[{"domain":"localhost","transform":{"Authorization":"Bearer ` + secret + `"}}]}`, "is this machine"},
		{`{"allowlist":[{"domain":"*.example.com","transform":[{"Authorization":"Bearer ` + secret + `"}]}]}`, "not in the agent's network allowlist"},
		{`"disabled"`, "network is disabled"},
	} {
		said := ""
		if c.network != "" {
			said = s.want(202, "PUT", "/v1/agents/a/network", c.network) + s.want(200, "GET", "/v1/agents/a/network", "")
		}
		d, text := s.decide(tool)
		if d["decision"] != "allow" || !strings.Contains(text, "egress_denied") || !strings.Contains(text, c.says) {
			t.Errorf("network %s: record %s", c.network, text)
		}
		if strings.Contains(said+text, secret) || strings.Contains(c.network, secret) && !strings.Contains(said, "[hidden]") {
			t.Errorf("network %s: answered with %s, recorded as %s", c.network, said, text)
		}
	}
	s.want(204, "DELETE", "/v1/agents/a/network", "")
}

func TestHooksDoNotGetOwnKeys(t *testing.T) {
	env := map[string]string{"STOPGATE_API_KEY": "stopgate-key-1", "ANTHROPIC_API_KEY": "of another program", "MINE": "provider-key-1",
		"HEADER": "Bearer provider-key-1", "PROXY": "http://me:proxy-password@p.example", "TOKEN": "a token", "EMPTY": "EMPTY", "WORD": "not EMPTY at all",
		"STORE": "postgres://me:database-password@db.example/x", "DB_PASSWORD": "database-password", "PGPASSWORD": "libpq-password"}
	cfg := config.Server{
		Models:    config.Models{Providers: map[string]config.Provider{"own": {APIKey: "provider-key-1"}, "local": {APIKey: "EMPTY"}}},
		HTTPHooks: config.HTTPHooks{Proxy: &url.URL{Scheme: "http", Host: "p.example", User: url.UserPassword("me", "proxy-password")}},
		Database:  config.Secret(env["STORE"]),
	}
	var environ []string
	for name, value := range env {
		environ = append(environ, name+"="+value)
	}
	given := hostEnvironment(cfg, func(name string) string { return env[name] }, environ)
	slices.Sort(given)
	if diff := cmp.Diff([]string{"TOKEN=a token", "WORD=not EMPTY at all"}, given); diff != "" {
		t.Error(diff)
	}
	get := withoutOwnKeys(cfg, func(name string) string { return env[name] })
	for name, want := range map[string]string{"STOPGATE_API_KEY": "", "ANTHROPIC_API_KEY": "", "MINE": "", "HEADER": "", "PROXY": "", "EMPTY": "",
		"STORE": "", "DB_PASSWORD": "", "PGPASSWORD": "",
		"TOKEN": "a token", "WORD": "not EMPTY at all", "UNSET": ""} {
		if got := get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestCertificatesOfAFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(dir, "missing.pem")} {
		if _, err := newCaller(config.Server{HTTPHooks: config.HTTPHooks{CAFile: path}}, os.Getenv); err == nil || !strings.Contains(err.Error(), "http_hooks.ca_file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Behind a firewall: a proxy leads out, and a certificate of one's own vouches
// for who is there. The secret of the network reaches them, and nobody else.
func TestAntigravity15TransformThroughProxy(t *testing.T) {
	const secret = "telemetry-secret-123"
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"decision":"deny","reason":"%s said %s"}`, r.Host, r.Header.Get("Authorization"))
	}))
	defer hook.Close()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		there, err := net.Dial("tcp", hook.Listener.Addr().String())
		if err != nil || r.Method != http.MethodConnect || r.Host != "example.com:443" {
			http.Error(w, r.Method+" "+r.Host, http.StatusBadGateway)
			return
		}
		defer there.Close()
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer here.Close()
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(there, here) }()
		_, _ = io.Copy(here, there)
	}))
	defer proxy.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	s := withServerFile(t, t.TempDir(), "http_hooks: {proxy: '"+proxy.URL+"', ca_file: '"+ca+"'}")
	s.want(202, "PUT", "/v1/agents/a/hooks?dialect=antigravity",
		`{"audit":{"pre_tool_execution":[{"matcher":"*","hooks":[{"type":"http","url":"https://example.com/audit"}]}]}}`)
	s.want(202, "PUT", "/v1/agents/a/network", `{"allowlist":[{"domain":"example.com","transform":{"Authorization":"Bearer `+secret+`"}}]}`)
	d, text := s.decide(`{"hook_event_name":"PreToolUse","agent_name":"a","tool_name":"read_file"}`)
	if d["decision"] != "block" || d["reason"] != "example.com said [key]" || strings.Contains(text, secret) {
		t.Errorf("record %s", text)
	}
}
