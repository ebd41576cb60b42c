package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

const (
	attached = "/v1/agents/my_agent/hooks?dialect="
	network  = "/v1/agents/my_agent/network"
)

func TestAttachedHooks(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex // hooks of several dialects run at once
	var asked []string
	w.judge = func(_ context.Context, in gate.Input) gate.Verdict {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, in.Hook.Name)
		return gate.Verdict{Outcome: gate.Allow}
	}
	const tool = `{"hook_event_name":"PreToolUse","agent_name":"my_agent","tool_name":"Bash"}`
	w.must(t, 404, "POST", "/v1/evaluate", tool)
	for dialect, body := range map[string]string{"ax-code": `{"PreToolUse":["ax"]}`, "antigravity": `{ "warnings": [], "document": ["x"], "PreToolUse": ["anti"] }`, "claude-code": `{"odd":[],"PreToolUse":["claude"]}`} {
		w.must(t, 404, "GET", attached+dialect, "")
		w.must(t, 404, "DELETE", attached+dialect, "")
		rec := w.must(t, http.StatusAccepted, "PUT", attached+dialect, body)
		sameJSON(t, "PUT "+dialect, rec.Body.Bytes(), `{"document":`+body+`}`, "warnings")
		rec2 := w.must(t, 200, "GET", attached+dialect, "")
		sameJSON(t, "GET "+dialect, rec2.Body.Bytes(), body)
		if etag := rec.Header().Get("ETag"); etag == "" || etag != rec2.Header().Get("ETag") {
			t.Errorf("%s: ETag of PUT is %q, of GET %q", dialect, etag, rec2.Header().Get("ETag"))
		}
		want := map[bool]int{true: 1}[dialect == "claude-code"]
		if got := fields(t, rec)["warnings"].([]any); len(got) != want {
			t.Errorf("%s: warnings %v", dialect, got)
		}
	}
	w.must(t, 200, "POST", "/v1/evaluate", tool)
	slices.Sort(asked)
	if d := cmp.Diff([]string{"anti", "ax", "claude"}, asked); d != "" {
		t.Errorf("hooks asked (-want +got):\n%s", d)
	}
	w.must(t, 202, "PUT", attached+"antigravity", `{"PostToolUse":["anti"]}`)
	w.must(t, 204, "DELETE", attached+"claude-code", "")
	asked = nil
	w.must(t, 200, "POST", "/v1/evaluate", tool)
	if d := cmp.Diff([]string{"ax"}, asked); d != "" {
		t.Errorf("hooks asked after a PUT and a DELETE (-want +got):\n%s", d)
	}
}

// TestWhatIsAttached: without a dialect an agent's hooks are listed, those of its
// spec and those beside it.
func TestWhatIsAttached(t *testing.T) {
	w := newWorld(t)
	const list = "/v1/agents/my_agent/hooks"
	w.must(t, 404, "GET", list, "")
	etags := map[string]string{}
	for dialect, body := range map[string]string{"ax-code": `{"PreToolUse":["x"],"Stop":["y","z"]}`, "claude-code": `{}`} {
		etags[dialect] = w.must(t, 202, "PUT", attached+dialect, body).Header().Get("ETag")
	}
	want := func(items ...string) {
		t.Helper()
		sameJSON(t, list, w.must(t, 200, "GET", list, "").Body.Bytes(), `{"value":[`+strings.Join(items, ",")+`],"next":null}`)
	}
	item := func(dialect, etag, hooks string) string {
		return fmt.Sprintf(`{"dialect":%q,"etag":%q,"time":"2026-12-01T00:00:00.5Z","in_force":true,"hooks":%s,"unasked":0}`, dialect, etag, hooks)
	}
	for i := range w.store.specs {
		w.store.specs[i].At = 1796083200500
	}
	ax, claude := item("ax-code", etags["ax-code"], `{"PreToolUse":1,"Stop":2}`), item("claude-code", etags["claude-code"], `{}`)
	want(ax, claude)
	w.opt.Gate.Policies.SetFiles([]*gate.Spec{{Kind: gate.AgentSpec, Name: "my_agent", Source: "a.yaml", Document: []byte(`{}`), Hooks: []gate.Hook{{Event: gate.Stop}}}})
	file := `{"dialect":"azure","etag":"\"44136fa355b3678a1146ad16\"","time":null,"in_force":true,"hooks":{"Stop":1},"unasked":0}`
	want(file, ax, claude)
	w.must(t, 204, "DELETE", attached+"claude-code", "")
	w.store.specs = append(w.store.specs, gate.StoredSpec{Kind: gate.Attached(gate.Antigravity), Name: "my_agent", ETag: `"v9"`, At: 1796083200500, Document: []byte(`{"bad":[]}`)})
	want(file, strings.Replace(item("antigravity", `"v9"`, `{}`), "true", "false", 1), ax)
	w.store.fail(errors.New("down"))
	w.must(t, 500, "GET", list, "")
}

