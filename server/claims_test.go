package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"stopgate/gate"
)

// TestAnEventKeepsToItsCallersAgents: whatever an event names, a limited caller
// reaches nothing of another agent by it.
func TestAnEventKeepsToItsCallersAgents(t *testing.T) {
	plain := func(o *Options) {
		o.Gate.OnGateError = gate.FailBlock // what a host is answered that reaches for more, since it takes a 4xx for "allow"
		o.Protocol = func(string) (HostProtocol, bool) { return urlHost{}, true }
	}
	for name, c := range map[string]struct {
		target, body string
		want         int
		says         string
	}{
		"its own agent, no session":            {"/v1/evaluate", `{"hook_event_name":"Stop","agent_name":"mine"}`, 200, ""},
		"its own session":                      {"/v1/evaluate", stopOf("mine", "s-mine"), 200, ""},
		"a new session":                        {"/v1/evaluate", stopOf("mine", "new"), 200, ""},
		"another agent":                        {"/v1/evaluate", stopOf("theirs", "new"), 403, "limited"},
		"an agent that is not there":           {"/v1/evaluate", stopOf("nobody", "new"), 403, "limited"},
		"no agent, which is the default one":   {"/v1/evaluate", `{"hook_event_name":"Stop"}`, 403, "default"},
		"another's session":                    {"/v1/evaluate", stopOf("mine", "s-theirs"), 404, "not known"},
		"a session of both":                    {"/v1/evaluate", stopOf("mine", "s-both"), 404, "not known"},
		"a conversation that is nobody's":      {"/v1/evaluate", stopOf("mine", "s-nobodys"), 404, "not known"},
		"a sub-agent's end, of its own":        {"/v1/hooks/plain?event=SubagentStop&agent=mine&tool=mine&session=new", "{}", 200, ""},
		"a sub-agent without a spec":           {"/v1/hooks/plain?event=SubagentStop&agent=mine&tool=helper&session=new", "{}", 200, ""},
		"a sub-agent's end, moved to another":  {"/v1/hooks/plain?event=SubagentStop&agent=mine&tool=theirs&session=new", "{}", 200, "block"},
		"host: its own":                        {"/v1/hooks/plain?agent=mine&session=s-mine", "{}", 200, ""},
		"host: another agent":                  {"/v1/hooks/plain?agent=theirs&session=new", "{}", 200, "block"},
		"host: another's session":              {"/v1/hooks/plain?agent=mine&session=s-theirs", "{}", 200, "block"},
		"host: another's upload":               {"/v1/hooks/plain?agent=mine&session=new&transcript=s-theirs", "{}", 200, "block"},
		"host: its own upload":                 {"/v1/hooks/plain?agent=mine&session=new&transcript=s-mine", "{}", 200, ""},
		"dry run: another's session":           {"/v1/dry-run", `{"hook_event_name":"Stop","session_id":"s-theirs","spec":{"name":"mine"}}`, 404, "not known"},
		"dry run: an agent-level hook, theirs": {"/v1/dry-run", `{"hook_event_name":"Stop","agent_name":"theirs","spec":{"name":"h","type":"GlobalHook"}}`, 403, "limited"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newGuardedWorld(t, plain)
			w.must(t, 200, "POST", "/v1/evaluate", stopOf("mine", "s-both"), as("admin"))
			w.must(t, 200, "POST", "/v1/evaluate", stopOf("theirs", "s-both"), as("admin"))
			w.must(t, 200, "PUT", "/v1/sessions/s-nobodys/transcript", "x", as("admin"), "Content-Type: text/plain")
			before := len(w.store.records)
			rec := w.do("POST", c.target, c.body, as("mine"))
			if rec.Code != c.want || !strings.Contains(rec.Body.String(), c.says) {
				t.Errorf("%d %s, want %d with %q", rec.Code, rec.Body, c.want, c.says)
			}
			if stored := len(w.store.records) - before; (stored == 1) != (c.want == 200 && !strings.Contains(rec.Body.String(), `"block"`)) {
				t.Errorf("%d records", stored)
			}
			if owners := w.store.owners["s-theirs"]; !slices.Equal(owners, []string{"theirs"}) {
				t.Errorf("their session belongs to %q now", owners)
			}
		})
	}
}

