package server

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// everybody are the callers of these tests by their tokens. Those that are
// limited are so to the agent "mine".
func everybody() tokens {
	caller := func(name, agents string, scopes ...gate.Scope) gate.Caller {
		return gate.Caller{Name: name, Credential: "key:" + name, Scopes: scopes, Agents: []string{agents}}
	}
	return tokens{
		"evaluate":    caller("evaluate", "*", gate.EvaluateScope),
		"read":        caller("read", "*", gate.ReadScope),
		"admin":       caller("admin", "*", gate.AdminScope),
		"mine":        caller("mine", "mine", gate.AdminScope),
		"mines-agent": caller("agent", "mine", gate.EvaluateScope),
		"nothing":     gate.Caller{},
		"locked":      error(&gate.Error{Code: gate.CodeRateLimited, Message: "too many", Retry: 90 * time.Second}),
		"unasked":     error(gate.Errorf(gate.CodeOverloaded, "credentials cannot be checked just now")),
	}
}

// as is the header of a caller.
func as(token string) string { return "Authorization: Bearer " + token }

// newGuardedWorld has a login, two agents, "mine" and "theirs", and a session
// of each, with an evaluation (ev-0001 and ev-0002) and a conversation.
func newGuardedWorld(t testing.TB, change ...func(*Options)) *world {
	t.Helper()
	w := newWorld(t, append([]func(*Options){func(o *Options) {
		o.Login = everybody()
		o.Schemas = map[string][]byte{"spec": []byte("{}")}
		minted := 0
		o.MintKey = func() (string, string, [32]byte) {
			minted++
			return fmt.Sprint("id", minted), fmt.Sprintf("sg_id%dsecret", minted), [32]byte{byte(minted)}
		}
	}}, change...)...)
	w.must(t, 202, "PUT", "/api/v2/extendedAgent/hooks/h", `{"name":"h","type":"GlobalHook","properties":{"eventType":"Stop"}}`, as("admin"))
	for _, agent := range []string{"mine", "theirs"} {
		w.must(t, 202, "PUT", "/api/v2/extendedAgent/agents/"+agent, `{"name":"`+agent+`"}`, as("admin"))
		w.must(t, 202, "PUT", "/v1/agents/"+agent+"/hooks?dialect=ax-code", `{}`, as("admin"))
		w.must(t, 202, "PUT", "/v1/agents/"+agent+"/network", `{"secret":"secret of `+agent+`"}`, as("admin"))
		w.must(t, 200, "POST", "/v1/evaluate", stopOf(agent, "s-"+agent), as("admin"))
		w.must(t, 200, "PUT", "/v1/sessions/s-"+agent+"/transcript?agent="+agent, "secret of "+agent+"\n", as("admin"), "Content-Type: text/plain")
	}
	w.must(t, 201, "POST", "/v1/keys", `{"name":"ci","scopes":["read"]}`, as("admin"))
	return w
}

func stopOf(agent, session string) string {
	b, _ := json.Marshal(map[string]string{"hook_event_name": "Stop", "agent_name": agent, "session_id": session})
	return string(b)
}

// urlHost takes the event from the URL, and answers the outcome.
type urlHost struct{}

func (urlHost) Decode(_ []byte, q HostQuery) (gate.Event, error) {
	ev := gate.Event{Name: gate.EventName(cmp.Or(q.Event, "Stop")), Protocol: "plain", Agent: cmp.Or(q.Agent, gate.DefaultAgent), Session: q.Session, AgentType: q.Tool, SubAgent: q.Tool,
		TranscriptPath: q.Cwd}
	if q.Transcript != "" {
		ev.TranscriptPath, ev.TranscriptSession = "", q.Transcript
	}
	return ev, nil
}

func (urlHost) Encode(_ gate.Event, d gate.Decision) ([]byte, string) {
	return fmt.Appendf(nil, `{"decision":%q}`, d.Outcome), typeJSON
}

