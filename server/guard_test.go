package server

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

var pathParam = regexp.MustCompile(`:\w+`)

// TestEveryRouteIsGuarded goes over the routes as they are registered, so that
// no new one can be forgotten.
func TestEveryRouteIsGuarded(t *testing.T) {
	w := newWorld(t)
	for _, r := range w.echo.Routes() {
		target := pathParam.ReplaceAllString(r.Path, "x")
		refused := func(name string, status int, code string, headers ...string) {
			t.Helper()
			rec := w.do(r.Method, target, "{}", headers...)
			if got, _ := errorOf(t, rec); rec.Code != status || got != code {
				t.Errorf("%s %s, %s: %d %s, want %d %s", r.Method, r.Path, name, rec.Code, got, status, code)
			}
		}
		refused("foreign origin", 403, "bad_origin", "Origin: https://evil.example")
		refused("opaque origin", 403, "bad_origin", "Origin: null")
		refused("foreign host", 403, "bad_origin", "Host: evil.example:8790")
		refused("foreign fetch", 403, "bad_origin", "Sec-Fetch-Site: cross-site")
		if r.Method == http.MethodPost || r.Method == http.MethodPut {
			for _, contentType := range []string{"", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/html", "application/json; charset=iso-8859-1"} {
				refused("content type "+contentType, 415, "unsupported_media_type", "Content-Type: "+contentType)
			}
			refused("compressed body", 415, "unsupported_media_type", "Content-Encoding: gzip")
			if !strings.HasSuffix(r.Path, "/transcript") {
				refused("content type text/plain", 415, "unsupported_media_type", "Content-Type: text/plain")
			}
		}
	}
}

func TestHostAndOrigin(t *testing.T) {
	loopback := func(*Options) {}
	public := func(o *Options) { o.Loopback, o.Hosts = false, nil }
	named := func(o *Options) { o.Loopback, o.Hosts = false, []string{"gate.example"} }
	listed := func(o *Options) { o.Origins = []string{"https://console.example"} }
	for name, c := range map[string]struct {
		change  func(*Options)
		headers []string
		want    int
	}{
		"loopback: localhost":                    {loopback, []string{"Host: localhost:8790"}, 200},
		"loopback: LOCALHOST.":                   {loopback, []string{"Host: LOCALHOST."}, 200},
		"loopback: 127.0.0.1":                    {loopback, []string{"Host: 127.0.0.1:8790"}, 200},
		"loopback: all of 127/8":                 {loopback, []string{"Host: 127.9.9.9"}, 200},
		"loopback: ::1":                          {loopback, []string{"Host: [::1]:8790"}, 200},
		"loopback: ::1 without a port":           {loopback, []string{"Host: [::1]"}, 200},
		"loopback: a configured name":            {loopback, []string{"Host: Example.com:1"}, 200},
		"loopback: another address":              {loopback, []string{"Host: 10.0.0.1:8790"}, 403},
		"loopback: 0.0.0.0":                      {loopback, []string{"Host: 0.0.0.0:8790"}, 403},
		"loopback: a rebound name":               {loopback, []string{"Host: localhost.evil.example"}, 403},
		"loopback: a name that ends in ours":     {loopback, []string{"Host: evil-example.com"}, 403},
		"loopback: user part":                    {loopback, []string{"Host: localhost@evil.example"}, 403},
		"public: any host":                       {public, []string{"Host: anything.example"}, 200},
		"named: the name":                        {named, []string{"Host: gate.example"}, 200},
		"named: an address":                      {named, []string{"Host: 10.0.0.1:80"}, 200},
		"named: another name":                    {named, []string{"Host: evil.example"}, 403},
		"same origin":                            {loopback, []string{"Host: localhost:8790", "Origin: http://localhost:8790"}, 200},
		"same host, another port":                {loopback, []string{"Host: localhost:8790", "Origin: http://localhost:3000"}, 403},
		"an extension's origin":                  {loopback, []string{"Host: localhost:8790", "Origin: chrome-extension://localhost:8790"}, 403},
		"listed origin":                          {listed, []string{"Origin: https://console.example", "Sec-Fetch-Site: cross-site"}, 200},
		"listed origin with another scheme":      {listed, []string{"Origin: http://console.example"}, 403},
		"same site is another port of localhost": {loopback, []string{"Sec-Fetch-Site: same-site"}, 403},
		"typed by a person":                      {loopback, []string{"Sec-Fetch-Site: none"}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			newWorld(t, c.change).must(t, c.want, "GET", "/healthz", "", c.headers...)
		})
	}
	t.Run("two origins", func(t *testing.T) {
		w := newWorld(t)
		r, _ := http.NewRequest(http.MethodGet, "http://localhost/healthz", nil)
		r.Header["Origin"] = []string{"http://localhost", "https://evil.example"}
		if err := w.checkOrigin(r); err == nil {
			t.Error("accepted")
		}
	})
}

