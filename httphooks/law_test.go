package httphooks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// answered asks a hook that is answered so.
func answered(t *testing.T, status int, body string, change ...func(*gate.Hook)) gate.Verdict {
	t.Helper()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	})
	return ask(t, w.caller(t, func(o *Options) { o.Allow = []string{"*"} }), hook("https://hooks.example.com/", change...))
}

func TestAntigravity11And12Answers(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int
		body    string
		event   gate.EventName
		outcome gate.Outcome
		reason  string
		code    gate.FailureCode
	}{
		{"a deny", 200, `{"decision":"deny","reason":"not here"}`, gate.PreToolUse, gate.Block, "not here", ""},
		{"a deny at 201", 201, ` {"decision":"deny","reason":"not here"}` + "\n", gate.PreToolUse, gate.Block, "not here", ""},
		{"an allow", 200, `{"decision":"allow"}`, gate.PreToolUse, gate.Allow, "", ""},
		{"other JSON", 200, `{"recorded":true}`, gate.PreToolUse, gate.Allow, "", ""},
		{"text", 200, `ok`, gate.PreToolUse, gate.Allow, "", ""},
		{"nothing", 200, ``, gate.PreToolUse, gate.Allow, "", ""},
		{"no content", 204, ``, gate.PreToolUse, gate.Allow, "", ""},
		{"a deny that breaks off", 200, `{"decision":"deny","rea`, gate.PreToolUse, gate.NoVerdict, "", gate.BadOutput},
		{"a deny with another status", 403, `{"decision":"deny","reason":"not here"}`, gate.PreToolUse, gate.NoVerdict, "", gate.HTTPStatus},
		{"a failure", 500, `oops`, gate.PreToolUse, gate.NoVerdict, "", gate.HTTPStatus},
		{"an unknown status", 799, ``, gate.PreToolUse, gate.NoVerdict, "", gate.HTTPStatus},
		{"post: a deny", 200, `{"decision":"deny","reason":"not here"}`, gate.PostToolUse, gate.Allow, "", ""},
		{"post: a failure", 500, `{"decision":"deny"}`, gate.PostToolUse, gate.NoVerdict, "", gate.HTTPStatus},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := answered(t, c.status, c.body, on(c.event))
			checkVerdict(t, v, c.outcome, c.reason, c.code)
			if v.Evidence.Status != c.status || v.Evidence.Stdout != c.body {
				t.Errorf("evidence %+v", v.Evidence)
			}
		})
	}
}

func TestClaudeCode04HTTPResults(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int
		body    string
		event   gate.EventName
		outcome gate.Outcome
		reason  string
		code    gate.FailureCode
	}{
		{"empty", 200, "", gate.Stop, gate.Allow, "", ""},
		{"white space", 200, " \n", gate.Stop, gate.Allow, "", ""},
		{"no content", 204, "", gate.Stop, gate.Allow, "", ""},
		{"a block", 200, `{"decision":"block","reason":"tests first"}`, gate.Stop, gate.Block, "tests first", ""},
		{"a block at 202", 202, `{"decision":"block","reason":"tests first"}`, gate.Stop, gate.Block, "tests first", ""},
		{"a deny", 200, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`, gate.PreToolUse, gate.Block, "no", ""},
		{"an ask", 200, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"sure?"}}`, gate.PreToolUse, gate.Ask, "sure?", ""},
		{"text", 200, "blocked", gate.Stop, gate.NoVerdict, "", gate.BadOutput},
		{"an array", 200, "[]", gate.Stop, gate.NoVerdict, "", gate.BadOutput},
		{"two objects", 200, "{}{}", gate.Stop, gate.NoVerdict, "", gate.BadOutput},
		{"a status alone never blocks", 403, "", gate.Stop, gate.NoVerdict, "", gate.HTTPStatus},
		{"nor does it with a body", 400, `{"decision":"block","reason":"tests first"}`, gate.Stop, gate.NoVerdict, "", gate.HTTPStatus},
		{"a failure", 503, "", gate.Stop, gate.NoVerdict, "", gate.HTTPStatus},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkVerdict(t, answered(t, c.status, c.body, ofClaudeCode, on(c.event)), c.outcome, c.reason, c.code)
		})
	}
}