// rights is what the answer of one route must be.
type rights struct {
	scope gate.Scope // empty: open to everybody
	// target and body name "mine"; where they are another agent's they name
	// "theirs". Neither with limited -1.
	target, body, contentType string
	ok                        int // status for who may
	// theirs is the status for an admin who is limited to "mine" and names
	// "theirs"; 0: the route names nobody, and ok holds for it; -1: it is for
	// those who are not limited.
	theirs int
}

// everyRoute is what may be done by whom. A route that is not here fails the
// test.
var everyRoute = map[string]rights{
	"GET /api/v2/extendedAgent/agents":          {gate.ReadScope, "/api/v2/extendedAgent/agents", "", "", 200, 0},
	"GET /api/v2/extendedAgent/agents/:name":    {gate.ReadScope, "/api/v2/extendedAgent/agents/mine", "", "", 200, 404},
	"PUT /api/v2/extendedAgent/agents/:name":    {gate.AdminScope, "/api/v2/extendedAgent/agents/mine", `{"name":"mine"}`, "", 202, 403},
	"DELETE /api/v2/extendedAgent/agents/:name": {gate.AdminScope, "/api/v2/extendedAgent/agents/mine", "", "", 204, 403},
	"GET /api/v2/extendedAgent/hooks":           {gate.ReadScope, "/api/v2/extendedAgent/hooks", "", "", 200, 0},
	"GET /api/v2/extendedAgent/hooks/:name":     {gate.ReadScope, "/api/v2/extendedAgent/hooks/h", "", "", 200, 0},
	"PUT /api/v2/extendedAgent/hooks/:name":     {gate.AdminScope, "/api/v2/extendedAgent/hooks/h", `{"name":"h","type":"GlobalHook"}`, "", 202, -1},
	"DELETE /api/v2/extendedAgent/hooks/:name":  {gate.AdminScope, "/api/v2/extendedAgent/hooks/h", "", "", 204, -1},

	"GET /v1/agents":                  {gate.ReadScope, "/v1/agents", "", "", 200, 0},
	"GET /v1/agents/:name/hooks":      {gate.ReadScope, "/v1/agents/mine/hooks?dialect=ax-code", "", "", 200, 404},
	"PUT /v1/agents/:name/hooks":      {gate.AdminScope, "/v1/agents/mine/hooks?dialect=ax-code", "{}", "", 202, 403},
	"DELETE /v1/agents/:name/hooks":   {gate.AdminScope, "/v1/agents/mine/hooks?dialect=ax-code", "", "", 204, 403},
	"GET /v1/agents/:name/network":    {gate.ReadScope, "/v1/agents/mine/network", "", "", 200, 404},
	"PUT /v1/agents/:name/network":    {gate.AdminScope, "/v1/agents/mine/network", "{}", "", 202, 403},
	"DELETE /v1/agents/:name/network": {gate.AdminScope, "/v1/agents/mine/network", "", "", 204, 403},

	"GET /api/v1/threads/:thread/hooks":                   {gate.ReadScope, "/api/v1/threads/s-mine/hooks", "", "", 200, 404},
	"POST /api/v1/threads/:thread/hooks/:hook/activate":   {gate.AdminScope, "/api/v1/threads/s-mine/hooks/h/activate", "{}", "", 200, 404},
	"POST /api/v1/threads/:thread/hooks/:hook/deactivate": {gate.AdminScope, "/api/v1/threads/s-mine/hooks/h/deactivate", "{}", "", 200, 404},

	"POST /v1/evaluate":        {gate.EvaluateScope, "/v1/evaluate", stopOf("mine", "s-mine"), "", 200, 403},
	"POST /v1/hooks/:protocol": {gate.EvaluateScope, "/v1/hooks/plain?agent=mine&session=s-mine", "{}", "", 200, 200}, // a host would take an error for "allow"
	"POST /v1/dry-run":         {gate.AdminScope, "/v1/dry-run", `{"hook_event_name":"Stop","spec":{"name":"mine"}}`, "", 200, 403},
	"POST /v1/validate":        {gate.ReadScope, "/v1/validate", "{}", "", 200, 0},

	"GET /v1/sessions/:session":             {gate.ReadScope, "/v1/sessions/s-mine", "", "", 200, 404},
	"DELETE /v1/sessions/:session":          {gate.AdminScope, "/v1/sessions/s-mine", "", "", 204, 404},
	"GET /v1/sessions/:session/override":    {gate.ReadScope, "/v1/sessions/s-mine/override", "", "", 200, 404},
	"PUT /v1/sessions/:session/override":    {gate.AdminScope, "/v1/sessions/s-mine/override", `{"reason":"r","minutes":1}`, "", 200, 404},
	"DELETE /v1/sessions/:session/override": {gate.AdminScope, "/v1/sessions/s-mine/override", "", "", 204, 404},
	"GET /v1/sessions/:session/transcript":  {gate.ReadScope, "/v1/sessions/s-mine/transcript", "", "", 200, 404},
	"PUT /v1/sessions/:session/transcript":  {gate.EvaluateScope, "/v1/sessions/s-mine/transcript", "x", "text/plain", 200, 404},
	"POST /v1/sessions/:session/transcript": {gate.EvaluateScope, "/v1/sessions/s-mine/transcript", "x", "text/plain", 200, 404},

	"GET /v1/evaluations":        {gate.ReadScope, "/v1/evaluations", "", "", 200, 0},
	"GET /v1/evaluations/export": {gate.ReadScope, "/v1/evaluations/export", "", "", 200, 0},
	"GET /v1/evaluations/:id":    {gate.ReadScope, "/v1/evaluations/ev-mine", "", "", 200, 404},

	"GET /v1/evaluations/:id/transcript": {gate.ReadScope, "/v1/evaluations/ev-mine/transcript", "", "", 200, 404},

	"GET /v1/keys":         {gate.AdminScope, "/v1/keys", "", "", 200, -1},
	"POST /v1/keys":        {gate.AdminScope, "/v1/keys", `{"name":"new","scopes":["read"]}`, "", 201, -1},
	"DELETE /v1/keys/:key": {gate.AdminScope, "/v1/keys/ci", "", "", 204, -1},
	"GET /v1/audit":        {gate.AdminScope, "/v1/audit", "", "", 200, -1},

	"GET /healthz":       {"", "/healthz", "", "", 200, 0},
	"GET /readyz":        {"", "/readyz", "", "", 200, 0},
	"GET /metrics":       {gate.ReadScope, "/metrics", "", "", 200, -1},
	"GET /openapi.yaml":  {"", "/openapi.yaml", "", "", 200, 0},
	"GET /schemas/":      {"", "/schemas/", "", "", 200, 0},
	"GET /schemas/:file": {"", "/schemas/spec.json", "", "", 200, 0},
}

