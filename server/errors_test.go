package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

func TestErrorTable(t *testing.T) {
	small := func(o *Options) { o.Limits.BodyBytes, o.Limits.SpecBytes, o.Limits.TranscriptBytes = 100, 100, 200 }
	long := `{"hook_event_name":"Stop","final_output":"` + strings.Repeat("x", 100) + `"}`
	for name, c := range map[string]struct {
		method, target, body string
		headers              []string
		status               int
		code, says           string
	}{
		"unknown route":                {"GET", "/v1/nowhere", "", nil, 404, "not_found", "/v1/nowhere"},
		"the root":                     {"GET", "/", "", nil, 404, "not_found", "/openapi.yaml"},
		"unknown method":               {"DELETE", "/v1/evaluate", "", nil, 405, "method_not_allowed", "POST"},
		"unknown agent":                {"POST", "/v1/evaluate", `{"hook_event_name":"Stop","agent_name":"ghost"}`, nil, 404, "not_found", "ghost"},
		"unknown event":                {"POST", "/v1/evaluate", `{"hook_event_name":"Halt"}`, nil, 400, "validation_failure", "Halt"},
		"no body":                      {"POST", "/v1/evaluate", ``, nil, 400, "invalid_json", ""},
		"half a body":                  {"POST", "/v1/evaluate", `{"hook_event_name":`, nil, 400, "invalid_json", ""},
		"wrong type":                   {"POST", "/v1/evaluate", `{"hook_event_name":1}`, nil, 400, "validation_failure", ""},
		"evaluation too large":         {"POST", "/v1/evaluate", long, nil, 413, "body_too_large", "100 bytes"},
		"dry run too large":            {"POST", "/v1/dry-run", long, nil, 413, "body_too_large", "100 bytes"},
		"spec too large":               {"PUT", "/api/v2/extendedAgent/agents/a", long, nil, 413, "body_too_large", "100 bytes"},
		"transcript too large":         {"PUT", "/v1/sessions/s/transcript", long + long, []string{"Content-Type: text/plain"}, 413, "body_too_large", "200 bytes"},
		"agent with errors":            {"PUT", "/api/v2/extendedAgent/agents/bad", `{"name":"bad"}`, nil, 400, "ValidationFailure", "properties.handoffs: Handoffs cannot be null (and 1 more)"},
		"hook without type":            {"PUT", "/api/v2/extendedAgent/hooks/h", `{"name":"h"}`, nil, 400, "InvalidObjectType", "GlobalHook"},
		"names that disagree":          {"PUT", "/api/v2/extendedAgent/agents/a", `{"name":"b"}`, nil, 400, "ValidationFailure", `"b"`},
		"agent is not JSON":            {"PUT", "/api/v2/extendedAgent/agents/a", `{`, nil, 400, "invalid_json", ""},
		"missing agent":                {"GET", "/api/v2/extendedAgent/agents/ghost", "", nil, 404, "not_found", "ghost"},
		"missing agent to delete":      {"DELETE", "/api/v2/extendedAgent/agents/ghost", "", nil, 404, "not_found", "ghost"},
		"missing hook to activate":     {"POST", "/api/v1/threads/t/hooks/ghost/activate", "{}", nil, 404, "not_found", "ghost"},
		"activation that is a list":    {"POST", "/api/v1/threads/t/hooks/ghost/activate", "[]", nil, 400, "invalid_json", ""},
		"missing evaluation":           {"GET", "/v1/evaluations/ghost", "", nil, 404, "not_found", "ghost"},
		"missing session":              {"GET", "/v1/sessions/ghost", "", nil, 404, "not_found", "ghost"},
		"missing transcript":           {"GET", "/v1/sessions/ghost/transcript", "", nil, 404, "not_found", "ghost"},
		"session without a name":       {"GET", "/v1/sessions//transcript", "", nil, 404, "not_found", ""},
		"session name too long":        {"GET", "/v1/sessions/" + strings.Repeat("x", 513), "", nil, 400, "validation_failure", "513"},
		"session name with NUL":        {"GET", "/v1/sessions/a%00b", "", nil, 400, "validation_failure", "NUL"},
		"session name not UTF-8":       {"GET", "/v1/sessions/a%ffb", "", nil, 400, "validation_failure", "UTF-8"},
		"Idempotency-Key with a space": {"POST", "/v1/evaluate", `{"hook_event_name":"Stop"}`, []string{"Idempotency-Key: a b"}, 400, "validation_failure", "Idempotency-Key"},
		"Idempotency-Key too long":     {"POST", "/v1/evaluate", `{"hook_event_name":"Stop"}`, []string{"Idempotency-Key: " + strings.Repeat("k", 256)}, 400, "validation_failure", "255"},
		"filter that does not exist":   {"GET", "/v1/evaluations?agnet=a", "", nil, 400, "validation_failure", "session"},
		"filter given twice":           {"GET", "/v1/evaluations?agent=a&agent=b", "", nil, 400, "validation_failure", "2 times"},
		"event that does not exist":    {"GET", "/v1/evaluations?event=AfterAgent", "", nil, 400, "validation_failure", "SubagentStop"},
		"decision that does not exist": {"GET", "/v1/evaluations?decision=deny", "", nil, 400, "validation_failure", "block"},
		"dry_run that is no word":      {"GET", "/v1/evaluations?dry_run=no", "", nil, 400, "validation_failure", `want one of ["true" "false"]`},
		"limit 0":                      {"GET", "/v1/evaluations?limit=0", "", nil, 400, "validation_failure", "1000"},
		"limit 1001":                   {"GET", "/v1/evaluations?limit=1001", "", nil, 400, "validation_failure", "1000"},
		"since that is no time":        {"GET", "/v1/evaluations?since=yesterday", "", nil, 400, "validation_failure", "RFC 3339"},
		"cursor that is not ours":      {"GET", "/v1/evaluations?cursor=x", "", nil, 400, "validation_failure", "cursor"},
		"dry run without spec":         {"POST", "/v1/dry-run", `{"hook_event_name":"Stop"}`, nil, 400, "validation_failure", "spec"},
		"dry run of a broken spec":     {"POST", "/v1/dry-run", `{"hook_event_name":"Stop","spec":{"name":"bad"}}`, nil, 400, "validation_failure", "Handoffs"},
		"dry run that is not JSON":     {"POST", "/v1/dry-run", `{"hook`, nil, 400, "invalid_json", "offset"},
		"dry run of another agent":     {"POST", "/v1/dry-run", `{"hook_event_name":"Stop","agent_name":"b","spec":{"name":"a"}}`, nil, 400, "validation_failure", `"b"`},
		"dialect that does not exist":  {"POST", "/v1/validate?dialect=x", "{}", nil, 400, "validation_failure", "azure"},
		"validate what is not JSON":    {"POST", "/v1/validate", "{", nil, 400, "invalid_json", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rec := newWorld(t, small).do(c.method, c.target, c.body, c.headers...)
			code, message := errorOf(t, rec)
			if rec.Code != c.status || code != c.code || !strings.Contains(message, c.says) || message == "" {
				t.Errorf("got %d %s %q, want %d %s with %q", rec.Code, code, message, c.status, c.code, c.says)
			}
			if ct := rec.Header().Get("Content-Type"); ct != "application/json; charset=utf-8" {
				t.Errorf("content type %q", ct)
			}
		})
	}
}