// A host that has no event of its own for a failed call says PostToolUse; the
// hook answers for the event that it was asked about.
func TestClaudeCode04AnswersItsOwnEvent(t *testing.T) {
	w := newWorld(t, says(`{"hookSpecificOutput":{"hookEventName":"PostToolUseFailure","additionalContext":"c"}}`))
	in := hook("https://hooks.example.com/", ofClaudeCode, on(gate.PostToolUseFailure))
	in.Event.Name = gate.PostToolUse
	if v := ask(t, w.caller(t, func(o *Options) { o.Allow = []string{"*"} }), in); v.AdditionalContext != "c" {
		t.Errorf("%+v", v)
	}
}

func checkVerdict(t *testing.T, v gate.Verdict, outcome gate.Outcome, reason string, code gate.FailureCode) {
	t.Helper()
	got := gate.FailureCode("")
	if v.Failure != nil {
		got = v.Failure.Code
	}
	if v.Outcome != outcome || v.Reason != reason || got != code {
		t.Errorf("verdict %q %q %v, want %q %q %s", v.Outcome, v.Reason, v.Failure, outcome, reason, code)
	}
}

// The transform of every entry about the host is put on, in place of the hook's
// own header of that name; of two entries the first has it.
func TestAntigravity15Transform(t *testing.T) {
	var got http.Header
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
	network := &gate.Network{Allow: []gate.Destination{
		{Domain: "other.example.com", Transform: []gate.Header{{Name: "X-Other", Value: "no"}}},
		{Domain: "telemetry.example.com", Transform: []gate.Header{{Name: "Authorization", Value: "Bearer first"}, {Name: "user-agent", Value: "mine"}}},
		{Domain: "*", Transform: []gate.Header{{Name: "authorization", Value: "Bearer second"}, {Name: "X-All", Value: "yes"}}},
	}}
	for _, in := range []gate.Input{
		hook("https://telemetry.example.com/", func(h *gate.Hook) { h.Headers = []gate.Header{{Name: "AUTHORIZATION", Value: "of the hook"}} }),
		hook("https://hooks.example.com/"),
	} {
		in.Network = network
		if v := ask(t, w.caller(t), in); v.Outcome != gate.Allow {
			t.Fatal(v.Failure)
		}
		want := map[string]string{"Authorization": "Bearer first", "X-All": "yes", "X-Other": "", "User-Agent": "mine"}
		if in.Hook.URL == "https://hooks.example.com/" {
			want["Authorization"], want["User-Agent"] = "Bearer second", "stopgate"
		}
		for name, value := range want {
			if got.Get(name) != value || len(got.Values(name)) > 1 {
				t.Errorf("%s: %s is %q, want %q", in.Hook.URL, name, got.Values(name), value)
			}
		}
	}
	// A hook of claude-code has nothing of it.
	in := hook("https://telemetry.example.com/", ofClaudeCode)
	in.Network = network
	if v := ask(t, w.caller(t, func(o *Options) { o.Allow = []string{"*"} }), in); v.Outcome != gate.Allow || got.Get("Authorization") != "" {
		t.Errorf("claude-code: %v, Authorization %q", v.Failure, got.Get("Authorization"))
	}
}