// TestWhoMayDoWhatOnEveryRoute goes over the routes as they are registered, so
// that no new one can be forgotten.
func TestWhoMayDoWhatOnEveryRoute(t *testing.T) {
	plain := func(o *Options) { o.Protocol = func(string) (HostProtocol, bool) { return urlHost{}, true } }
	seen := map[string]bool{}
	for _, r := range newWorld(t).echo.Routes() {
		name := r.Method + " " + r.Path
		want, known := everyRoute[strings.Replace(name, "HEAD ", "GET ", 1)]
		if !known {
			t.Errorf("%s: nobody has said who may do this: add it to everyRoute", name)
			continue
		}
		seen[strings.Replace(name, "HEAD ", "GET ", 1)] = true
		ask := func(caller, about string, status int, code string, headers ...string) {
			t.Helper()
			w := newGuardedWorld(t, plain)
			for _, agent := range []string{"mine", "theirs"} {
				w.must(t, 200, "PUT", "/v1/sessions/s-"+agent+"/override", `{"reason":"secret of `+agent+`","minutes":1}`, as("admin"))
			}
			ids := strings.NewReplacer("ev-mine", "ev-0001", "ev-theirs", "ev-0002")
			target, body := ids.Replace(strings.ReplaceAll(want.target, "mine", about)), strings.ReplaceAll(want.body, "mine", about)
			if want.contentType != "" {
				headers = append(headers, "Content-Type: "+want.contentType)
			}
			rec := w.do(r.Method, target, body, headers...)
			got := ""
			if rec.Code >= 400 && rec.Body.Len() > 0 {
				got, _ = errorOf(t, rec)
			}
			if rec.Code != status || got != code {
				t.Errorf("%s by %s about %s: %d %s, want %d %s; %.200s", name, caller, about, rec.Code, got, status, code, rec.Body)
			}
			if challenged := rec.Header().Get("WWW-Authenticate") != ""; challenged != (status == 401) {
				t.Errorf("%s by %s: WWW-Authenticate: %v", name, caller, challenged)
			}
			if about == "theirs" && strings.Contains(rec.Body.String(), "secret of theirs") {
				t.Errorf("%s by %s shows what is another agent's: %s", name, caller, rec.Body)
			}
		}
		if want.scope == "" {
			ask("nobody", "mine", want.ok, "")
			ask("a wrong key", "mine", want.ok, "", as("wrong"))
			continue
		}
		ask("nobody", "mine", 401, "unauthenticated")
		ask("a wrong key", "mine", 401, "unauthenticated", as("wrong"))
		ask("one who may do nothing", "mine", 403, "forbidden", as("nothing"))
		if strings.HasPrefix(r.Path, "/v1/hooks/") { // a host would take it for "allow"
			ask("one who is locked out", "mine", 200, "", as("locked"))
		} else {
			ask("one who is locked out", "mine", 429, "rate_limited", as("locked"))
		}
		for _, scope := range gate.Scopes {
			if scope == want.scope || scope == gate.AdminScope {
				ask(string(scope), "mine", want.ok, "", as(string(scope)))
			} else {
				ask(string(scope), "mine", 403, "forbidden", as(string(scope)))
			}
		}
		switch want.theirs {
		case -1:
			ask("one who is limited", "mine", 403, "forbidden", as("mine"))
		case 0:
			ask("one who is limited", "mine", want.ok, "", as("mine"))
		default:
			code := map[int]string{403: "forbidden", 404: "not_found"}[want.theirs]
			ask("one who is limited", "mine", want.ok, "", as("mine"))
			ask("one who is limited", "theirs", want.theirs, code, as("mine"))
		}
		if want.scope == gate.EvaluateScope {
			ask("an agent", "mine", want.ok, "", as("mines-agent"))
			ask("an agent", "theirs", want.theirs, map[int]string{403: "forbidden", 404: "not_found"}[want.theirs], as("mines-agent"))
		} else {
			ask("an agent", "mine", 403, "forbidden", as("mines-agent"))
		}
	}
	for name := range everyRoute {
		if !seen[name] {
			t.Errorf("%s is no route any more", name)
		}
	}
}

