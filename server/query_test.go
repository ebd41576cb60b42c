package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"stopgate/gate"
)

// TestEveryRouteKnowsItsQuery goes over the routes as they are registered: what is
// misspelt in a URL is never taken in silence. For a host see
// TestAHostsQueryIsTheGatesToAnswer.
func TestEveryRouteKnowsItsQuery(t *testing.T) {
	for _, r := range newWorld(t).echo.Routes() {
		want := everyRoute[strings.Replace(r.Method+" "+r.Path, "HEAD ", "GET ", 1)]
		if strings.HasPrefix(r.Path, "/v1/hooks/") {
			continue
		}
		w := newGuardedWorld(t)
		target := strings.NewReplacer("ev-mine", "ev-0001").Replace(want.target)
		separator := "?"
		if strings.Contains(target, "?") {
			separator = "&"
		}
		headers := []string{as("admin")}
		if want.contentType != "" {
			headers = append(headers, "Content-Type: "+want.contentType)
		}
		rec := w.do(r.Method, target+separator+"agnet=mine", want.body, headers...)
		if rec.Code != http.StatusBadRequest {
			t.Errorf("%s %s: a parameter that is unknown is answered %d", r.Method, target, rec.Code)
		}
		if r.Method == http.MethodHead {
			continue
		}
		if code, message := errorOf(t, rec); !strings.EqualFold(strings.ReplaceAll(code, "_", ""), "ValidationFailure") || !strings.Contains(message, `"agnet" is unknown; there are`) {
			t.Errorf("%s %s: %s %q", r.Method, target, code, message)
		}
	}
}

func TestQuery(t *testing.T) {
	q := append(anyOf("agent"), oneOf("event", gate.Stop, gate.Start), param{name: "name[]", many: true})
	for raw, says := range map[string]string{
		"":                        "",
		"agent=a%20b&event=Stop":  "",
		"agent=&event=":           "",
		"name[]=a&name[]=b":       "",
		"agnet=a":                 `query parameter "agnet" is unknown; there are ["agent" "event" "name[]"]`,
		"Agent=a":                 `query parameter "Agent" is unknown; there are ["agent" "event" "name[]"]`,
		"agent=a&agent=a":         `query parameter "agent" is given 2 times`,
		"event=stop":              `query parameter event is "stop", want one of ["Stop" "Start"]; did you mean "Stop"?`,
		"agent=a;event=Stop":      "query cannot be read: invalid semicolon separator in query",
		"agent=%zz":               `query cannot be read: invalid URL escape "%zz"`,
		strings.Repeat("x", 1000): `query parameter "` + strings.Repeat("x", 40) + `" is unknown; there are ["agent" "event" "name[]"]`,
	} {
		got := ""
		if err := q.check(raw); err != nil {
			got = err.Error()
		}
		if got != says {
			t.Errorf("%.60q: %q, want %q", raw, got, says)
		}
	}
	if err := query(nil).check("x=1"); err == nil || !strings.Contains(err.Error(), "there are none here") {
		t.Errorf("of a route without parameters: %v", err)
	}
}

// TestOpenAPIHasEveryParameter: the table's parameters, with their values, and no
// others.
func TestOpenAPIHasEveryParameter(t *testing.T) {
	doc := document(t)
	for _, r := range newWorld(t).routes() {
		item := at(t, doc, "paths", openAPIPath(r.path)).(map[string]any)
		operation := at(t, item, strings.ToLower(r.method)).(map[string]any)
		documented := map[string]string{}
		for _, list := range []any{item["parameters"], operation["parameters"]} {
			params, _ := list.([]any)
			for _, p := range params {
				p := p.(map[string]any)
				if ref, ok := p["$ref"].(string); ok {
					p = at(t, doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...).(map[string]any)
				}
				if p["in"] == "query" {
					documented[p["name"].(string)] = valuesOf(t, doc, p["schema"].(map[string]any))
				}
			}
		}
		known := map[string]string{}
		for _, p := range r.query {
			sorted := slices.Clone(p.values)
			slices.Sort(sorted)
			known[p.name] = fmt.Sprint(sorted)
			if p.name == "format" { // whose values package transcripts knows, and checks
				known[p.name] = documented[p.name]
			}
		}
		a, _ := json.Marshal(known)
		b, _ := json.Marshal(documented)
		if string(a) != string(b) {
			t.Errorf("%s %s takes %s, documented are %s", r.method, r.path, a, b)
		}
	}
}

// valuesOf are the values of a parameter that is an enumeration.
func valuesOf(t *testing.T, doc, schema map[string]any) string {
	if ref, ok := schema["$ref"].(string); ok {
		schema = at(t, doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...).(map[string]any)
	}
	values := []string{}
	if list, ok := schema["enum"].([]any); ok {
		for _, v := range list {
			values = append(values, v.(string))
		}
	}
	if schema["type"] == "boolean" {
		values = []string{"false", "true"}
	}
	slices.Sort(values)
	return fmt.Sprint(values)
}