func TestContentTypesThatAreAccepted(t *testing.T) {
	w := newWorld(t)
	for _, contentType := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"} {
		w.must(t, 200, "POST", "/v1/evaluate", `{"hook_event_name":"Stop"}`, "Content-Type: "+contentType)
	}
	w.must(t, 415, "POST", "/v1/evaluate", `{"hook_event_name":"Stop"}`, "Content-Type: application/yaml")
}

func TestRequestID(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		given string
		kept  bool
	}{
		"harmless":  {"Ab-1_2.3", true},
		"longest":   {strings.Repeat("a", 64), true},
		"too long":  {strings.Repeat("a", 65), false},
		"with text": {"a b", false},
		"injection": {"a\tb", false},
		"none":      {"", false},
		"not ASCII": {"ü", false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, target := range []string{"/healthz", "/nowhere"} {
				got := w.do("GET", target, "", "X-Request-Id: "+c.given).Header().Get("X-Request-Id")
				if (got == c.given) != c.kept || !harmless(got) {
					t.Errorf("%s: request id %q for %q, kept: want %v", target, got, c.given, c.kept)
				}
			}
		})
	}
	if a, b := w.do("GET", "/healthz", ""), w.do("GET", "/healthz", ""); a.Header().Get("X-Request-Id") == b.Header().Get("X-Request-Id") {
		t.Error("two requests have one id")
	}
}

// A limit that nobody set is a mistake of the wiring, not a limit of nothing.
func TestEveryLimitIsRequired(t *testing.T) {
	w := newWorld(t)
	for name, unset := range map[string]func(*Limits){
		"BodyBytes": func(l *Limits) { l.BodyBytes = 0 }, "SpecBytes": func(l *Limits) { l.SpecBytes = 0 },
		"TranscriptBytes": func(l *Limits) { l.TranscriptBytes = 0 }, "InFlight": func(l *Limits) { l.InFlight = 0 },
	} {
		opt := w.opt
		unset(&opt.Limits)
		if _, err := New(opt); err == nil {
			t.Errorf("without %s there is no error", name)
		}
	}
}

// A request that says twice where it ends is the last of its connection: others on
// the way may have seen it end elsewhere (RFC 9112, 6.1).
func TestNothingFollowsARequestOfTwoLengths(t *testing.T) {
	w := newWorld(t)
	web := httptest.NewServer(w.Handler())
	defer web.Close()
	for headers, ends := range map[string]bool{"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n": true, "Transfer-Encoding: chunked\r\n": true, "Content-Length: 12\r\n": false} {
		conn := dial(t, web)
		fmt.Fprintf(conn, "POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n2\r\n{}\r\n0\r\n\r\n", headers)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Close != ends {
			t.Errorf("%q: the connection ends: %v", headers, answer.Close)
		}
		_ = answer.Body.Close()
	}
}