func TestErrorDetailsSayWhere(t *testing.T) {
	rec := newWorld(t).must(t, 400, "PUT", "/api/v2/extendedAgent/agents/bad", `{"name":"bad"}`)
	want := `"details":[{"path":"properties.handoffs","line":3,"column":5,"message":"Handoffs cannot be null"},` +
		`{"path":"properties.hooks","line":4,"column":1,"message":"no"}]`
	if !strings.Contains(rec.Body.String(), want) {
		t.Errorf("got %s, want %s", rec.Body, want)
	}
	w := newWorld(t)
	w.echo.GET("/fails", func(echo.Context) error {
		return &gate.Error{Code: gate.CodeValidation, Message: "spec is wrong", Details: []gate.Finding{
			{Severity: gate.SeverityWarning, Path: "a", Message: "odd"}, {Severity: gate.SeverityError, Path: "b", Message: "wrong"}}}
	})
	want = `"details":[{"path":"b","line":0,"column":0,"message":"wrong"}]`
	if rec := w.do("GET", "/fails", ""); !strings.Contains(rec.Body.String(), want) {
		t.Errorf("with a warning beside it: got %s, want %s", rec.Body, want)
	}
	if rec := newWorld(t).do("GET", "/nowhere", ""); !strings.Contains(rec.Body.String(), `"details":[]`) {
		t.Errorf("no empty details: %s", rec.Body)
	}
}