// A path on the server's own disk may lead to any agent's conversation.
func TestALimitedCallerNamesNoFile(t *testing.T) {
	var seen []gate.Event
	w := newGuardedWorld(t, func(o *Options) {
		o.Protocol = func(string) (HostProtocol, bool) { return urlHost{}, true }
		o.Decode = func(body []byte) (gate.Event, error) {
			ev, err := decode(body)
			ev.TranscriptPath = "/home/u/.claude/projects/x.jsonl"
			return ev, err
		}
	})
	w.judge = func(_ context.Context, in gate.Input) gate.Verdict {
		seen = append(seen, *in.Event)
		return gate.Verdict{Outcome: gate.Allow}
	}
	w.must(t, 403, "POST", "/v1/evaluate", stopOf("mine", "s-mine"), as("mine"))
	w.must(t, 200, "POST", "/v1/evaluate", stopOf("mine", "s-mine"), as("evaluate"))
	w.must(t, 200, "POST", "/v1/hooks/plain?agent=mine&session=s-mine&cwd=/tmp/x.jsonl", "{}", as("mine"))
	w.must(t, 200, "POST", "/v1/hooks/plain?agent=mine&session=s-mine&cwd=/tmp/x.jsonl", "{}", as("evaluate"))
	got := []string{}
	for _, ev := range seen {
		got = append(got, fmt.Sprint(ev.TranscriptPath, " ", ev.TranscriptStale))
	}
	want := []string{"/home/u/.claude/projects/x.jsonl false", " true", "/tmp/x.jsonl false"}
	if !slices.Equal(got, want) {
		t.Errorf("hooks saw %q, want %q", got, want)
	}
}

func TestUploadsClaimTheirSession(t *testing.T) {
	put := func(w *world, session, query, token string) int {
		return w.do("PUT", "/v1/sessions/"+session+"/transcript"+query, "x\n", as(token), "Content-Type: text/plain").Code
	}
	two := func(o *Options) {
		login := o.Login.(tokens)
		login["two"] = gate.Caller{Name: "two", Scopes: []gate.Scope{gate.EvaluateScope}, Agents: []string{"mine", "our-*"}}
		o.Login = login
	}
	for name, c := range map[string]struct {
		session, query, token string
		want                  int
		owners                []string
	}{
		"the only agent is meant":                       {"new", "", "mines-agent", 200, []string{"mine"}},
		"it is named":                                   {"new", "?agent=our-1", "two", 200, []string{"our-1"}},
		"of several one must be named":                  {"new", "", "two", 400, nil},
		"another agent is named":                        {"new", "?agent=theirs", "mines-agent", 403, nil},
		"an agent with a long name":                     {"new", "?agent=" + strings.Repeat("x", 513), "admin", 400, nil},
		"it is another's":                               {"s-theirs", "", "mines-agent", 404, []string{"theirs"}},
		"an unlimited one names nobody":                 {"new", "", "evaluate", 200, []string{gate.Nobody}},
		"an unlimited one says for whom":                {"new", "?agent=mine", "evaluate", 200, []string{"mine"}},
		"an unlimited one may add to theirs":            {"s-theirs", "?agent=theirs", "evaluate", 200, []string{"theirs"}},
		"which is nobody's, too, if it does not say so": {"s-theirs", "", "evaluate", 200, []string{"theirs", gate.Nobody}},
		"an agent without a name":                       {"new", "?agent=", "evaluate", 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newGuardedWorld(t, two)
			if got := put(w, c.session, c.query, c.token); got != c.want {
				t.Errorf("status %d, want %d", got, c.want)
			}
			if got := w.store.owners[c.session]; !slices.Equal(got, c.owners) {
				t.Errorf("the session belongs to %q, want %q", got, c.owners)
			}
			if text := w.shelf.texts["s-theirs"]; c.token != "evaluate" && text != "secret of theirs\n" {
				t.Errorf("their conversation is %q", text)
			}
		})
	}
	t.Run("what was uploaded for an agent is its own to use", func(t *testing.T) {
		w := newGuardedWorld(t)
		put(w, "new", "?agent=mine", "evaluate")
		w.must(t, 200, "POST", "/v1/evaluate", stopOf("mine", "new"), as("mines-agent"))
		w.must(t, 200, "GET", "/v1/sessions/new/transcript", "", as("mine"))
	})
}

