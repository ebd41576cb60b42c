package server

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

func TestEvaluations(t *testing.T) {
	w := newWorld(t)
	w.judge = needsMarker
	w.agent(t, "marker", gate.Stop, "ends")
	if got := strings.TrimSpace(w.must(t, 200, "GET", "/v1/evaluations", "").Body.String()); got != `{"value":[],"next":null}` {
		t.Errorf("empty list: %s", got)
	}
	for range 3 {
		w.must(t, 200, "POST", "/v1/evaluate", stop)
	}
	page := fields(t, w.must(t, 200, "GET", "/v1/evaluations?agent=marker&decision=block&event=Stop&limit=2", ""))
	if len(page["value"].([]any)) != 2 || page["next"] != "2" {
		t.Errorf("page %v", page)
	}
	one := fields(t, w.must(t, 200, "GET", "/v1/evaluations/ev-0001", ""))
	if one["evaluation_id"] != "ev-0001" || one["agent"] != "marker" || one["event"] != "Stop" || one["protocol"] != "native" {
		t.Errorf("record %v", one)
	}
	if one["payload"].(map[string]any)["final_output"] != "done" {
		t.Errorf("payload %v", one["payload"])
	}
	if !strings.Contains(w.must(t, 200, "GET", "/v1/evaluations/ev-0001", "").Body.String(), "secret evidence") {
		t.Error("the record lacks its evidence")
	}
}

func TestFilterIsHandedOn(t *testing.T) {
	values, err := url.ParseQuery("agent=a&session=s%2F1&event=PreToolUse&decision=ask&hook=h&since=2026-01-31T12:00:00Z&until=2026-02-01T00:00:00%2B01:00&dry_run=false&limit=1000&cursor=c")
	if err != nil {
		t.Fatal(err)
	}
	got, err := readFilter(values)
	want := gate.RecordFilter{Agent: "a", Session: "s/1", Event: gate.PreToolUse, Decision: gate.Ask, Hook: "h", DryRun: new(false), Limit: 1000, Cursor: "c",
		Since: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), Until: time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC)}
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDryRun(t *testing.T) {
	w := newWorld(t)
	w.judge = needsMarker
	w.agent(t, "marker", gate.Stop, "ends")
	for name, c := range map[string]struct{ body, decision, hook string }{
		"agent, named by its spec": {`{"hook_event_name":"Stop","session_id":"s1","spec":{"name":"fresh","properties":{"hooks":{"Stop":["inline"]}}}}`, "block", "inline"},
		"agent, named by both":     {`{"hook_event_name":"Stop","agent_name":"fresh","spec":{"name":"fresh","properties":{"hooks":{"Stop":["inline"]}}}}`, "block", "inline"},
		"hook on demand, no agent": {`{"hook_event_name":"Stop","session_id":"s1","spec":{"name":"g","type":"GlobalHook","properties":{"eventType":"Stop","activationMode":"onDemand"}}}`, "block", "g"},
		"hook, any agent's name":   {`{"hook_event_name":"Stop","agent_name":"whoever","spec":{"name":"g","type":"GlobalHook","properties":{"eventType":"Stop"}}}`, "block", "g"},
		"YAML":                     {`{"hook_event_name":"Stop","spec":"name: y\n"}`, "allow", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := fields(t, w.must(t, 200, "POST", "/v1/dry-run", c.body))
			hooks := got["hooks"].([]any)
			if got["decision"] != c.decision || (c.hook == "") != (len(hooks) == 0) {
				t.Fatalf("got %v", got)
			}
			if c.hook != "" && hooks[0].(map[string]any)["name"] != c.hook {
				t.Errorf("asked %v, want %s", hooks, c.hook)
			}
			rec, err := w.store.Record(t.Context(), got["evaluation_id"].(string))
			if err != nil || !rec.DryRun || string(rec.Payload) != c.body {
				t.Errorf("record: dry %v, payload %s, error %v", rec.DryRun, rec.Payload, err)
			}
		})
	}
	if len(w.store.counts) != 0 {
		t.Errorf("a dry run counted: %v", w.store.counts)
	}
	if w.opt.Gate.Policies.Find(gate.AgentSpec, "fresh") != nil || w.opt.Gate.Policies.Find(gate.HookSpec, "g") != nil {
		t.Error("a dry run put its spec in force")
	}
}

