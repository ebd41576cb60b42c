package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

const (
	agents = "/api/v2/extendedAgent/agents"
	hooks  = "/api/v2/extendedAgent/hooks"

	full = `{"name":"my_agent","type":"ExtendedAgent","tags":["demo"],"owner":"platform","properties":{"instructions":"Be <b>good</b> & brief.",
		"colour":{"unknown":[1,2.50,null]},"hooks":{"Stop":["one"],"PostToolUse":["two"]}}}`
	globalHook = `{"name":"gate-1","type":"GlobalHook","tags":[],"properties":{"eventType":"Stop","activationMode":"onDemand","description":"Checks.","hook":{"failMode":"block","maxRejections":7}}}`
)

// sameJSON compares two documents, whatever their layout.
func sameJSON(t *testing.T, what string, got []byte, want string, without ...string) {
	t.Helper()
	var g, w map[string]any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%s: %q: %v", what, got, err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	for _, k := range without {
		delete(g, k)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestAzure01PutAnswersTheStoredAgent(t *testing.T) {
	w := newWorld(t)
	rec := w.must(t, http.StatusAccepted, "PUT", agents+"/my_agent", full)
	sameJSON(t, "PUT", rec.Body.Bytes(), full, "warnings")
	if !strings.Contains(rec.Body.String(), `"warnings":[]`) {
		t.Errorf("no empty list of warnings: %s", rec.Body)
	}
	got := fields(t, w.must(t, http.StatusAccepted, "PUT", agents+"/warned", `{"name":"warned"}`))
	want := []any{map[string]any{"path": "properties.colour", "line": 2.0, "column": 7.0, "message": "unknown field"}}
	if d := cmp.Diff(want, got["warnings"]); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}

func TestAzure02YAMLAndNames(t *testing.T) {
	w := newWorld(t)
	for _, contentType := range []string{"application/yaml", "text/yaml", "application/yaml; charset=utf-8"} {
		rec := w.must(t, http.StatusAccepted, "PUT", agents+"/y", "name: y", "Content-Type: "+contentType)
		sameJSON(t, contentType, rec.Body.Bytes(), `{"name":"y","type":"ExtendedAgent","properties":{}}`, "warnings")
	}
	w.must(t, http.StatusBadRequest, "PUT", agents+"/other", "name: y", "Content-Type: application/yaml")
	w.must(t, http.StatusNotFound, "GET", agents+"/other", "")
}

func TestAzure03PutReplaces(t *testing.T) {
	w := newWorld(t)
	asked := ""
	w.judge = func(_ context.Context, in gate.Input) gate.Verdict {
		asked += in.Hook.Name + " "
		return gate.Verdict{Outcome: gate.Allow}
	}
	tool := `{"hook_event_name":"PostToolUse","agent_name":"my_agent","tool_name":"Bash"}`
	w.must(t, http.StatusAccepted, "PUT", agents+"/my_agent", full)
	w.must(t, 200, "POST", "/v1/evaluate", tool)
	w.must(t, http.StatusAccepted, "PUT", agents+"/my_agent", `{"name":"my_agent","properties":{"hooks":{"Stop":["one"]}}}`)
	w.must(t, 200, "POST", "/v1/evaluate", tool)
	if asked != "two " {
		t.Errorf("asked %q, want the PostToolUse hook once, before it was replaced away", asked)
	}
	w.must(t, 200, "GET", agents, "")
	w.must(t, http.StatusNoContent, "DELETE", agents+"/my_agent", "")
	w.must(t, 404, "POST", "/v1/evaluate", tool)
}

func TestAzure04Lists(t *testing.T) {
	w := newWorld(t)
	for _, list := range []string{agents, hooks} {
		if got := strings.TrimSpace(w.must(t, 200, "GET", list, "").Body.String()); got != `{"nextLink":null,"value":[]}` {
			t.Errorf("empty %s: %s", list, got)
		}
	}
	for i := range 3 {
		w.must(t, 202, "PUT", fmt.Sprintf("%s/a%d", agents, i), fmt.Sprintf(`{"name":"a%d"}`, i))
	}
	w.must(t, 202, "PUT", hooks+"/gate-1", globalHook)
	sameJSON(t, "agents", w.must(t, 200, "GET", agents, "").Body.Bytes(), `{"value":[{"name":"a0"},{"name":"a1"},{"name":"a2"}],"nextLink":null}`)
	sameJSON(t, "hooks", w.must(t, 200, "GET", hooks, "").Body.Bytes(), `{"value":[`+globalHook+`],"nextLink":null}`)
	w.must(t, 404, "GET", agents+"/missing", "")
	w.must(t, 204, "DELETE", hooks+"/gate-1", "")
	w.must(t, 404, "DELETE", hooks+"/gate-1", "")
}

func TestAzure07GlobalHooks(t *testing.T) {
	w := newWorld(t)
	sameJSON(t, "PUT", w.must(t, 202, "PUT", hooks+"/gate-1", globalHook).Body.Bytes(), globalHook, "warnings")
	sameJSON(t, "GET", w.must(t, 200, "GET", hooks+"/gate-1", "").Body.Bytes(), globalHook)
	for name, body := range map[string]string{"no type": `{"name":"h"}`, "another type": `{"name":"h","type":"ExtendedAgent"}`} {
		t.Run(name, func(t *testing.T) {
			if code, _ := errorOf(t, w.must(t, 400, "PUT", hooks+"/h", body)); code != "InvalidObjectType" {
				t.Errorf("code %s", code)
			}
		})
	}
}

func TestAzure09NameIsOneEscapedSegment(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ escaped, name string }{
		{"plain-1_x", "plain-1_x"}, {"a%20b", "a b"}, {"a%2Fb", "a/b"}, {"a%2fb%252F", "a/b%2F"}, {"a%2525b", "a%25b"}, {"%C3%BC", "ü"}, {"a:b*c", "a:b*c"}, {"a+b", "a+b"},
	} {
		body, _ := json.Marshal(map[string]string{"name": c.name})
		w.must(t, 202, "PUT", agents+"/"+c.escaped, string(body))
		if got := fields(t, w.must(t, 200, "GET", agents+"/"+c.escaped, ""))["name"]; got != c.name {
			t.Errorf("%s: stored as %q, want %q", c.escaped, got, c.name)
		}
	}
	w.must(t, 404, "GET", agents+"/a/b", "")
}