// Idempotency keys are each credential's own.
func TestIdempotencyKeysArePerCredential(t *testing.T) {
	w := newGuardedWorld(t)
	ask := func(token string) (string, string) {
		rec := w.must(t, 200, "POST", "/v1/evaluate", stopOf("mine", "s-mine"), as(token), "Idempotency-Key: k")
		return fields(t, rec)["evaluation_id"].(string), rec.Header().Get("Idempotency-Replayed")
	}
	first, _ := ask("mine")
	if again, replayed := ask("mine"); again != first || replayed != "true" {
		t.Errorf("the same credential: %s, replayed %q; want %s again", again, replayed, first)
	}
	if other, replayed := ask("mines-agent"); other == first || replayed != "" {
		t.Errorf("another credential: %s, replayed %q", other, replayed)
	}
}

func TestChangesAreMadeInTheCredentialsName(t *testing.T) {
	w := newGuardedWorld(t)
	w.must(t, 202, "PUT", "/api/v2/extendedAgent/agents/mine", `{"name":"mine"}`, as("mine"))
	w.must(t, 200, "POST", "/api/v1/threads/s-mine/hooks/h/activate", "{}", as("mine"))
	w.must(t, 204, "DELETE", "/api/v2/extendedAgent/agents/mine", "", as("mine"))
	w.must(t, 204, "DELETE", "/v1/keys/ci", "", as("admin"))
	var got []string
	for _, e := range w.store.audit {
		got = append(got, fmt.Sprint(e.Action, " ", e.Name, " by ", e.By, " ", e.Credential, " from ", e.From))
	}
	want := []string{
		"spec.put mine by mine key:mine from 192.0.2.1", "hook.activate h by mine key:mine from 192.0.2.1",
		"spec.delete mine by mine key:mine from 192.0.2.1", "key.revoke ci by admin key:admin from 192.0.2.1"}
	if got = got[len(got)-4:]; !slices.Equal(got, want) {
		t.Errorf("audit is %q, want %q", got, want)
	}
	if by := w.store.specs[w.store.find(gate.HookSpec, "h")].By; by != "admin" {
		t.Errorf("the spec was put by %q", by)
	}
	list := w.must(t, 200, "GET", "/v1/audit?by=mine&action=spec.put", "", as("admin")).Body.String()
	if strings.Count(list, `"action"`) != 1 || !strings.Contains(list, `"from":"192.0.2.1"`) {
		t.Errorf("list is %s", list)
	}
	for _, query := range []string{"?action=spec", "?agent=a", "?by=a&by=b", "?limit=0", "?since=now", "?cursor=x"} {
		w.must(t, 400, "GET", "/v1/audit"+query, "", as("admin"))
	}
}

// A host takes an error of ours for "allow": while nobody can say whose a
// credential is, or whose a session, it is answered by on_gate_error, and
// nothing of it is kept.
func TestHostsWhileNobodyCanBeAsked(t *testing.T) {
	for _, mode := range []gate.FailMode{gate.FailAllow, gate.FailBlock} {
		w := newGuardedWorld(t, func(o *Options) {
			o.Gate.OnGateError = mode
			o.Protocol = func(string) (HostProtocol, bool) { return urlHost{}, true }
		})
		want := fmt.Sprintf(`{"decision":%q}`, mode)
		records := len(w.store.records)
		if got := w.must(t, 200, "POST", "/v1/hooks/plain?agent=mine", "{}", as("unasked")).Body.String(); got != want {
			t.Errorf("%s: an unasked login is answered %s, want %s", mode, got, want)
		}
		if len(w.store.records) != records {
			t.Error("what nobody may have sent is recorded")
		}
		w.store.down = errors.New("disk is full")
		if got := w.must(t, 200, "POST", "/v1/hooks/plain?agent=mine&session=s-mine", "{}", as("mine")).Body.String(); got != want {
			t.Errorf("%s: an unknown session is answered %s, want %s", mode, got, want)
		}
		answer := fields(t, w.must(t, 200, "POST", "/v1/evaluate", stopOf("mine", "s-mine"), as("mine")))
		if answer["decision"] != string(mode) || answer["degraded"] != true || answer["gate_error"].(map[string]any)["code"] != "store_unavailable" {
			t.Errorf("%s: evaluate answers %v", mode, answer)
		}
		w.must(t, 503, "POST", "/v1/evaluate", stopOf("mine", ""), as("unasked"))
	}
}

