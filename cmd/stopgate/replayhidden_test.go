package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hooksOf is the agent "a" with these hooks on PreToolUse.
func hooksOf(t *testing.T, hooks string) string {
	t.Helper()
	return fileOf(t, "draft.json", `{"name":"a","properties":{"hooks":{"PreToolUse":[`+hooks+`]}}}`)
}

const (
	bash    = `{"hook_event_name":"PreToolUse","agent_name":"a","session_id":"s","tool_name":"Bash","tool_input":{"command":"ls"}}`
	refuses = `"type":"command","matcher":"Bash","timeout":10,"script":"#!/bin/bash\ncat >/dev/null\necho no >&2\nexit 2\n"`
)

// Whatever reads a conversation that is gone makes its evaluation one that could
// not be replayed, and no verdict: conditions too, whose failure would be one by
// failMode.
func TestReplayOfConditionsOnALostConversation(t *testing.T) {
	const restarts = `"user_prompt.contains(\"restart\")"`
	tests := []struct {
		name, hook string
		reads      bool
	}{
		{"a rule", `{"name":"r","type":"rule","matcher":"Bash","rules":[{"if":` + restarts + `,"then":"block","reason":"no"}]}`, true},
		{"a rule that blocks without a verdict", `{"name":"r","type":"rule","failMode":"block","matcher":"Bash","rules":[{"if":` + restarts + `,"then":"block","reason":"no"}]}`, true},
		{"the tools of a rule", `{"name":"r","type":"rule","matcher":"Bash","rules":[{"if":"!(\"Edit\" in tools_used)","then":"block","reason":"no"}]}`, true},
		{"a reason", `{"name":"r","type":"rule","matcher":"Bash","rules":[{"if":"true","then":"block","reason":"{{ user_prompt }}"}]}`, true},
		{"when, of a command", `{"name":"c","when":` + restarts + `,` + refuses + `}`, true},
		{"when, of a judge", `{"name":"j","type":"prompt","matcher":"Bash","when":` + restarts + `,"prompt":"Is it good?"}`, true},
		{"a judge", `{"name":"j","type":"prompt","matcher":"Bash","prompt":"Is it good?"}`, true},
		{"a rule on the input", `{"name":"r","type":"rule","matcher":"Bash","rules":[{"if":"tool_input.command == \"ls\"","then":"block","reason":"no"}]}`, false},
		{"when, on the input", `{"name":"c","when":"tool_input.command == \"ls\"",` + refuses + `}`, false},
	}
	s, _ := pastWorld(t)
	s.say("s", "Please restart web.")
	s.evaluate(bash)
	export := fileOf(t, "export.ndjson", s.export())
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			draft := hooksOf(t, test.hook)
			if r := s.report("-f", draft); r.Decisions["allow→block"] != 1 {
				t.Errorf("while it is there: %+v", r)
			}
			want := map[string]int{}
			if test.reads {
				want["transcript_unreadable"] = 1
			}
			s.asked()
			code, out, errs := s.replayed(t.Context(), "-f", draft, "--from", export, "--json")
			var r replayReport
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatalf("exit %d: %v: %s", code, err, errs)
			}
			if diff := cmp.Diff(want, r.Obstacles); diff != "" || r.Changed != 1-len(want) || len(s.asked()) > 0 {
				t.Errorf("when it is gone: %s\n%s", diff, out)
			}
		})
	}
	s.do(http.MethodPut, "/v1/sessions/s/transcript?agent=a", "text/plain", []byte("something else\n"))
	if code, out, _ := s.replayed(t.Context(), "-f", hooksOf(t, tests[0].hook)); code != exitInput || !strings.Contains(out, "1 transcript_unreadable") {
		t.Errorf("another by now: exit %d: %s", code, out)
	}
}