func TestAzure10ReadsBackEqual(t *testing.T) {
	w := newWorld(t)
	w.must(t, 202, "PUT", agents+"/my_agent", full)
	rec := w.must(t, 200, "GET", agents+"/my_agent", "")
	sameJSON(t, "GET", rec.Body.Bytes(), full)
	if !strings.Contains(rec.Body.String(), "2.50") || !strings.Contains(rec.Body.String(), "<b>") {
		t.Errorf("a number or a text was rewritten: %s", rec.Body)
	}
	w.must(t, 202, "PUT", hooks+"/gate-1", globalHook)
	sameJSON(t, "hook", w.must(t, 200, "GET", hooks+"/gate-1", "").Body.Bytes(), globalHook)
}

func TestAzure13ETags(t *testing.T) {
	w := newWorld(t)
	target := agents + "/a"
	put := func(status int, headers ...string) string {
		t.Helper()
		return w.must(t, status, "PUT", target, `{"name":"a"}`, headers...).Header().Get("ETag")
	}
	put(412, "If-Match: *")
	put(412, `If-Match: "v1"`)
	first := put(202, "If-None-Match: *")
	if got := w.must(t, 200, "GET", target, "").Header().Get("ETag"); got != first || first == "" {
		t.Fatalf("GET answers ETag %q, PUT answered %q", got, first)
	}
	put(412, "If-None-Match: *")
	second := put(202, "If-Match: "+first)
	put(412, "If-Match: "+first)
	put(412, "If-Match: W/"+second)
	third := put(202, `If-Match: "x", `+second)
	put(412, `If-Match: "x", "y"`)
	w.must(t, 304, "GET", target, "", "If-None-Match: "+third)
	w.must(t, 200, "GET", target, "", "If-None-Match: "+second)
	w.must(t, 412, "DELETE", target, "", "If-Match: "+second)
	w.must(t, 204, "DELETE", target, "", "If-Match: "+third)
	put(202, "If-None-Match: *")
}