// What this server cannot do for hooks is said when they are put, of a spec too,
// and when they are validated, beside what the document itself is remarked on;
// it refuses nothing.
func TestWarningsOfWhatIsNotServed(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Unserved = func(spec *gate.Spec, _ []byte) []gate.Finding {
			return []gate.Finding{{Severity: gate.SeverityWarning, Path: string(spec.Kind), Message: "not here"}}
		}
	})
	for _, tt := range []struct {
		name, method, path, body, key string
		status, want                  int
	}{
		{"hooks", "PUT", attached + "claude-code", `{"odd":[],"PreToolUse":["claude"]}`, "warnings", 202, 2},
		{"a spec", "PUT", "/api/v2/extendedAgent/agents/a", `{"name":"a","type":"ExtendedAgent","properties":{}}`, "warnings", 202, 1},
		{"validated", "POST", "/v1/validate?dialect=claude-code", `{"odd":[],"PreToolUse":["claude"]}`, "findings", 200, 2},
		{"with errors of its own", "POST", "/v1/validate?dialect=claude-code", `{"bad":[]}`, "findings", 200, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := fields(t, w.must(t, tt.status, tt.method, tt.path, tt.body))[tt.key].([]any); len(got) != tt.want {
				t.Errorf("%s %v, want %d", tt.key, got, tt.want)
			}
		})
	}
}

// TestWhatIsNotServedIsNotForTheLimited: it names what the server may reach.
func TestWhatIsNotServedIsNotForTheLimited(t *testing.T) {
	w := newGuardedWorld(t, func(o *Options) {
		login := o.Login.(tokens)
		login["reads-mine"] = gate.Caller{Name: "reads-mine", Scopes: []gate.Scope{gate.ReadScope}, Agents: []string{"mine"}}
		o.Unserved = func(*gate.Spec, []byte) []gate.Finding {
			return []gate.Finding{{Severity: gate.SeverityWarning, Message: "not here"}}
		}
	})
	for who, want := range map[string]int{"read": 2, "admin": 2, "mine": 2, "reads-mine": 1} {
		rec := w.must(t, 200, "POST", "/v1/validate?dialect=claude-code", `{"odd":[],"PreToolUse":["claude"]}`, as(who))
		if got := fields(t, rec)["findings"].([]any); len(got) != want {
			t.Errorf("%s is told %v, want %d findings", who, got, want)
		}
	}
}

func TestAttachedHooksConditions(t *testing.T) {
	w := newWorld(t)
	for _, target := range []string{attached + "ax-code", network} {
		first := w.must(t, 202, "PUT", target, `{}`, "If-None-Match: *").Header().Get("ETag")
		w.must(t, 412, "PUT", target, `{}`, "If-None-Match: *")
		second := w.must(t, 202, "PUT", target, `{}`, "If-Match: "+first).Header().Get("ETag")
		w.must(t, 412, "PUT", target, `{}`, "If-Match: "+first)
		w.must(t, 304, "GET", target, "", "If-None-Match: "+second)
		w.must(t, 412, "DELETE", target, "", "If-Match: "+first)
		w.must(t, 204, "DELETE", target, "", "If-Match: "+second)
	}
	// One dialect's version says nothing about another's.
	etag := w.must(t, 202, "PUT", attached+"ax-code", `{}`).Header().Get("ETag")
	w.must(t, 412, "PUT", attached+"claude-code", `{}`, "If-Match: "+etag)
}