func TestValidate(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct{ contentType, body, want string }{
		"sound":                    {"application/json", `{"name":"a"}`, `{"valid":true,"findings":[]}`},
		"YAML":                     {"text/yaml", "name: a", `{"valid":true,"findings":[]}`},
		"warning":                  {"application/json", `{"name":"warned"}`, `{"valid":true,"findings":[{"severity":"warning","path":"properties.colour","line":2,"column":7,"message":"unknown field"}]}`},
		"errors, told as findings": {"application/json", `{"name":"bad"}`, `{"valid":false,"findings":[{"severity":"warning","path":"spec","line":0,"column":0,"message":"odd"},{"severity":"error","path":"properties.handoffs","line":3,"column":5,"message":"Handoffs cannot be null"},{"severity":"error","path":"properties.hooks","line":4,"column":1,"message":"no"}]}`},
		"error, told as an error":  {"application/json", `{"kind":"GlobalHook"}`, `{"valid":false,"findings":[{"severity":"error","path":"","line":0,"column":0,"message":"type must be \"GlobalHook\""}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			rec := w.must(t, 200, "POST", "/v1/validate", c.body, "Content-Type: "+c.contentType)
			if got := strings.TrimSpace(rec.Body.String()); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	w.must(t, 200, "POST", "/v1/validate?dialect=azure", `{"name":"a"}`)
	if len(w.store.specs) != 0 {
		t.Error("validate stored something")
	}
}

func TestReportedFaultsOfRequests(t *testing.T) {
	t.Run("fault G38: size limit comes before fail-open", func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Limits.BodyBytes = 200 })
		w.agent(t, "marker", gate.Stop, "ends")
		body := strings.Replace(stop, "done", strings.Repeat("x", 200), 1)
		w.must(t, 413, "POST", "/v1/evaluate", body)
		r := newRequest("POST", "/v1/evaluate", body)
		r.ContentLength = -1 // as a chunked upload has it
		if status := serve(w.Server, r); status != 413 {
			t.Errorf("chunked: status %d", status)
		}
		r = newRequest("POST", "/v1/evaluate", body)
		r.Body = io.NopCloser(iotest.ErrReader(errors.New("was read")))
		if status := serve(w.Server, r); status != 413 {
			t.Errorf("a body that says it is too large was read: status %d", status)
		}
		if exact := stop + strings.Repeat(" ", 200-len(stop)); len(exact) == 200 {
			w.must(t, 200, "POST", "/v1/evaluate", exact)
		}
		if len(w.store.records) != 1 {
			t.Errorf("%d records, want the one of the body that fits", len(w.store.records))
		}
	})
	t.Run("fault G29: tool_input of any shape reaches the record", func(t *testing.T) {
		w := newWorld(t)
		w.agent(t, "auditor", gate.PreToolUse, "audit")
		for _, input := range []string{`"ls"`, `["ls"]`, `null`, `{"a":{"b":[1]}}`, `7`} {
			body := `{"hook_event_name":"PreToolUse","agent_name":"auditor","tool_name":"code_interpreter","tool_input":` + input + `,"new_field":{"x":1}}`
			id := fields(t, w.must(t, 200, "POST", "/v1/evaluate", body))["evaluation_id"].(string)
			if rec, _ := w.store.Record(t.Context(), id); string(rec.Payload) != body {
				t.Errorf("payload %s, want %s", rec.Payload, body)
			}
		}
	})
	t.Run("fault encoding-05: a body without charset is read as UTF-8, bad bytes and all", func(t *testing.T) {
		var seen string
		w := newWorld(t, func(o *Options) {
			o.Decode = func(body []byte) (gate.Event, error) { seen = string(body); return decode(body) }
		})
		body := "{\"hook_event_name\":\"Stop\",\"final_output\":\"fa\xe7ade\"}"
		id := fields(t, w.must(t, 200, "POST", "/v1/evaluate", body))["evaluation_id"].(string)
		if seen != body {
			t.Errorf("decoder saw %q", seen)
		}
		w.must(t, 200, "GET", "/v1/evaluations/"+id, "")
	})
	t.Run("fault stdout-04: a raw control character is 400 with its offset", func(t *testing.T) {
		rec := newWorld(t).must(t, 400, "POST", "/v1/evaluate", "{\"hook_event_name\":\"Stop\",\"prompt\":\"a\nb\"}")
		if code, message := errorOf(t, rec); code != "invalid_json" || !strings.Contains(message, "offset 38") {
			t.Errorf("%s %q", code, message)
		}
	})
	t.Run("fault http-02: the health endpoint needs neither store nor login", func(t *testing.T) {
		w := newWorld(t)
		w.store.down = context.DeadlineExceeded
		if got := strings.TrimSpace(w.must(t, 200, "GET", "/healthz", "").Body.String()); got != `{"status":"ok"}` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("fault loop-02: silence is no objection and invents no text", func(t *testing.T) {
		w := newWorld(t)
		w.agent(t, "marker", gate.Stop, "ends")
		got := fields(t, w.must(t, 200, "POST", "/v1/evaluate", stop))
		if got["decision"] != "allow" || got["reason"] != "" || len(got["messages"].([]any)) != 0 {
			t.Errorf("got %v", got)
		}
	})
}

// A conversation with its secrets is for an administrator who asks for it.
func TestWhoSeesAConversationAsItWas(t *testing.T) {
	w := newGuardedWorld(t)
	w.store.last = true
	for _, tt := range []struct {
		who, query string
		status     int
		original   bool
	}{
		{"read", "", 200, false}, {"read", "?original=false", 200, false}, {"read", "?original=true", 403, false},
		{"admin", "", 200, false}, {"admin", "?original=true", 200, true}, {"admin", "?original=yes", 400, false},
	} {
		rec := w.must(t, tt.status, "GET", "/v1/evaluations/ev-0001/transcript"+tt.query, "", as(tt.who))
		if got := strings.HasPrefix(rec.Body.String(), "original: "); got != tt.original {
			t.Errorf("%s asks for %q: %s", tt.who, tt.query, rec.Body)
		}
	}
}