// A condition that is there and cannot be read is refused: ignored, it would
// overwrite what it was to protect.
func TestConditionsOfRFC9110(t *testing.T) {
	w := newWorld(t)
	const target = agents + "/a"
	ask := func(method, header string, values ...string) int {
		t.Helper()
		r := newRequest(method, target, `{"name":"a"}`)
		r.Header[header] = values
		rec := httptest.NewRecorder()
		w.Handler().ServeHTTP(rec, r)
		if rec.Code == 400 {
			if code, message := errorOf(t, rec); code != "ValidationFailure" || !strings.Contains(message, header) {
				t.Errorf("%s with %s %q: %s %q", method, header, values, code, message)
			}
		}
		return rec.Code
	}
	w.must(t, 202, "PUT", target, `{"name":"a"}`)
	for _, malformed := range [][]string{{""}, {" "}, {","}, {", ,"}, {"", ""}, {"abc"}, {`"abc`}, {`abc"`}, {`"`}, {`w/"a"`}, {`W/`}, {`W/*`},
		{`*, "a"`}, {`"a", *`}, {"*", "*"}, {`"a" "b"`}, {`"a"b`}, {`"a b"`}, {"\"a\tb\""}, {`"a", b`}, {`"a`, `b`}} {
		for _, header := range []string{"If-Match", "If-None-Match"} {
			for _, method := range []string{"PUT", "DELETE"} {
				if got := ask(method, header, malformed...); got != 400 {
					t.Errorf("%s with %s %q: %d, want 400", method, header, malformed, got)
				}
			}
		}
		if got := ask("GET", "If-None-Match", malformed...); got != 400 {
			t.Errorf("GET with If-None-Match %q: %d, want 400", malformed, got)
		}
	}
	now := w.must(t, 200, "GET", target, "").Header().Get("ETag")
	for _, c := range []struct {
		name, method, header string
		want                 int
		values               []string
	}{
		{"an empty tag is a tag", "PUT", "If-Match", 412, []string{`""`}},
		{"a comma inside a tag", "PUT", "If-Match", 412, []string{`"x,` + now[1:]}},
		{"weak is never strongly the same", "PUT", "If-Match", 412, []string{"W/" + now}},
		{"nor on DELETE", "DELETE", "If-Match", 412, []string{`"x", W/` + now}},
		{"weak is weakly the same", "GET", "If-None-Match", 304, []string{"W/" + now}},
		{"and refuses to overwrite", "PUT", "If-None-Match", 412, []string{`"x", W/` + now}},
		{"several headers are one list", "GET", "If-None-Match", 304, []string{`"x"`, now}},
		{"empty elements are passed over", "GET", "If-None-Match", 304, []string{`, "x",,` + now + ","}},
		{"star with space round it", "GET", "If-None-Match", 304, []string{" * "}},
		{"one of a list", "PUT", "If-Match", 202, []string{`"x"`, `W/"y",` + now}},
		{"the one of the list that was current is not any more", "DELETE", "If-Match", 412, []string{`"x",` + now}},
		{"other than those", "PUT", "If-None-Match", 202, []string{`"x"`}},
		{"star on DELETE", "DELETE", "If-Match", 204, []string{"*"}},
		{"star, and nothing is there", "DELETE", "If-Match", 412, []string{"*"}},
		{"created under a list", "PUT", "If-None-Match", 202, []string{`"x", "y"`}},
	} {
		if got := ask(c.method, c.header, c.values...); got != c.want {
			t.Errorf("%s: %s with %s %q is %d, want %d", c.name, c.method, c.header, c.values, got, c.want)
		}
	}
}

func TestSpecsOfFiles(t *testing.T) {
	w := newWorld(t)
	w.must(t, 202, "PUT", agents+"/filed", `{"name":"filed","owner":"upload"}`)
	w.must(t, 202, "PUT", agents+"/free", `{"name":"free"}`)
	w.opt.Gate.Policies.SetFiles([]*gate.Spec{{Kind: gate.AgentSpec, Name: "filed", Source: "agents/filed.yaml", Document: json.RawMessage(`{"name":"filed","owner":"file"}`)}})
	for _, method := range []string{"PUT", "DELETE"} {
		code, message := errorOf(t, w.must(t, 409, method, agents+"/filed", `{"name":"filed"}`))
		if code != "conflict" || !strings.Contains(message, "agents/filed.yaml") {
			t.Errorf("%s: %s %q", method, code, message)
		}
	}
	rec := w.must(t, 200, "GET", agents+"/filed", "")
	sameJSON(t, "GET", rec.Body.Bytes(), `{"name":"filed","owner":"file"}`)
	w.must(t, 304, "GET", agents+"/filed", "", "If-None-Match: "+rec.Header().Get("ETag"))
	sameJSON(t, "list", w.must(t, 200, "GET", agents, "").Body.Bytes(), `{"value":[{"name":"filed","owner":"file"},{"name":"free"}],"nextLink":null}`)
}