// A caller that is limited gets lists of what is its own, and of what is not it
// cannot tell whether it is there.
func TestWhatIsAnothersIsNotThere(t *testing.T) {
	w := newGuardedWorld(t)
	for target, want := range map[string]string{
		"/api/v2/extendedAgent/agents":            `{"value":[{"name":"mine"}],"nextLink":null}`,
		"/v1/evaluations?agent=theirs":            `{"value":[],"next":null}`,
		"/v1/evaluations?session=s-theirs":        `{"value":[],"next":null}`,
		"/v1/evaluations?agent=nobody&limit=1000": `{"value":[],"next":null}`,
	} {
		sameJSON(t, target, w.must(t, 200, "GET", target, "", as("mine")).Body.Bytes(), want)
	}
	if all := w.must(t, 200, "GET", "/v1/evaluations", "", as("mine")).Body.String(); strings.Contains(all, "theirs") || !strings.Contains(all, "ev-0001") {
		t.Errorf("evaluations are %s", all)
	}
	unknown := strings.NewReplacer("s-theirs", "NAME", "s-nobody", "NAME", "theirs", "NAME", "nobody", "NAME", "ev-0002", "NAME", "ev-9999", "NAME")
	for _, c := range [][3]string{
		{"GET", "/api/v2/extendedAgent/agents/theirs", "/api/v2/extendedAgent/agents/nobody"},
		{"PUT", "/api/v2/extendedAgent/agents/theirs", "/api/v2/extendedAgent/agents/nobody"},
		{"DELETE", "/api/v2/extendedAgent/agents/theirs", "/api/v2/extendedAgent/agents/nobody"},
		{"GET", "/v1/agents/theirs/hooks?dialect=ax-code", "/v1/agents/nobody/hooks?dialect=ax-code"},
		{"PUT", "/v1/agents/theirs/hooks?dialect=ax-code", "/v1/agents/nobody/hooks?dialect=ax-code"},
		{"GET", "/v1/agents/theirs/network", "/v1/agents/nobody/network"},
		{"DELETE", "/v1/agents/theirs/network", "/v1/agents/nobody/network"},
		{"GET", "/api/v1/threads/s-theirs/hooks", "/api/v1/threads/s-nobody/hooks"},
		{"POST", "/api/v1/threads/s-theirs/hooks/h/activate", "/api/v1/threads/s-nobody/hooks/h/activate"},
		{"GET", "/v1/sessions/s-theirs", "/v1/sessions/s-nobody"},
		{"DELETE", "/v1/sessions/s-theirs", "/v1/sessions/s-nobody"},
		{"GET", "/v1/sessions/s-theirs/transcript", "/v1/sessions/s-nobody/transcript"},
		{"GET", "/v1/evaluations/ev-0002", "/v1/evaluations/ev-9999"},
	} {
		theirs, nobodys := w.do(c[0], c[1], "", as("mine")), w.do(c[0], c[2], "", as("mine"))
		if theirs.Code != nobodys.Code || theirs.Code < 400 {
			t.Errorf("%s %s: %d, of what is not there: %d", c[0], c[1], theirs.Code, nobodys.Code)
		}
		if d := gocmp.Diff(unknown.Replace(nobodys.Body.String()), unknown.Replace(theirs.Body.String())); d != "" {
			t.Errorf("%s %s (-not there +another's):\n%s", c[0], c[1], d)
		}
	}
}

