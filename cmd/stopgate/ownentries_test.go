package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"stopgate/gate"
	"stopgate/wire/install"
)

// A project's settings after init, attached: the gate would ask itself, and each time
// again. The entries are left out, said where they stand, and the other hooks asked;
// also of a document that an older version had stored.
func TestAGateAttachedToItself(t *testing.T) {
	host, _ := install.Find("claude-code")
	data, file := t.TempDir(), "http_hooks: {allow: ['127.0.0.1', localhost]}"
	settings, err := host.Add([]byte(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"echo real >&2; exit 2"}]}]}}`),
		host.Entries(install.Target{Agent: "self", Server: "http://127.0.0.1:8790", Program: "/usr/bin/stopgate"}))
	if err != nil {
		t.Fatal(err)
	}
	own := len(host.Entries(install.Target{}))
	check := func(t *testing.T, s *service) {
		answer := s.want(200, "POST", "/v1/hooks/claude-code?agent=self", `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`)
		if !strings.Contains(answer, `"permissionDecisionReason":"real"`) {
			t.Errorf("answer %s, want the other hook's", answer)
		}
		var list struct {
			Value []struct {
				ID string `json:"evaluation_id"`
			}
		}
		if err := json.Unmarshal([]byte(s.want(200, "GET", "/v1/evaluations?limit=1", "")), &list); err != nil || len(list.Value) != 1 {
			t.Fatal(err, list)
		}
		var record struct{ Hooks []struct{ Name string } }
		if err := json.Unmarshal([]byte(s.want(200, "GET", "/v1/evaluations/"+list.Value[0].ID, "")), &record); err != nil || len(record.Hooks) != 1 {
			t.Errorf("%v: hooks %+v, want the other one", err, record.Hooks)
		}
	}
	t.Run("as it is put", func(t *testing.T) {
		s := withServerFile(t, data, file)
		answer := s.want(202, "PUT", "/v1/agents/self/hooks?dialect=claude-code", string(settings))
		var put struct{ Warnings []gate.Finding }
		if err := json.Unmarshal([]byte(answer), &put); err != nil {
			t.Fatal(err)
		}
		said := 0
		for _, w := range put.Warnings {
			if strings.HasPrefix(w.Message, "this is stopgate's own entry;") && strings.HasPrefix(w.Path, "hooks.") && w.Line > 0 {
				said++
			}
		}
		if said != own {
			t.Errorf("%d warnings of own entries, want %d: %s", said, own, answer)
		}
		check(t, s)
	})
	t.Run("after a restart", func(t *testing.T) { check(t, withServerFile(t, data, file)) })
	t.Run("in files", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, ".claude", "settings.json")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, settings, 0o600); err != nil {
			t.Fatal(err)
		}
		files, err := readHookFiles("", false, []string{dir})
		if err != nil || len(files) != 1 || len(files[0].usable()) != 1 {
			t.Fatalf("%v %+v", err, files)
		}
		if hooks := files[0].usable()[0].Hooks; len(hooks) != 1 {
			t.Errorf("validate has %d hooks, want 1", len(hooks))
		}
		text := fmt.Sprint(files[0].findings)
		if n := strings.Count(text, "stopgate's own entry"); n != own {
			t.Errorf("validate says it %d times, want %d: %s", n, own, text)
		}
		if !slices.IsSortedFunc(files[0].findings, func(a, b gate.Finding) int { return a.Line - b.Line }) {
			t.Errorf("findings are not in the order of the file: %v", files[0].findings)
		}
	})
}

// A hook that leads to its own gate by a way that nothing shows, as a relay: it ends
// with the first one, as a hook that could not be asked and says why, whatever
// on_gate_error is. A header of the hook's own does not hide where it comes from.
func TestAHiddenLoopEndsAtOnce(t *testing.T) {
	var s *service
	var relayed atomic.Int64
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		relayed.Add(1)
		req, err := http.NewRequestWithContext(r.Context(), r.Method, s.url+path.Clean(r.URL.Path), r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		req.URL.RawQuery, req.Header = "agent=self", r.Header.Clone()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	defer relay.Close()
	s = withServerFile(t, t.TempDir(), "http_hooks: {allow: ['127.0.0.1']}\non_gate_error: block")
	s.want(202, "PUT", "/v1/agents/self/hooks?dialect=claude-code", `{"hooks":{"PreToolUse":[{"hooks":[
		{"type":"http","url":"`+relay.URL+`/v1/hooks//claude-code","headers":{"X-Stopgate-Hook":""}},
		{"type":"http","url":"`+relay.URL+`/v1/evaluate"}]}]}}`)
	d, text := s.decide(`{"hook_event_name":"PreToolUse","agent_name":"self","tool_name":"Bash","tool_input":{"command":"ls"}}`)
	if d["decision"] != "allow" || d["degraded"] != true || relayed.Load() != 2 {
		t.Errorf("%d relayed, %s", relayed.Load(), text)
	}
	if strings.Count(text, "it is a gate, which is not asked from within a hook") != 2 || !strings.Contains(text, `"http_status"`) {
		t.Errorf("the record does not say why: %s", text)
	}
	if list := s.want(200, "GET", "/v1/evaluations", ""); strings.Count(list, `"evaluation_id"`) != 1 {
		t.Errorf("more than the one event is recorded: %s", list)
	}
}