func TestLoad(t *testing.T) {
	w := newWorld(t)
	for _, s := range []gate.StoredSpec{
		{Kind: gate.AgentSpec, Name: "good", Document: json.RawMessage(`{"name":"good"}`)},
		{Kind: gate.AgentSpec, Name: "bad", Document: json.RawMessage(`{"name":"bad"}`)},
		{Kind: gate.AgentSpec, Name: "broken", Document: json.RawMessage(`{`)},
		{Kind: gate.HookSpec, Name: "gate-1", Document: json.RawMessage(globalHook)},
	} {
		if _, err := w.store.PutSpec(t.Context(), s, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := w.opt.Gate.Policies
	if p.Find(gate.AgentSpec, "good") == nil || p.Find(gate.HookSpec, "gate-1") == nil || p.Find(gate.AgentSpec, "bad") != nil || len(p.Agents()) != 1 {
		t.Errorf("in force: %d agents, %d hooks", len(p.Agents()), len(p.Hooks()))
	}
	for _, name := range []string{"name=bad", "name=broken", "Handoffs cannot be null"} {
		if !strings.Contains(w.log.String(), name) {
			t.Errorf("log lacks %q: %s", name, w.log)
		}
	}
	w.store.down = context.DeadlineExceeded
	if err := w.Load(t.Context()); err == nil {
		t.Error("a store that is down loads without error")
	}
}

// uneven is a store whose answers come late, not always equally.
type uneven struct{ *memory }

func (u uneven) PutSpec(ctx context.Context, s gate.StoredSpec, ifMatch string) (gate.StoredSpec, error) {
	stored, err := u.memory.PutSpec(ctx, s, ifMatch)
	time.Sleep(time.Duration(len(s.Document)%3) * time.Millisecond)
	return stored, err
}

// TestStoreAndPoliciesAgree races writers of one name: what is stored last must
// be what is in force.
func TestStoreAndPoliciesAgree(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Store = uneven{o.Store.(*memory)} })
	var writers sync.WaitGroup
	for i := range 32 {
		writers.Go(func() {
			w.do("PUT", agents+"/a", fmt.Sprintf(`{"name":"a","owner":"%d%s"}`, i, strings.Repeat(" ", i%7)))
		})
	}
	writers.Wait()
	stored, _ := w.store.Spec(t.Context(), gate.AgentSpec, "a")
	if got := w.opt.Gate.Policies.Find(gate.AgentSpec, "a"); string(got.Document) != string(stored.Document) {
		t.Errorf("in force is %s, stored is %s", got.Document, stored.Document)
	}
}

func TestAzure12Threads(t *testing.T) {
	w := newWorld(t)
	asked := map[string]int{}
	w.judge = func(_ context.Context, in gate.Input) gate.Verdict {
		asked[in.Event.Session+" "+in.Hook.Name]++
		return gate.Verdict{Outcome: gate.Allow}
	}
	w.must(t, 202, "PUT", hooks+"/gate-1", globalHook)
	w.must(t, 202, "PUT", hooks+"/audit", `{"name":"audit","type":"GlobalHook","properties":{"eventType":"PostToolUse"}}`)
	list := func(gate1, audit bool) string {
		return fmt.Sprintf(`{"hooks":[{"name":"gate-1","eventType":"Stop","activationMode":"onDemand","description":"Checks.","isActive":%v,"isSystemHook":false,"canModify":true},
			{"name":"audit","eventType":"PostToolUse","activationMode":"always","description":"","isActive":%v,"isSystemHook":false,"canModify":true}]}`, gate1, audit)
	}
	thread := func(id string) []byte { return w.must(t, 200, "GET", "/api/v1/threads/"+id+"/hooks", "").Body.Bytes() }
	stopIn := func(session string) {
		w.must(t, 200, "POST", "/v1/evaluate", `{"hook_event_name":"Stop","session_id":"`+session+`"}`)
	}

	sameJSON(t, "new thread", thread("t1"), list(false, true))
	stopIn("t1")
	sameJSON(t, "activate", w.must(t, 200, "POST", "/api/v1/threads/t1/hooks/gate-1/activate", "{}").Body.Bytes(),
		`{"name":"gate-1","eventType":"Stop","activationMode":"onDemand","description":"Checks.","isActive":true,"isSystemHook":false,"canModify":true}`)
	w.must(t, 200, "POST", "/api/v1/threads/t1/hooks/audit/deactivate", "")
	sameJSON(t, "after", thread("t1"), list(true, false))
	sameJSON(t, "another thread", thread("t2"), list(false, true))
	stopIn("t1")
	stopIn("t2")
	if d := cmp.Diff(map[string]int{"t1 gate-1": 1}, asked); d != "" {
		t.Errorf("hooks asked (-want +got):\n%s", d)
	}
	w.must(t, 200, "POST", "/api/v1/threads/t1/hooks/gate-1/deactivate", `{"x":1}`)
	sameJSON(t, "off again", thread("t1"), list(false, false))
	w.must(t, 200, "POST", "/api/v1/threads/a%2Fb/hooks/gate-1/activate", "{}")
	if on := w.store.active["a/b"]["gate-1"]; !on {
		t.Error("a thread id with a slash is not one segment")
	}
}

// What another process changes between our look and our write is seen by the
// store, which is told the version that was looked at.
func TestAzure13ConditionHoldsInTheStore(t *testing.T) {
	for _, method := range []string{"PUT", "DELETE"} {
		for _, condition := range []string{"*", ""} {
			w := newWorld(t)
			const target = agents + "/a"
			etag := w.must(t, 202, "PUT", target, `{"name":"a"}`).Header().Get("ETag")
			w.store.read = func() { w.store.specs[0].ETag = `"another"` }
			if condition == "" {
				condition = etag
			}
			w.must(t, 412, method, target, `{"name":"a"}`, "If-Match: "+condition)
		}
	}
}