func TestCredentialsInHeaders(t *testing.T) {
	w := newGuardedWorld(t)
	get := func(t *testing.T, target string, authorization ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		if authorization != nil {
			r.Header["Authorization"] = authorization
		}
		rec := httptest.NewRecorder()
		w.Handler().ServeHTTP(rec, r)
		return rec
	}
	for name, c := range map[string]struct {
		target        string
		authorization []string
		want          int
	}{
		"as it should be":           {"/v1/evaluations", []string{"Bearer read"}, 200},
		"scheme in lower case":      {"/v1/evaluations", []string{"bearer read"}, 200},
		"two spaces":                {"/v1/evaluations", []string{"Bearer  read"}, 200},
		"two headers":               {"/v1/evaluations", []string{"Bearer read", "Bearer read"}, 401},
		"a good one and another":    {"/v1/evaluations", []string{"Bearer read", "Basic x"}, 401},
		"two in one":                {"/v1/evaluations", []string{"Bearer read, Bearer admin"}, 401},
		"empty beside a good one":   {"/v1/evaluations", []string{"", "Bearer read"}, 401},
		"empty":                     {"/v1/evaluations", []string{""}, 401},
		"no token":                  {"/v1/evaluations", []string{"Bearer "}, 401},
		"another scheme":            {"/v1/evaluations", []string{"Basic read"}, 401},
		"no scheme":                 {"/v1/evaluations", []string{"read"}, 401},
		"a tab for the space":       {"/v1/evaluations", []string{"Bearer\tread"}, 401},
		"too long":                  {"/v1/evaluations", []string{"Bearer " + strings.Repeat("x", maxBearer+1)}, 401},
		"not ASCII":                 {"/v1/evaluations", []string{"Bearer r\u00e9ad"}, 401},
		"key in the URL":            {"/v1/evaluations?access_token=read", nil, 400},
		"key in the URL, twice":     {"/v1/evaluations?API_KEY=read", []string{"Bearer read"}, 400},
		"no way round: two slashes": {"//v1/evaluations", nil, 404},
		"no way round: dots":        {"/healthz/../v1/evaluations", nil, 404},
		"no way round: escaped":     {"/healthz%2f..%2fv1/evaluations", nil, 404},
		"escaped letters":           {"/v1/%65valuations", nil, 404},
		"escaped slash":             {"/v1%2fevaluations", nil, 404},
		"slash at the end":          {"/v1/evaluations/", nil, 404},
		"upper case":                {"/V1/evaluations", nil, 404},
	} {
		t.Run(name, func(t *testing.T) {
			rec := get(t, c.target, c.authorization...)
			if rec.Code != c.want {
				t.Errorf("status %d, want %d: %s", rec.Code, c.want, rec.Body)
			}
			if strings.Contains(rec.Body.String(), "Bearer re") || strings.Contains(w.log.String(), "Bearer") {
				t.Errorf("the credential is in the answer or the log: %s", rec.Body)
			}
		})
	}
	t.Run("method override", func(t *testing.T) {
		w.must(t, 403, "POST", "/v1/evaluate", stopOf("mine", ""), as("read"), "X-HTTP-Method-Override: GET")
		w.must(t, 200, "GET", "/v1/sessions/s-mine", "", as("read"), "X-HTTP-Method-Override: DELETE", "X-Method-Override: DELETE")
		w.must(t, 200, "GET", "/v1/sessions/s-mine", "", as("read"))
	})
	t.Run("HEAD tells no more than GET", func(t *testing.T) {
		w.must(t, 401, "HEAD", "/v1/sessions/s-mine", "")
		w.must(t, 404, "HEAD", "/v1/sessions/s-theirs", "", as("mine"))
	})
	t.Run("lock-out says for how long", func(t *testing.T) {
		if got := get(t, "/v1/evaluations", "Bearer locked").Header().Get("Retry-After"); got != "90" {
			t.Errorf("Retry-After is %q", got)
		}
	})
}