// TestAHostsQueryIsTheGatesToAnswer: most hosts take a 4xx for "allow", so what is
// wrong in the URL of a host's hook is answered by on_gate_error, recorded and
// counted.
func TestAHostsQueryIsTheGatesToAnswer(t *testing.T) {
	for query, says := range map[string]string{
		"agnet=marker":              `"agnet" is unknown`,
		"agent=marker&agent=other":  "given 2 times",
		"agent=":                    "agent is empty",
		"agent=marker&deadline=0":   "deadline",
		"agent=marker&deadline=NaN": "deadline",
		"agent=marker&deadline=5s":  "deadline",
		"agent=marker&stale=yes":    "stale",
		"agent=marker&unattended=1": "unattended",
		"agent=marker;deadline=1":   "cannot be read",
	} {
		for _, mode := range []gate.FailMode{gate.FailAllow, gate.FailBlock} {
			w := newWorld(t, func(o *Options) {
				o.Gate.OnGateError = mode
				o.Protocol = func(string) (HostProtocol, bool) { return urlHost{}, true }
			})
			w.agent(t, "marker", gate.Stop, "ends")
			rec := w.must(t, 200, "POST", "/v1/hooks/plain?"+query, "{}")
			if got, want := rec.Body.String(), fmt.Sprintf(`{"decision":%q}`, mode); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
			if len(w.store.records) != 1 || w.store.records[0].GateError == nil || w.store.records[0].GateError.Code != gate.BadQuery || !strings.Contains(w.store.records[0].GateError.Message, says) {
				t.Errorf("%s: recorded is %+v", query, w.store.records)
			}
			if metrics := w.must(t, 200, "GET", "/metrics", "").Body.String(); !strings.Contains(metrics, `stopgate_gate_errors_total{code="bad_query"} 1`) {
				t.Errorf("%s: it is not counted", query)
			}
		}
	}
}

// TestALimitedHostsQuery: with its agent misspelt it is not its own agent's, which is
// no denial of the gate's either; nothing of it is kept.
func TestALimitedHostsQuery(t *testing.T) {
	w := newGuardedWorld(t, func(o *Options) {
		o.Gate.OnGateError = gate.FailBlock
		o.Protocol = func(string) (HostProtocol, bool) { return urlHost{}, true }
	})
	for query, records := range map[string]int{"agnet=mine": 0, "agent=theirs&deadline=x": 0, "agent=mine&session=s-theirs&deadline=x": 0, "agent=mine&deadline=x": 1} {
		before := len(w.store.records)
		if got := w.must(t, 200, "POST", "/v1/hooks/plain?"+query, "{}", as("mines-agent")).Body.String(); got != `{"decision":"block"}` {
			t.Errorf("%s: %s", query, got)
		}
		if n := len(w.store.records) - before; n != records {
			t.Errorf("%s: %d records, want %d", query, n, records)
		}
	}
}

// eventHost knows one event, which its payload may name, or else the URL.
type eventHost struct{ urlHost }

func (h eventHost) Decode(body []byte, q HostQuery) (gate.Event, error) {
	var said struct{ Event string }
	_ = json.Unmarshal(body, &said)
	name := said.Event
	if name == "" {
		name = q.Event
	}
	q.Event = ""
	ev, _ := h.urlHost.Decode(body, q)
	if name != "Stop" {
		ev.Name = ""
	}
	if name == "" {
		return ev, gate.Errorf(gate.CodeValidation, "payload names no event")
	}
	return ev, nil
}

// TestAnEventThatIsMisspeltInTheURL: the host has another name for it, so that
// nothing is gated. What a payload names is the host's own, and no objection
// (spec/claude-code.md 9).
func TestAnEventThatIsMisspeltInTheURL(t *testing.T) {
	for _, c := range []struct {
		query, body string
		status      int
		failed      bool
	}{
		{"?event=Stop", `{}`, 200, false},
		{"?event=Stopp", `{}`, 200, true},
		{"", `{"event":"Notification"}`, 200, false},
		{"?event=Stop", `{"event":"Notification"}`, 200, false},
		{"?event=Stopp", `{"event":"Notification"}`, 200, false},
		{"?event=Stopp", `{"event":"Stop"}`, 200, false},
		{"", `{}`, 400, false},
	} {
		w := newWorld(t, func(o *Options) { o.Protocol = func(string) (HostProtocol, bool) { return eventHost{}, true } })
		w.must(t, c.status, "POST", "/v1/hooks/plain"+c.query, c.body)
		counted := strings.Contains(w.must(t, 200, "GET", "/metrics", "").Body.String(), `stopgate_gate_errors_total{code="bad_query"} 1`)
		if logged := strings.Contains(w.log.String(), "Stopp"); counted != c.failed || logged != c.failed {
			t.Errorf("%s %s: counted %v, logged %v, want %v", c.query, c.body, counted, logged, c.failed)
		}
	}
}