func TestKeysAreMadeAsAsked(t *testing.T) {
	w := newGuardedWorld(t)
	rec := w.must(t, 201, "POST", "/v1/keys", `{"name":"agent","scopes":["evaluate"],"agents":["build-*"],"expires":"2100-01-01T00:00:00Z"}`, as("admin"))
	got := fields(t, rec)
	if got["key"] != "sg_id2secret" || got["id"] != "id2" || got["expires"] != "2100-01-01T00:00:00Z" || rec.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("answer is %v, %v", got, rec.Header())
	}
	list := w.must(t, 200, "GET", "/v1/keys", "", as("admin")).Body.String()
	if strings.Contains(list, "secret") || strings.Contains(strings.ToLower(list), "hash") || !strings.Contains(list, `"agents":["build-*"]`) || !strings.Contains(list, `"agents":["*"]`) {
		t.Errorf("list is %s", list)
	}
	for body, says := range map[string]string{
		`{"name":"agent","scopes":["read"]}`:                              "409 exists",
		`{"name":"","scopes":["read"]}`:                                   "400 name",
		`{"name":"a\nb","scopes":["read"]}`:                               "400 name",
		`{"name":"x"}`:                                                    "400 scopes",
		`{"name":"x","scopes":["write"]}`:                                 "400 write",
		`{"name":"x","scopes":["read","read"]}`:                           "400 twice",
		`{"name":"x","scopes":["read"],"agents":[]}`:                      "400 agents",
		`{"name":"x","scopes":["read"],"agents":null}`:                    "400 agents",
		`{"name":"x","scopes":["read"],"agents":[""]}`:                    "400 pattern",
		`{"name":"x","scopes":["read"],"agent":["a"]}`:                    "400 agent",
		`{"name":"x","scopes":["read"],"expires":"2001-01-01T00:00:00Z"}`: "400 expired",
		`{"name":"x","scopes":["read"]} {"name":"y"}`:                     "400 goes on",
		`[]`: "400 body",
		`{"name":"` + strings.Repeat("x", 129) + `","scopes":["read"]}`:        "400 name",
		`{"name":"x","scopes":["read"],"agents":["` + strings.Repeat("x", 513): "400 body",
	} {
		status, word, _ := strings.Cut(says, " ")
		rec := w.do(http.MethodPost, "/v1/keys", body, as("admin"))
		if _, message := errorOf(t, rec); fmt.Sprint(rec.Code) != status || !strings.Contains(message, word) {
			t.Errorf("%.80s: %d %s, want %s", body, rec.Code, message, says)
		}
	}
	w.must(t, 404, "DELETE", "/v1/keys/nobody", "", as("admin"))
}

// TestALockedOutHostIsAnsweredByOnGateError: a host takes a 429 for "allow", and
// who sends the wrong keys from its address need not be the host.
func TestALockedOutHostIsAnsweredByOnGateError(t *testing.T) {
	w := newGuardedWorld(t, func(o *Options) {
		o.Gate.OnGateError = gate.FailBlock
		o.Protocol = func(string) (HostProtocol, bool) { return urlHost{}, true }
	})
	rec := w.do("POST", "/v1/hooks/plain?agent=mine", "{}", as("locked"))
	if rec.Code != http.StatusOK || rec.Body.String() != `{"decision":"block"}` {
		t.Errorf("%d %s, want on_gate_error's block", rec.Code, rec.Body)
	}
}

