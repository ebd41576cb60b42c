package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stopgate/gate"
)

func TestOverride(t *testing.T) {
	w := newWorld(t)
	w.agent(t, "marker", gate.Stop, "ends")
	const target = "/v1/sessions/s%2F1/override"
	w.must(t, 404, "GET", target, "")
	w.must(t, 404, "DELETE", target, "")

	put := w.must(t, 200, "PUT", target, `{"reason":" staging is down ","minutes":30}`).Body.Bytes()
	sameJSON(t, "GET", w.must(t, 200, "GET", target, "").Body.Bytes(), string(put))
	o := w.store.overrides["s/1"]
	if o.Session != "s/1" || o.Reason != "staging is down" || o.By != "anonymous" || strings.Join(o.Agents, " ") != "*" || o.Until.Sub(o.Since) != 30*time.Minute {
		t.Errorf("stored %+v", o)
	}
	until := time.Now().Add(23 * time.Hour).Truncate(time.Second)
	w.must(t, 200, "PUT", target, fmt.Sprintf(`{"reason":"r","until":%q}`, until.Format(time.RFC3339)))
	if o := w.store.overrides["s/1"]; !o.Until.Equal(until) {
		t.Errorf("stored %+v", o)
	}
	if shown := w.must(t, 200, "GET", "/v1/sessions/s%2F1", "").Body.String(); !strings.Contains(shown, `"override":{"session_id":"s/1","reason":"r"`) {
		t.Errorf("the session is %s", shown)
	}
	w.must(t, 204, "DELETE", target, "")
	w.must(t, 404, "GET", target, "")
	w.must(t, 404, "GET", "/v1/sessions/s%2F1", "")
	var actions []gate.Action
	for _, e := range w.store.audit {
		if e.Kind == "override" {
			actions = append(actions, e.Action)
		}
	}
	if !slices.Equal(actions, []gate.Action{gate.OverrideSet, gate.OverrideSet, gate.OverrideRemoved}) {
		t.Errorf("audited %q", actions)
	}

	w.store.overrides["s/1"] = gate.Override{Session: "s/1", Reason: "r", Since: time.Now().Add(-time.Hour), Until: time.Now().Add(-time.Second)}
	w.must(t, 404, "GET", target, "") // it is over
	delete(w.store.overrides, "s/1")

	for name, body := range map[string]string{
		"nothing": `{}`, "no reason": `{"minutes":1}`, "a blank reason": `{"reason":"  ","minutes":1}`, "a long reason": `{"reason":"` + strings.Repeat("r", 2001) + `","minutes":1}`,
		"another name": `{"reason":"r","minutes":1,"by":"jane"}`, "no end": `{"reason":"r"}`, "two ends": `{"reason":"r","minutes":1,"until":"2030-01-01T00:00:00Z"}`,
		"no time": `{"reason":"r","minutes":0}`, "less than none": `{"reason":"r","minutes":-1}`, "more than a day": `{"reason":"r","minutes":1441}`,
		"a number that runs over": `{"reason":"r","minutes":9223372036854775807}`, "the past": `{"reason":"r","until":"2020-01-01T00:00:00Z"}`,
		"far away": `{"reason":"r","until":"2999-01-01T00:00:00Z"}`, "another field": `{"reason":"r","minutes":1,"hours":1}`, "a list": `[]`, "a word": `{"reason":"r","minutes":"1"}`,
		"null": `null`,
	} {
		if rec := w.must(t, 400, "PUT", target, body); !strings.Contains(rec.Body.String(), "validation_failure") {
			t.Errorf("%s: %s", name, rec.Body)
		}
	}
	w.must(t, 400, "PUT", target, `{"reason":`)
	w.must(t, 400, "PUT", target, `{"reason":"r","minutes":1} {}`)
	w.must(t, 415, "PUT", target, `{"reason":"r","minutes":1}`, "Content-Type: text/plain")
	if len(w.store.overrides) != 0 {
		t.Errorf("stored %+v", w.store.overrides)
	}
}

// A credential that is limited to some agents lets go only of those, whoever else
// joins the session later.
func TestOverrideIsForItsSettersAgents(t *testing.T) {
	w := newGuardedWorld(t)
	w.must(t, 200, "PUT", "/v1/sessions/s-mine/override", `{"reason":"r","minutes":1}`, as("mine"))
	if o := w.store.overrides["s-mine"]; o.By != "mine" || !slices.Equal(o.Agents, []string{"mine"}) {
		t.Errorf("stored %+v", o)
	}
}

// An override is over when its time is, in lists too.
func TestOverrideEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.agent(t, "strict", gate.Stop, "refuses")
		w.judge = func(context.Context, gate.Input) gate.Verdict { return gate.Verdict{Outcome: gate.Block, Reason: "no"} }
		stop := `{"hook_event_name":"Stop","agent_name":"strict","session_id":"s"}`
		decision := func() string {
			t.Helper()
			var d gate.Decision
			if err := json.Unmarshal(w.must(t, 200, "POST", "/v1/evaluate", stop).Body.Bytes(), &d); err != nil {
				t.Fatal(err)
			}
			return string(d.Outcome)
		}
		w.must(t, 200, "PUT", "/v1/sessions/s/override", `{"reason":"r","minutes":30}`)
		time.Sleep(30*time.Minute - time.Millisecond)
		if got := decision(); got != "allow" {
			t.Errorf("before its end: %s", got)
		}
		time.Sleep(time.Millisecond)
		if got := decision(); got != "block" {
			t.Errorf("at its end: %s", got)
		}
		w.must(t, 404, "GET", "/v1/sessions/s/override", "")
		if shown := w.must(t, 200, "GET", "/v1/sessions/s", "").Body.String(); strings.Contains(shown, `"override":`) {
			t.Errorf("the session is %s", shown)
		}
		if got := w.must(t, 200, "GET", "/metrics", "").Body.String(); !strings.Contains(got, `stopgate_overridden_total{agent="strict",event="Stop"} 1`) {
			t.Error("one Stop was let go, and is not counted")
		}
	})
}