func TestAttachedHooksRefused(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		query, body, header string
		status              int
		code, says          string
	}{
		"no dialect":        {"", `{}`, "", 400, "validation_failure", `["antigravity" "ax-code" "claude-code"]`},
		"unknown dialect":   {"?dialect=codex", `{}`, "", 400, "validation_failure", `["antigravity" "ax-code" "claude-code"]`},
		"azure has a spec":  {"?dialect=azure", `{}`, "", 400, "validation_failure", `["antigravity" "ax-code" "claude-code"]`},
		"another case":      {"?dialect=AX-Code", `{}`, "", 400, "validation_failure", `["antigravity" "ax-code" "claude-code"]`},
		"no JSON":           {"?dialect=ax-code", `{`, "", 400, "invalid_json", "JSON"},
		"an error":          {"?dialect=ax-code", `{"bad":[]}`, "", 400, "validation_failure", "ax-code ignores this whole file"},
		"YAML is not taken": {"?dialect=ax-code", `a: 1`, "Content-Type: application/yaml", 415, "unsupported_media_type", "application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			headers := []string{"Accept: */*"}
			if c.header != "" {
				headers = append(headers, c.header)
			}
			rec := w.must(t, c.status, "PUT", "/v1/agents/a/hooks"+c.query, c.body, headers...)
			if code, message := errorOf(t, rec); code != c.code || !strings.Contains(message, c.says) {
				t.Errorf("%s %q, want %s … %s", code, message, c.code, c.says)
			}
		})
	}
	w.must(t, 400, "DELETE", "/v1/agents/a/hooks", "")
	w.must(t, 404, "GET", "/v1/agents/a/hooks", "")
	rec := w.must(t, 400, "PUT", attached+"ax-code", `{"bad":[]}`)
	want := []any{map[string]any{"path": "bad", "line": 2.0, "column": 3.0, "message": "ax-code ignores this whole file"}}
	if d := cmp.Diff(want, fields(t, rec)["error"].(map[string]any)["details"]); d != "" {
		t.Errorf("details (-want +got):\n%s", d)
	}
	if len(w.store.specs) != 0 {
		t.Errorf("stored: %v", w.store.specs)
	}
}

func TestAttachedHooksAreLoaded(t *testing.T) {
	w := newWorld(t)
	w.must(t, 202, "PUT", attached+"antigravity", `{"PreToolUse":["deny"]}`)
	w.must(t, 202, "PUT", network, `{"secret":"s3cr3t-s3cr3t"}`)
	w.store.specs = append(w.store.specs, gate.StoredSpec{Kind: "hooks of a later version", Name: "a", Document: []byte(`{}`)},
		gate.StoredSpec{Kind: gate.Attached(gate.AXCode), Name: "my_agent", Document: []byte(`{"bad":[]}`)})

	again := newWorld(t, func(o *Options) { o.Store = w.store; o.Gate.Store = w.store })
	if err := again.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	said := again.log.Len()
	if err := again.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again.log.Len() != said {
		t.Errorf("what is wrong with the same versions is logged again: %s", again.log.String()[said:])
	}
	again.judge = func(_ context.Context, in gate.Input) gate.Verdict {
		if in.Network == nil || !in.Network.Disabled {
			t.Errorf("network after a restart is %v", in.Network)
		}
		return gate.Verdict{Outcome: gate.Block, Reason: "no"}
	}
	d := fields(t, again.must(t, 200, "POST", "/v1/evaluate", `{"hook_event_name":"PreToolUse","agent_name":"my_agent","tool_name":"read_file"}`))
	if d["decision"] != "block" || len(d["hooks"].([]any)) != 1 {
		t.Errorf("after a restart: %v", d)
	}
	for _, said := range []string{"a later version", "ignores this whole file"} {
		if !strings.Contains(again.log.String(), said) {
			t.Errorf("log lacks %q: %s", said, again.log)
		}
	}
	if !strings.Contains(again.must(t, 200, "GET", "/metrics", "").Body.String(), `stopgate_decisions_total{agent="my_agent"`) {
		t.Error("an agent that has attached hooks alone is not named in the metrics")
	}
}

func TestAntigravity16NetworkSecretsAreNotAnswered(t *testing.T) {
	w := newWorld(t)
	const secret = "s3cr3t-s3cr3t"
	put := w.must(t, 202, "PUT", network, `{"secret":"`+secret+`"}`)
	sameJSON(t, "PUT", put.Body.Bytes(), `{"secret":"[hidden]"}`, "warnings")
	got := w.must(t, 200, "GET", network, "").Body.String()
	if strings.Contains(got, secret) {
		t.Errorf("GET answers %s", got)
	}
	if code, _ := errorOf(t, w.must(t, 400, "PUT", network, got)); code != "validation_failure" {
		t.Errorf("a document with marks in the place of secrets: %s", code)
	}
	stored, err := w.store.Spec(t.Context(), gate.NetworkSpec, "my_agent")
	if err != nil || !strings.Contains(string(stored.Document), secret) {
		t.Errorf("stored is %s, %v", stored.Document, err)
	}
	if strings.Contains(w.log.String(), secret) {
		t.Errorf("log: %s", w.log)
	}
	w.must(t, 204, "DELETE", network, "")
	w.must(t, 404, "GET", network, "")
}

func TestValidateDialects(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		query, body, contentType string
		status                   int
		want                     string
	}{
		{"antigravity", `{"Stop":["a"]}`, "", 200, `{"valid":true,"findings":[]}`},
		{"ax-code", `{"odd":[]}`, "", 200, `{"valid":true,"findings":[{"severity":"warning","path":"odd","line":1,"column":2,"message":"odd"}]}`},
		{"claude-code", `{"bad":[]}`, "", 200, `{"valid":false,"findings":[{"severity":"error","path":"bad","line":2,"column":3,"message":"claude-code ignores this whole file"}]}`},
		{"claude-code", `{`, "", 400, ""},
		{"claude-code", `a: 1`, "application/yaml", 415, ""},
		{"codex", `{}`, "", 400, ""},
		{"", `{"ax-code":[],"odd":[]}`, "", 200, `{"valid":true,"findings":[{"severity":"warning","path":"odd","line":1,"column":2,"message":"odd"}]}`},
		{"", `{"?":[]}`, "", 200, `{"valid":false,"findings":[{"severity":"error","path":"","line":1,"column":1,"message":"nothing tells whose hooks these are"}]}`},
		{"azure", `{"?":[],"name":"a"}`, "", 200, `{"valid":true,"findings":[]}`},
		{"azure", `{"name":"a"}`, "", 200, `{"valid":true,"findings":[]}`},
	} {
		headers := []string{"Accept: */*"}
		if c.contentType != "" {
			headers = append(headers, "Content-Type: "+c.contentType)
		}
		rec := w.must(t, c.status, "POST", "/v1/validate?dialect="+c.query, c.body, headers...)
		if c.want != "" {
			sameJSON(t, c.query, rec.Body.Bytes(), c.want)
		}
	}
	if len(w.store.specs) != 0 {
		t.Errorf("validating stored %v", w.store.specs)
	}
}