// TestEveryCodeHasItsStatus holds DESIGN §5's table.
func TestEveryCodeHasItsStatus(t *testing.T) {
	w := newWorld(t)
	for code, status := range map[gate.Code]int{
		gate.CodeInvalidJSON: 400, gate.CodeValidation: 400, gate.CodeInvalidObjectType: 400, gate.CodeUnauthenticated: 401,
		gate.CodeForbidden: 403, gate.CodeBadOrigin: 403, gate.CodeNotFound: 404, gate.CodeConflict: 409, gate.CodePreconditionFailed: 412,
		gate.CodeBodyTooLarge: 413, gate.CodeUnsupportedMediaType: 415, gate.CodeIdempotencyMismatch: 422, gate.CodeRateLimited: 429,
		gate.CodeInternal: 500, gate.CodeOverloaded: 503, "unheard_of": 500,
	} {
		w.Server.echo.GET("/test/"+string(code), func(echo.Context) error {
			return fmt.Errorf("wrapped: %w", gate.Errorf(code, "subject is so"))
		})
		rec := w.do("GET", "/test/"+string(code), "")
		if rec.Code != status {
			t.Errorf("%s: status %d, want %d", code, rec.Code, status)
		}
		if retry := rec.Header().Get("Retry-After") != ""; retry != (status == 503 || status == 429) {
			t.Errorf("%s: Retry-After present: %v", code, retry)
		}
	}
}

func TestWhatOnlyWeCanMendIsNotShown(t *testing.T) {
	for name, fail := range map[string]echo.HandlerFunc{
		"error":          func(echo.Context) error { return errors.New("open /secret/path: denied") },
		"internal error": func(echo.Context) error { return gate.Errorf(gate.CodeInternal, "open /secret/path: denied") },
		"panic":          func(echo.Context) error { panic("open /secret/path: denied") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.echo.GET("/fails", fail)
			rec := w.do("GET", "/fails", "", "X-Request-Id: req-7")
			code, message := errorOf(t, rec)
			if rec.Code != 500 || code != "internal" || strings.Contains(rec.Body.String(), "secret") || strings.Contains(rec.Body.String(), ".go:") {
				t.Errorf("answer %d %s", rec.Code, rec.Body)
			}
			if !strings.Contains(message, "req-7") {
				t.Errorf("message %q does not name the request", message)
			}
			if log := w.log.String(); !strings.Contains(log, "/secret/path") || !strings.Contains(log, "req-7") {
				t.Errorf("log %q lacks the cause or the request id", log)
			}
			if w.must(t, 200, "GET", "/healthz", ""); strings.Count(w.log.String(), "level=ERROR") != 1 {
				t.Errorf("logged more than once: %s", w.log)
			}
		})
	}
}

func TestStoreDown(t *testing.T) {
	w := newWorld(t)
	w.agent(t, "marker", gate.Stop, "ends")
	w.judge = needsMarker
	w.store.down = errors.New("disk is full")
	t.Run("a computed block leaves as a block", func(t *testing.T) {
		got := fields(t, w.must(t, 200, "POST", "/v1/evaluate", stop, "Idempotency-Key: k"))
		if got["decision"] != "block" || got["degraded"] != true || got["gate_error"].(map[string]any)["code"] != "store_unavailable" {
			t.Errorf("got %v", got)
		}
	})
	for _, target := range []string{"/v1/evaluations", "/v1/evaluations/x", "/v1/sessions/s", "/api/v2/extendedAgent/agents", "/api/v2/extendedAgent/agents/marker", "/api/v1/threads/t/hooks"} {
		if code, _ := errorOf(t, w.must(t, 500, "GET", target, "")); code != "internal" {
			t.Errorf("%s: code %s", target, code)
		}
	}
	w.must(t, 500, "DELETE", "/v1/sessions/s", "")
	t.Run("a spec that was not stored is not in force", func(t *testing.T) {
		w.must(t, 500, "PUT", "/api/v2/extendedAgent/agents/late", `{"name":"late"}`)
		w.must(t, 500, "DELETE", "/api/v2/extendedAgent/agents/marker", "")
		if w.opt.Gate.Policies.Find(gate.AgentSpec, "late") != nil || w.opt.Gate.Policies.Find(gate.AgentSpec, "marker") == nil {
			t.Error("policies changed though the store did not")
		}
	})
}