// TestAnEventThatIsTooLargeKeepsToItsCallersAgents: what the gate could not take
// on is recorded too, and a record makes its session its agent's.
func TestAnEventThatIsTooLargeKeepsToItsCallersAgents(t *testing.T) {
	for name, c := range map[string]struct {
		target  string
		records int
	}{
		"another agent":     {"/v1/hooks/plain?agent=theirs&session=new", 0},
		"another's session": {"/v1/hooks/plain?agent=mine&session=s-theirs", 0},
		"its own":           {"/v1/hooks/plain?agent=mine&session=s-mine", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newGuardedWorld(t, func(o *Options) {
				o.Protocol = func(string) (HostProtocol, bool) { return urlHost{}, true }
				o.Limits.BodyBytes = 4 << 10
			})
			before := len(w.store.records)
			w.must(t, 200, "POST", c.target, `{"x":"`+strings.Repeat("x", 8<<10)+`"}`, as("mines-agent"))
			if n := len(w.store.records) - before; n != c.records {
				t.Errorf("%d records, want %d", n, c.records)
			}
			if owners := w.store.owners["s-theirs"]; !slices.Equal(owners, []string{"theirs"}) {
				t.Errorf("their session belongs to %q now", owners)
			}
		})
	}
}

// speechless is a store that for a moment does not say whose a session is.
type speechless struct{ gate.Store }

func (speechless) SessionAgents(context.Context, string) ([]string, error) {
	return nil, errors.New("store is busy: another replica holds its lock")
}

// TestAnEventWhoseSessionIsNotKnownJoinsNone: where whose the session is cannot be
// found out, nothing is written to it: by then the store may work again.
func TestAnEventWhoseSessionIsNotKnownJoinsNone(t *testing.T) {
	for target, body := range map[string]string{"/v1/evaluate": stopOf("mine", "s-theirs"), "/v1/hooks/plain?agent=mine&session=s-theirs": "{}"} {
		w := newGuardedWorld(t, func(o *Options) {
			o.Protocol = func(string) (HostProtocol, bool) { return urlHost{}, true }
		})
		w.opt.Store = speechless{w.opt.Store}
		w.must(t, 200, "POST", target, body, as("mines-agent"))
		if owners := w.store.owners["s-theirs"]; !slices.Equal(owners, []string{"theirs"}) {
			t.Errorf("%s: their session belongs to %q now", target, owners)
		}
	}
}

// TestAListWithoutAgentsIsEmpty: a token whose agents claim is missing owns no
// agent, and learns nothing of the others' by whether there is a next page.
func TestAListWithoutAgentsIsEmpty(t *testing.T) {
	w := newGuardedWorld(t, func(o *Options) {
		o.Login.(tokens)["none"] = gate.Caller{Name: "none", Credential: "oidc:x none", Scopes: []gate.Scope{gate.ReadScope}}
	})
	w.must(t, 200, "POST", "/v1/evaluate", stopOf("theirs", "s-theirs"), as("admin"))
	for _, query := range []string{"?limit=1", "?limit=1&agent=theirs", "?limit=1&session=s-theirs"} {
		rec := w.must(t, 200, "GET", "/v1/evaluations"+query, "", as("none"))
		if next := fields(t, rec)["next"]; next != nil {
			t.Errorf("%s: next is %v", query, next)
		}
	}
}

// TestGateErrorsTellAgentsNothingOfTheServer: reasons name files and servers, and
// are for those who may read, as those of /readyz.
func TestGateErrorsTellAgentsNothingOfTheServer(t *testing.T) {
	w := newGuardedWorld(t, func(o *Options) { o.Protocol = func(string) (HostProtocol, bool) { return tellingHost{}, true } })
	w.store.down = errors.New("store cannot be reached: failed to connect to `user=stopgate database=gate`: 10.0.0.3:5432")
	for _, target := range []string{"/v1/evaluate", "/v1/hooks/plain?agent=mine&session=s-mine"} {
		for token, tells := range map[string]bool{"mines-agent": false, "evaluate": false, "mine": true, "admin": true} {
			body := w.must(t, 200, "POST", target, stopOf("mine", "s-mine"), as(token)).Body.String()
			if !strings.Contains(body, "store_unavailable") || strings.Contains(body, "10.0.0.3") != tells {
				t.Errorf("%s by %s: %s", target, token, body)
			}
		}
	}
}

// tellingHost answers the gate's failure.
type tellingHost struct{ urlHost }

func (tellingHost) Encode(_ gate.Event, d gate.Decision) ([]byte, string) {
	return fmt.Appendf(nil, `{"failure":%q}`, d.GateError), typeJSON
}