// A list says of hooks what their own system calls the event, and how many this server
// cannot ask; where that is all of them, they are not in force.
func TestWhatIsAttachedAndNotAsked(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Unasked = func(h *gate.Hook) bool { return h.Name == "no" } })
	for _, tt := range []struct {
		dialect, body, want string
	}{
		{"claude-code", `{"Start":["no","x"],"Stop":["no"]}`, `"in_force":true,"hooks":{"SessionStart":2,"Stop":1},"unasked":2}`},
		{"claude-code", `{"Start":["no"]}`, `"in_force":false,"hooks":{"SessionStart":1},"unasked":1}`},
		{"claude-code", `{}`, `"in_force":true,"hooks":{},"unasked":0}`},
	} {
		w.must(t, 202, "PUT", attached+tt.dialect, tt.body)
		if got := w.must(t, 200, "GET", "/v1/agents/my_agent/hooks", "").Body.String(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.body, got, tt.want)
		}
	}
}

// Every agent that anything is known of, whatever that is; the limited see their own.
func TestAgentsAreListed(t *testing.T) {
	w := newGuardedWorld(t)
	w.must(t, 202, "PUT", "/v1/agents/only_hooks/hooks?dialect=claude-code", `{"PreToolUse":["a","b"],"Stop":["c"]}`, as("admin"))
	w.must(t, 202, "PUT", "/v1/agents/only_network/network", `{}`, as("admin"))
	w.opt.Gate.Policies.SetFiles([]*gate.Spec{{Kind: gate.AgentSpec, Name: "a_file", Source: "a.yaml", Document: []byte(`{}`), Hooks: []gate.Hook{{Event: gate.Stop}}}})
	mine := `{"name":"mine","dialects":{"ax-code":0,"azure":0},"network":true}`
	sameJSON(t, "all", w.must(t, 200, "GET", "/v1/agents", "", as("read")).Body.Bytes(), `{"value":[
		{"name":"a_file","dialects":{"azure":1},"network":false},`+mine+`,
		{"name":"only_hooks","dialects":{"claude-code":3},"network":false},
		{"name":"only_network","dialects":{},"network":true},`+strings.Replace(mine, "mine", "theirs", 1)+`],"next":null}`)
	sameJSON(t, "mine", w.must(t, 200, "GET", "/v1/agents", "", as("mine")).Body.Bytes(), `{"value":[`+mine+`],"next":null}`)
	w.store.fail(errors.New("down"))
	w.must(t, 500, "GET", "/v1/agents", "", as("admin"))
}