func TestMethods(t *testing.T) {
	w := newWorld(t)
	rec := w.must(t, 405, "PATCH", "/api/v2/extendedAgent/agents/a", "")
	for _, m := range []string{"GET", "HEAD", "PUT", "DELETE"} {
		if !strings.Contains(rec.Header().Get("Allow"), m) {
			t.Errorf("Allow %q lacks %s", rec.Header().Get("Allow"), m)
		}
	}
	if rec := w.must(t, 204, "OPTIONS", "/v1/evaluate", ""); !strings.Contains(rec.Header().Get("Allow"), http.MethodPost) {
		t.Errorf("OPTIONS: Allow %q", rec.Header().Get("Allow"))
	}
	if rec := w.must(t, 204, "OPTIONS", "/v1/evaluate", ""); rec.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Error("OPTIONS lets other origins in")
	}
	w.must(t, 200, "HEAD", "/healthz", "")
	w.must(t, 404, "HEAD", "/v1/evaluations/ghost", "")
}

func TestPanicOfAnEvaluatorIsTheHooksOwn(t *testing.T) {
	w := newWorld(t)
	w.judge = func(context.Context, gate.Input) gate.Verdict { panic("boom") }
	w.agent(t, "marker", gate.Stop, "ends")
	got := fields(t, w.must(t, 200, "POST", "/v1/evaluate", stop))
	if got["decision"] != "allow" || got["degraded"] != true {
		t.Errorf("got %v", got)
	}
}

func TestCallerThatGoesAwayIsNoErrorOfOurs(t *testing.T) {
	w := newWorld(t)
	w.store.down = context.Canceled
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	serve(w.Server, newRequest("GET", "/v1/evaluations", "").WithContext(gone))
	if w.log.Len() > 0 {
		t.Errorf("logged: %s", w.log)
	}
}

// verdictHost answers the decision in a word. What it reads as "panic" makes it
// panic.
type verdictHost struct{ plainHost }

func (h verdictHost) Decode(payload []byte, q HostQuery) (gate.Event, error) {
	if string(payload) == `"panic"` {
		panic("boom")
	}
	return h.plainHost.Decode(payload, q)
}

func (verdictHost) Encode(_ gate.Event, d gate.Decision) ([]byte, string) {
	return fmt.Appendf(nil, `{"decision":%q,"code":%q}`, d.Outcome, d.GateError.Code), typeJSON
}

// Hosts read a 500 as "allow": whatever panics is answered by on_gate_error
// (DESIGN §5).
func TestPanicOnAHostsEventFollowsOnGateError(t *testing.T) {
	for _, c := range []struct {
		name, body string
		mode       gate.FailMode
		want       string
	}{
		{"reading the payload", `"panic"`, gate.FailBlock, `{"decision":"block","code":"internal"}`},
		{"looking for the answer", `{}`, gate.FailBlock, `{"decision":"block","code":"internal"}`},
		{"where the gate fails open", `{}`, gate.FailAllow, `{"decision":"allow","code":"internal"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) {
				o.Gate.OnGateError = c.mode
				o.Protocol = func(string) (HostProtocol, bool) { return verdictHost{}, true }
				o.Gate.FindAnswer = func(context.Context, *gate.Event) { panic("open /secret/path: denied") }
			})
			if got := w.must(t, 200, "POST", "/v1/hooks/plain", c.body).Body.String(); got != c.want {
				t.Errorf("answered %s, want %s", got, c.want)
			}
			if len(w.store.records) != 1 || !strings.Contains(w.log.String(), "handler panicked") {
				t.Errorf("%d records, log %s", len(w.store.records), w.log)
			}
			w.must(t, 200, "GET", "/healthz", "")
			if n := w.rooms.held; n != (amounts{}) {
				t.Errorf("%v is held still", n)
			}
		})
	}
}