// A server that knows the secret says it in every place it can.
func TestAntigravity16SecretsThatAreEchoed(t *testing.T) {
	const token, password, value = "telemetry-token-123", "p4ss:word", "value-of-X-Key"
	network := &gate.Network{Allow: []gate.Destination{{Domain: "*", Transform: []gate.Header{
		{Name: "Authorization", Value: "Bearer " + token}, {Name: "X-Basic", Value: "Basic bWU6cDRzczp3b3Jk"}, {Name: "X-Key", Value: value}, {Name: "X-Flag", Value: "on"}}}}}
	escaped := strings.ReplaceAll(token, "t", `\u0074`)
	for name, c := range map[string]struct {
		status  int
		body    string
		outcome gate.Outcome
	}{
		"in a reason":                   {200, `{"decision":"deny","reason":"got Bearer ` + token + ` and ` + value + ` and ` + password + `"}`, gate.Block},
		"escaped in a reason":           {200, `{"decision":"deny","reason":"got ` + escaped + `"}`, gate.Block},
		"as the decision":               {200, `{"decision":"` + token + `"}`, gate.NoVerdict},
		"half of it within the quote":   {200, `{"decision":"` + strings.Repeat("x", 30) + token + `"}`, gate.NoVerdict},
		"in text that is no answer":     {200, `{` + strings.Repeat("x", 70) + token, gate.NoVerdict},
		"in an encoding":                {200, "\x00encoding", gate.NoVerdict},
		"in the body of a failure":      {500, token, gate.NoVerdict},
		"in text that objects not":      {200, token + password, gate.Allow},
		"where evidence is cut":         {200, strings.Repeat("x", gate.EvidenceBytes-20) + token, gate.Allow},
		"beside a word that is a value": {200, `{"decision":"deny","reason":"on ` + token + `"}`, gate.Block},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				if c.body == "\x00encoding" {
					rw.Header().Set("Content-Encoding", token)
				}
				rw.WriteHeader(c.status)
				_, _ = io.WriteString(rw, c.body)
			})
			in := hook("https://hooks.example.com/")
			in.Network = network
			v := ask(t, w.caller(t), in)
			if v.Outcome != c.outcome {
				t.Fatalf("verdict %q %v, want %q", v.Outcome, v.Failure, c.outcome)
			}
			said, _ := json.Marshal(v)
			for _, secret := range []string{token[:9], "word", value[:9], "bWU6"} {
				if strings.Contains(string(said), secret) {
					t.Errorf("%q is in %s", secret, said)
				}
			}
			if strings.HasPrefix(name, "beside") && v.Reason != "on [key]" {
				t.Errorf("reason %q", v.Reason)
			}
		})
	}
	t.Run("in words of the connection", func(t *testing.T) {
		in := hook("https://hooks.example.com/")
		in.Network = network
		w := newWorld(t, says("{}"))
		cert, roots := certificate(t, token+".example.com")
		w.TLS.Certificates[0] = cert
		v := ask(t, w.caller(t, func(o *Options) { o.RootCAs = roots }), in)
		wantFailure(t, v, gate.HTTPUnreachable, "valid for [key].example.com")
	})
}

// A secret that stands where it means something does not change the verdict.
func TestAntigravity16BlottingChangesNoVerdict(t *testing.T) {
	w := newWorld(t, says(`{"decision":"deny","reason":"it says decision"}`))
	in := hook("https://hooks.example.com/")
	in.Network = &gate.Network{Allow: []gate.Destination{{Domain: "*", Transform: []gate.Header{{Name: "X-Mode", Value: "decision"}}}}}
	if v := ask(t, w.caller(t), in); v.Outcome != gate.Block || v.Reason != "it says [key]" {
		t.Errorf("verdict %q %q", v.Outcome, v.Reason)
	}
}

func TestClaudeCode01VariablesThatAreEchoed(t *testing.T) {
	const token = "tok-1234567890"
	long := strings.Repeat("x", 10_000-6) + token
	w := newWorld(t, says(`{"decision":"block","reason":"`+long+`"}`))
	caller := w.caller(t, func(o *Options) { o.Allow, o.Getenv = []string{"*"}, func(string) string { return token } })
	v := ask(t, caller, hook("https://hooks.example.com/", ofClaudeCode, on(gate.Stop), func(h *gate.Hook) {
		h.Headers, h.AllowedEnv = []gate.Header{{Name: "Authorization", Value: "Bearer $TOKEN"}}, []string{"TOKEN"}
	}))
	if said := fmt.Sprint(v.Reason, v.Evidence.Stdout); v.Outcome != gate.Block || strings.Contains(said, token[:5]) {
		t.Errorf("verdict %q …%s", v.Outcome, said[max(0, len(said)-100):])
	}
}