// What nobody could mean is refused where it is put, and says what was meant.
func TestPutInTheWrongPlace(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ name, path, body, want string }{
		{"a name that no agent has", "/v1/agents/bad%20name/hooks?dialect=ax-code", `{}`, `agent name \"bad name\" has a space`},
		{"of a network", "/v1/agents/bad%20name/network", `{}`, `agent name \"bad name\" has a space`},
		{"azure", attached + "azure", `{}`, "an agent's own spec is at /api/v2/extendedAgent/agents/NAME"},
		{"a misspelt dialect", attached + "claudecode", `{}`, `did you mean \"claude-code\"?`},
		{"hooks of another system", attached + "claude-code", `{"ax-code":[]}`, "this looks like ax-code: use ?dialect=ax-code"},
		{"with errors of their own", attached + "claude-code", `{"ax-code":[],"bad":[]}`, "this looks like ax-code: use ?dialect=ax-code"},
		{"a spec", attached + "claude-code", `{"azure":[]}`, "this looks like azure: PUT a spec to /api/v2/extendedAgent/agents/my_agent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if rec := w.must(t, 400, "PUT", tt.path, tt.body); !strings.Contains(rec.Body.String(), tt.want) {
				t.Errorf("%s, want %s", rec.Body, tt.want)
			}
		})
	}
	w.must(t, 202, "PUT", attached+"claude-code", `{"ax-code":["x"]}`) // whatever it looks like, it has hooks
	rec := w.must(t, 202, "PUT", "/v1/agents/nosuch/network", `{}`)
	if !strings.Contains(rec.Body.String(), `agent \"nosuch\" is not known`) {
		t.Errorf("no warning of an agent that nobody knows: %s", rec.Body)
	}
	w.must(t, 404, "GET", "/v1/agents/bad%20name/hooks?dialect=ax-code", "") // which older versions may have stored
}