// TestAConversationOfNobodyIsForNobodyWhoIsLimited: also where one who is limited
// was in the session first (docs/access.md).
func TestAConversationOfNobodyIsForNobodyWhoIsLimited(t *testing.T) {
	w := newGuardedWorld(t)
	w.must(t, 200, "POST", "/v1/evaluate", stopOf("mine", "chat-1"), as("mines-agent"))
	w.must(t, 200, "PUT", "/v1/sessions/chat-1/transcript", "secret of nobody\n", as("evaluate"), "Content-Type: text/plain")
	if rec := w.do("GET", "/v1/sessions/chat-1/transcript", "", as("mine")); rec.Code != http.StatusNotFound {
		t.Errorf("it is shown to a limited caller: %d %s", rec.Code, rec.Body)
	}
	if rec := w.do("POST", "/v1/evaluate", stopOf("mine", "chat-1"), as("mines-agent")); rec.Code != http.StatusNotFound {
		t.Errorf("a limited caller has it judged: %d", rec.Code)
	}
}

// TestErasedWhileItIsJudged: what was erased does not come back with the record of
// a judge who had begun before.
func TestErasedWhileItIsJudged(t *testing.T) {
	w := newGuardedWorld(t)
	w.judge = func(context.Context, gate.Input) gate.Verdict {
		w.must(t, 204, "DELETE", "/v1/sessions/s-mine", "", as("mine"))
		return gate.Verdict{Outcome: gate.Allow}
	}
	body := `{"hook_event_name":"Stop","agent_name":"mine","session_id":"s-mine","final_output":"what alice said"}`
	id := fields(t, w.must(t, 200, "POST", "/v1/evaluate", body, as("mines-agent")))["evaluation_id"].(string)
	if rec := w.do("GET", "/v1/evaluations/"+id, "", as("admin")); strings.Contains(rec.Body.String(), "alice") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	w.must(t, 404, "GET", "/v1/sessions/s-mine", "", as("admin"))
}

// TestARecordOfASharedSession: a judge of one's own agent has read there what is
// another's, and its record quotes it.
func TestARecordOfASharedSession(t *testing.T) {
	w := newGuardedWorld(t)
	w.must(t, 200, "POST", "/v1/evaluate", stopOf("theirs", "s-both"), as("admin"))
	w.judge = func(context.Context, gate.Input) gate.Verdict {
		return gate.Verdict{Outcome: gate.Block, Reason: "the conversation says: secret of theirs"}
	}
	id := fields(t, w.must(t, 200, "POST", "/v1/evaluate", stopOf("mine", "s-both"), as("admin")))["evaluation_id"].(string)
	w.must(t, 404, "GET", "/v1/sessions/s-both", "", as("mine"))
	if rec := w.do("GET", "/v1/evaluations/"+id, "", as("mine")); strings.Contains(rec.Body.String(), "secret") {
		t.Errorf("%d %.200s", rec.Code, rec.Body)
	}
	list := w.must(t, 200, "GET", "/v1/evaluations", "", as("mine")).Body.String()
	if strings.Contains(list, "secret") || !strings.Contains(list, `"session_id":"s-mine"`) {
		t.Errorf("list is %s", list)
	}
}

// TestAnEventWithoutANameKeepsToItsCallersAgents: what could not be read is recorded
// for the agent in the URL, which must be its caller's.
func TestAnEventWithoutANameKeepsToItsCallersAgents(t *testing.T) {
	for target, records := range map[string]int{"/v1/hooks/plain?agent=theirs&session=s-theirs": 0, "/v1/hooks/plain?agent=mine&session=s-mine": 1} {
		w := newGuardedWorld(t, func(o *Options) {
			o.Protocol = func(string) (HostProtocol, bool) { return namelessHost{}, true }
			o.Limits.BodyBytes = 4 << 10
		})
		before := len(w.store.records)
		w.must(t, 200, "POST", target, `{"x":"`+strings.Repeat("x", 8<<10)+`"}`, as("mines-agent"))
		if n := len(w.store.records) - before; n != records {
			t.Errorf("%s: %d records, want %d", target, n, records)
		}
	}
}

// namelessHost has its event's name in the payload alone, if at all.
type namelessHost struct{ urlHost }

func (h namelessHost) Decode(body []byte, q HostQuery) (gate.Event, error) {
	ev, _ := h.urlHost.Decode(body, q)
	ev.Name = ""
	return ev, nil
}