// Through the gate: a failure lets the call go on, and is recorded with its code;
// a denial counts (spec/antigravity.md 11).
func TestAntigravity11FailuresAreRecorded(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // from here on the server notices that the caller has gone
		switch r.URL.Path {
		case "/500":
			rw.WriteHeader(http.StatusInternalServerError)
		case "/hang":
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // an empty answer would be an allow
		case "/deny":
			fmt.Fprint(rw, `{"decision":"deny","reason":"not here"}`)
		}
	})
	star, err := gate.CompileMatcher("*")
	if err != nil {
		t.Fatal(err)
	}
	hooks := func(paths ...string) (list []gate.Hook) {
		for _, path := range paths {
			list = append(list, gate.Hook{Name: path, Level: gate.CustomLevel, Dialect: gate.Antigravity, Type: gate.HTTPHook, Event: gate.PreToolUse,
				Matcher: star, URL: "https://hooks.example.com" + path, Timeout: 20 * time.Second, FailMode: gate.FailAllow})
		}
		return list
	}
	network := &gate.Spec{Kind: gate.NetworkSpec, Name: "a", Network: allowlist("hooks.example.com")}
	decide := func(hooks []gate.Hook) gate.Decision {
		g := &gate.Gate{Policies: &gate.Policies{}, Store: forgetful{}, Transcripts: forgetful{}, OnGateError: gate.FailAllow, Parallel: 4, Now: time.Now,
			NewID: func() string { return "1" }, Evaluators: map[gate.HookType]gate.Evaluator{gate.HTTPHook: w.caller(t)}}
		d, err := g.Decide(t.Context(), gate.Event{Name: gate.PreToolUse, Agent: "a", Protocol: gate.Native, ToolName: "read_file", Dry: true},
			gate.Options{Specs: []*gate.Spec{{Kind: gate.Attached(gate.Antigravity), Name: "a", Hooks: hooks}, network}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	failing := hooks("/500", "/hang")
	failing = append(failing, hooks("/other")...)
	failing[1].Timeout = 500 * time.Millisecond
	failing[2].URL = "https://other.example.com/"
	d := decide(failing)
	var codes []gate.FailureCode
	for _, v := range d.Hooks {
		if !slices.Contains(v.Notes, gate.FailedOpen) {
			t.Errorf("%s: notes %v", v.Name, v.Notes)
		}
		if v.Failure != nil {
			codes = append(codes, v.Failure.Code)
		}
	}
	if diff := cmp.Diff([]gate.FailureCode{gate.HTTPStatus, gate.Timeout, gate.EgressDenied}, codes); diff != "" || d.Outcome != gate.Allow || !d.Degraded {
		t.Errorf("decision %s, degraded %v; codes (-want +got):\n%s", d.Outcome, d.Degraded, diff)
	}
	if d := decide(append(failing[:1:1], hooks("/deny")...)); d.Outcome != gate.Block || d.Reason != "not here" {
		t.Errorf("decision %s %q", d.Outcome, d.Reason)
	}
}

// forgetful is a store and a shelf with nothing in them.
type forgetful struct{ gate.Overrides }

func (forgetful) Counts(context.Context, gate.LedgerKey) (gate.Counts, gate.Erasure, error) {
	return gate.Counts{}, gate.NeverErased, nil
}

func (forgetful) Commit(_ context.Context, c gate.Commit) error { c.Settle(c.Seen); return nil }

func (forgetful) SetActive(context.Context, string, string, bool, gate.Actor) error { return nil }

func (forgetful) Active(context.Context, string) (map[string]bool, error) { return nil, nil }

func (forgetful) Override(_ context.Context, session string) (gate.Override, error) {
	return gate.Override{}, gate.NoOverride(session)
}

func (forgetful) Attach(context.Context, *gate.Event) (gate.Transcript, error) { return nil, nil }