func TestReadinessKeepsReasonsToThoseWhoMayRead(t *testing.T) {
	w := newGuardedWorld(t)
	w.store.down = errors.New("open /secret/path: denied")
	for token, told := range map[string]bool{"": false, "wrong": false, "evaluate": false, "read": true} {
		body := w.must(t, 503, "GET", "/readyz", "", as(token)).Body.String()
		if strings.Contains(body, "/secret/path") != told || !strings.Contains(body, "not_ready") {
			t.Errorf("%q is told %s", token, body)
		}
	}
}

// The certificate counts where there is no token; a wrong token is not saved by
// it, and one that was not verified is none.
func TestClientCertificate(t *testing.T) {
	w := newGuardedWorld(t)
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "read"}}
	for name, c := range map[string]struct {
		state         *tls.ConnectionState
		authorization string
		want          int
	}{
		"verified":         {&tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}}}, "", 200},
		"not verified":     {&tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}, "", 401},
		"none":             {&tls.ConnectionState{}, "", 401},
		"and a wrong key":  {&tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}}}, "Bearer wrong", 401},
		"and a weaker key": {&tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}}}, "Bearer evaluate", 403},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/v1/evaluations", nil)
			r.TLS = c.state
			if c.authorization != "" {
				r.Header.Set("Authorization", c.authorization)
			}
			if got := serve(w.Server, r); got != c.want {
				t.Errorf("status %d, want %d", got, c.want)
			}
		})
	}
}

// A gate's hook is let in nowhere, whoever it says it is: its answer would be the
// hook's verdict, or its URL a way to the API.
func TestNoRouteForAGatesHook(t *testing.T) {
	w := newGuardedWorld(t, func(o *Options) {
		o.Protocol = func(string) (HostProtocol, bool) { return urlHost{}, true }
	})
	for name, want := range everyRoute {
		method, _, _ := strings.Cut(name, " ")
		rec := w.do(method, want.target, want.body, as("admin"), gate.FromHook+": 1")
		code := ""
		if rec.Code >= 400 {
			code, _ = errorOf(t, rec)
		}
		if refused := rec.Code == 403 && code == "forbidden" && rec.Header().Get(gate.FromHook) != ""; refused == (want.scope == "") {
			t.Errorf("%s: %d %s %v", name, rec.Code, code, rec.Header())
		}
	}
}
