package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"stopgate/gate"
)

// namingHost is a host whose payload names the session and the event.
type namingHost struct{}

func (namingHost) Decode(payload []byte, q HostQuery) (gate.Event, error) {
	var p struct{ Session, Event string }
	err := json.Unmarshal(payload, &p)
	return gate.Event{Name: gate.EventName(p.Event), Protocol: "naming", Agent: q.Agent, Session: p.Session, Payload: payload}, err
}

func (namingHost) Encode(ev gate.Event, d gate.Decision) ([]byte, string) {
	return fmt.Appendf(nil, `{"code":%q}`, d.GateError.Code), typeJSON
}

// What is refused unread is on record as the event that it was, as far as it was here,
// and the list says why.
func TestRefusalsAreRecordedAsTheEventsTheyWere(t *testing.T) {
	const named = `{"session":"s9","event":"Stop"`
	for name, c := range map[string]struct {
		full    bool // there is no place
		body    string
		code    string
		session string
		event   gate.EventName
		payload string
	}{
		"no place":                {true, named + `,"last":"done"}`, "overloaded", "s9", gate.Stop, named + `,"last":"done"}`},
		"no place for a long one": {true, named + `,"last":"` + strings.Repeat("x", 2*smallBody) + `"}`, "overloaded", "s9", gate.Stop, named + "}"},
		"no room":                 {false, named + `,"last":"` + strings.Repeat("x", 3*smallBody) + `"}`, "overloaded", "s9", gate.Stop, named + "}"},
		"too long":                {false, named + `,"last":"` + strings.Repeat("x", 1<<20) + `"}`, "body_too_large", "s9", gate.Stop, named + "}"},
		"named too late":          {true, `{"last":"` + strings.Repeat("x", 2*smallBody) + `",` + named[1:] + `}`, "overloaded", "", "", "{}"},
		"no object":               {true, `[]`, "overloaded", "", "", "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) {
				o.Limits.BodyBytes, o.Limits.BufferedBytes, o.Limits.InFlight = 1<<20, 2*smallBody, 1
				o.Protocol = func(string) (HostProtocol, bool) { return namingHost{}, true }
			})
			w.agent(t, "marker", gate.Stop, "ends")
			ask := func() {
				if got := w.must(t, 200, "POST", "/v1/hooks/naming?agent=marker", c.body).Body.String(); got != `{"code":"`+c.code+`"}` {
					t.Errorf("answer %s", got)
				}
			}
			if c.full {
				w.judge = func(context.Context, gate.Input) gate.Verdict { ask(); return gate.Verdict{Outcome: gate.Allow} }
				w.must(t, 200, "POST", "/v1/evaluate", stop)
			} else {
				ask()
			}
			r := w.store.records[0]
			if r.Agent != "marker" || r.Session != c.session || r.Event != c.event || string(r.Payload) != c.payload || r.GateError == nil {
				t.Errorf("record %+v", r)
			}
			var list struct {
				Value []struct {
					GateError struct{ Code string } `json:"gate_error"`
				}
			}
			if err := json.Unmarshal(w.must(t, 200, "GET", "/v1/evaluations", "").Body.Bytes(), &list); err != nil {
				t.Fatal(err)
			}
			if got := list.Value[len(list.Value)-1].GateError.Code; got != c.code {
				t.Errorf("the list says %q", got)
			}
		})
	}
}