// A payload is stored without its secrets: a hook that looks for one would pass
// what it had blocked.
func TestReplayOfARedactedPayload(t *testing.T) {
	const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	tests := []struct{ name, hook string }{
		{"a rule", `{"name":"r","type":"rule","matcher":"Bash","rules":[{"if":"tool_input.command.contains(\"ghp_\")","then":"block","reason":"a token"}]}`},
		{"when", `{"name":"c","when":"tool_input.command.contains(\"ghp_\")",` + refuses + `}`},
		{"a script", `{"name":"c","type":"command","matcher":"Bash","timeout":10,"script":"#!/bin/bash\nif grep -q ghp_; then echo no >&2; exit 2; fi\n"}`},
		{"a judge", `{"name":"j","type":"prompt","matcher":"Bash","prompt":"Is there a token?"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, data := pastWorld(t)
			s.answer = func(request string) string {
				if strings.Contains(request, "ghp_") {
					return `{"ok":false,"reason":"a token"}`
				}
				return `{"ok":true}`
			}
			draft := hooksOf(t, test.hook)
			s.do(http.MethodPut, agents+"a", "application/json", []byte(`{"name":"a","properties":{"hooks":{"PreToolUse":[`+test.hook+`]}}}`))
			s.evaluate(strings.Replace(bash, "ls", "echo '"+secret+"'", 1))
			s.evaluate(bash)
			s.asked()
			for _, from := range [][]string{nil, {"--data", data}, {"--against", draft}} {
				r := s.report(append(from, "-f", draft)...)
				if diff := cmp.Diff(map[string]int{"redacted": 1}, r.Obstacles); diff != "" || r.Changed != 0 || r.Replayed != 1 {
					t.Errorf("%q: %s\n%+v", from, diff, r)
				}
			}
			picky := fileOf(t, "settings.json", `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"exit 2","if":"Bash(echo ghp_*)"}]}]}}`)
			if r := s.report("-f", picky, "--agent", "a"); r.Obstacles["redacted"] != 1 || r.Replayed != 1 {
				t.Errorf("a hook that is about some inputs: %+v", r)
			}
			if r := s.report("-f", draft, "--redacted"); r.Decisions["block→allow"] != 1 || r.Redacted != 1 || r.Replayed != 2 {
				t.Errorf("asked all the same: %+v", r)
			}
			other := fileOf(t, "other.json", `{"name":"a","properties":{"hooks":{"PreToolUse":[{"name":"x","type":"rule","matcher":"Write","rules":[{"if":"true","then":"allow"}]}]}}}`)
			if r := s.report("-f", other); r.Replayed != 2 {
				t.Errorf("no hook looks: %+v", r)
			}
		})
	}
}

// Judges that never see secrets see none here either, and saw the same marks then.
func TestReplayHidesFromJudges(t *testing.T) {
	const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	s, data := pastWorld(t)
	s.say("s", "The token is "+secret+".")
	s.evaluate(`{"hook_event_name":"Stop","agent_name":"a","session_id":"s","final_output":"It is ` + secret + `."}`)
	cfg := fileOf(t, "stopgate.yaml", "redaction: {redact_model_input: true}\n")
	s.asked()
	r := s.report("-f", fileOf(t, "draft.json", stricterSpec), "--data", data, "--config", cfg)
	requests := s.asked()
	if r.Replayed != 1 || len(requests) != 1 || strings.Contains(requests[0], "ghp_") || !strings.Contains(requests[0], "The token is [redacted:github_token]") {
		t.Errorf("%+v\nasked %s", r, requests)
	}
}

// A conversation is shown without its secrets but to an administrator who asks for
// them. A replay asks; refused, it could not replay what reads a mark, unless its
// judges never see secrets.
func TestReplayOfARedactedConversation(t *testing.T) {
	const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	s, _ := pastWorld(t)
	s.answer = func(request string) string {
		if strings.Contains(request, "ghp_") {
			return `{"ok":false,"reason":"a token"}`
		}
		return `{"ok":true}`
	}
	s.say("s", "The token is "+secret+".")
	s.say("s2", "There is none.")
	s.evaluate(`{"hook_event_name":"Stop","agent_name":"a","session_id":"s","final_output":"done"}`)
	s.evaluate(`{"hook_event_name":"Stop","agent_name":"a","session_id":"s2","final_output":"done"}`)
	var list struct {
		Value []struct {
			ID string `json:"evaluation_id"`
		}
	}
	if err := json.Unmarshal([]byte(s.want(200, "GET", "/v1/evaluations?session=s", "")), &list); err != nil || len(list.Value) != 1 {
		t.Fatal(err, list)
	}
	shown := "/v1/evaluations/" + list.Value[0].ID + "/transcript"
	if text := s.want(200, "GET", shown, ""); strings.Contains(text, secret) || !strings.Contains(text, "The token is [redacted:github_token].") {
		t.Errorf("shown: %s", text)
	}
	if text := s.want(200, "GET", shown+"?original=true", ""); !strings.Contains(text, secret) {
		t.Errorf("as it was: %s", text)
	}
	gateURL, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(gateURL)
	reader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("original") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"error":{"code":"forbidden","message":"scope \"admin\" is needed"}}`)
			return
		}
		r.Host = gateURL.Host
		proxy.ServeHTTP(w, r)
	}))
	defer reader.Close()
	draft := fileOf(t, "draft.json", stricterSpec)
	hides := fileOf(t, "hides.yaml", "redaction: {redact_model_input: true}\nsandbox: {mode: process}\n")
	for _, tt := range []struct {
		name      string
		args      []string
		obstacles int
		sees      string
	}{
		{"an administrator", nil, 0, secret},
		{"one who reads", []string{"--server", reader.URL}, 1, ""},
		{"one who asks all the same", []string{"--server", reader.URL, "--redacted"}, 0, "[redacted:github_token]"},
		{"judges that see no secrets", []string{"--server", reader.URL, "--config", hides}, 0, "[redacted:github_token]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.asked()
			r := s.report(append(tt.args, "-f", draft)...)
			if r.Obstacles["redacted"] != tt.obstacles || len(r.Obstacles) != tt.obstacles || r.Replayed != 2-tt.obstacles {
				t.Errorf("%+v", r)
			}
			requests := strings.Join(s.asked(), "\n")
			if tt.sees != "" && !strings.Contains(requests, "The token is "+tt.sees) || tt.sees != secret && strings.Contains(requests, "ghp_") {
				t.Errorf("judges were asked %s", requests)
			}
		})
	}
}
