package httphooks

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

func TestAntigravity10Request(t *testing.T) {
	var got *http.Request
	var body string
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r.Clone(context.Background()), string(b)
		http.SetCookie(rw, &http.Cookie{Name: "session", Value: "1"})
		fmt.Fprint(rw, `{"decision":"allow"}`)
	})
	caller := w.caller(t)
	in := hook("https://hooks.example.com:8443/gate?a=b", func(h *gate.Hook) { h.Headers = []gate.Header{{Name: "X-Team", Value: "$HOME"}} })
	for range 2 {
		v := ask(t, caller, in)
		if v.Outcome != gate.Allow || v.Evidence.Status != 200 || v.Evidence.Stdout != `{"decision":"allow"}` {
			t.Fatalf("verdict %+v, evidence %+v", v, v.Evidence)
		}
	}
	if got.Method != http.MethodPost || got.Host != "hooks.example.com:8443" || got.URL.String() != "/gate?a=b" || body != string(in.Context) || got.ProtoMajor != 1 {
		t.Errorf("request %s %s %s %s, body %s", got.Proto, got.Method, got.Host, got.URL, body)
	}
	want := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {"stopgate"},
		"Accept-Encoding": {"gzip"}, "X-Team": {"$HOME"}, gate.FromHook: {"1"}, "Content-Length": {fmt.Sprint(len(in.Context))}}
	if d := cmp.Diff(want, got.Header); d != "" { // no cookie, the second time either
		t.Errorf("headers (-want +got):\n%s", d)
	}
	if w.dialled.Load() != 1 {
		t.Errorf("%d connections for two requests", w.dialled.Load())
	}
}

func TestClaudeCode01HeadersFromTheEnvironment(t *testing.T) {
	var got http.Header
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
	env := map[string]string{"TOKEN": "tok-12345\n", "OTHER": "other-secret", "NESTED": "$OTHER"}
	caller := w.caller(t, func(o *Options) {
		o.Allow = []string{"*"}
		o.Getenv = func(name string) string { return env[name] }
	})
	v := ask(t, caller, hook("https://hooks.example.com/", ofClaudeCode, func(h *gate.Hook) {
		h.AllowedEnv = []string{"TOKEN", "NESTED", "UNSET"}
		h.Headers = []gate.Header{{Name: "Authorization", Value: "Bearer $TOKEN"}, {Name: "X-Braces", Value: "a${TOKEN}"}, {Name: "X-Nested", Value: "$NESTED"},
			{Name: "X-Forbidden", Value: "<$OTHER>"}, {Name: "X-Unset", Value: "<${UNSET}>"}, {Name: "X-Plain", Value: "$ $1 ${} $${x-y}"}, {Name: "X-Longer", Value: "<$TOKENS>"}}
	}))
	if v.Outcome != gate.Allow {
		t.Fatal(v.Failure)
	}
	for name, want := range map[string]string{"Authorization": "Bearer tok-12345", "X-Braces": "atok-12345", "X-Nested": "$OTHER", "X-Forbidden": "<>",
		"X-Unset": "<>", "X-Plain": "$ $1 ${} $${x-y}", "X-Longer": "<>"} {
		if got.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Get(name), want)
		}
	}
	// Without an environment every variable is empty.
	v = ask(t, w.caller(t, func(o *Options) { o.Allow = []string{"*"} }), hook("https://hooks.example.com/", ofClaudeCode, func(h *gate.Hook) {
		h.AllowedEnv, h.Headers = []string{"PATH"}, []gate.Header{{Name: "X-Path", Value: "<$PATH>"}}
	}))
	if v.Outcome != gate.Allow || got.Get("X-Path") != "<>" {
		t.Errorf("X-Path is %q, %v", got.Get("X-Path"), v.Failure)
	}
}

func TestHeadersThatAreNotSent(t *testing.T) {
	w := newWorld(t, says("{}"))
	caller := w.caller(t, func(o *Options) {
		o.Allow = []string{"*"}
		o.Getenv = func(string) string { return "secret\r\nX-Injected: 1" }
	})
	for name, header := range map[string]gate.Header{
		"a line break":   {Name: "X", Value: "a\r\nX-Injected: 1"},
		"in a name":      {Name: "X\r\nY", Value: "a"},
		"in a variable":  {Name: "X", Value: "$A"},
		"Host":           {Name: "host", Value: "169.254.169.254"},
		"smuggling":      {Name: "Transfer-Encoding", Value: "chunked"},
		"of a proxy":     {Name: "Proxy-Authorization", Value: "a"},
		"too long":       {Name: "X", Value: strings.Repeat("a", 1<<20)},
		"another length": {Name: "Content-Length", Value: "3"},
	} {
		t.Run(name, func(t *testing.T) {
			v := ask(t, caller, hook("https://hooks.example.com/", ofClaudeCode, func(h *gate.Hook) { h.Headers, h.AllowedEnv = []gate.Header{header}, []string{"A"} }))
			wantFailure(t, v, gate.EgressDenied, "header")
			if strings.Contains(v.Failure.Message, "secret") {
				t.Errorf("message %q quotes the value", v.Failure.Message)
			}
		})
	}
	if w.dialled.Load() > 0 {
		t.Error("something was dialled")
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var asked atomic.Int64
		w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			rw.Header().Set("Location", "https://localhost/secret")
			rw.WriteHeader(status)
			fmt.Fprint(rw, `{"decision":"deny"}`)
		})
		wantFailure(t, ask(t, w.caller(t), hook("https://hooks.example.com/")), gate.HTTPStatus, fmt.Sprintf("answered with %d", status))
		if asked.Load() != 1 || w.dialled.Load() != 1 {
			t.Errorf("%d: asked %d times, dialled %v", status, asked.Load(), w.asked)
		}
	}
}

func TestHostileAnswers(t *testing.T) {
	long := strings.Repeat("x", 100<<20)
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		code    gate.FailureCode
		says    string
	}{
		{"a body without end", func(rw http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(rw, long[:64<<10]); err != nil {
					return
				}
			}
		}, gate.OutputTooLarge, "1048576 bytes"},
		{"a body of one byte too many", says(`{"reason":"` + long[:1<<20] + `"}`), gate.OutputTooLarge, "1048576 bytes"},
		{"a gzip bomb", func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(rw)
			_, _ = io.WriteString(z, long)
			z.Close()
		}, gate.OutputTooLarge, "1048576 bytes"},
		{"no gzip at all", func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(rw, "{}")
		}, gate.HTTPUnreachable, "broke off its answer"},
		{"an encoding nobody asked for", func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Encoding", "br")
			fmt.Fprint(rw, "{}")
		}, gate.BadOutput, `encoding "br"`},
		{"headers without end", func(rw http.ResponseWriter, r *http.Request) {
			for i := range 1000 {
				rw.Header().Set(fmt.Sprintf("X-%d", i), long[:1000])
			}
		}, gate.HTTPUnreachable, "hooks.example.com could not be reached"},
		{"a body that breaks off", func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Length", "100")
			fmt.Fprint(rw, `{"decision":`)
		}, gate.HTTPUnreachable, "broke off its answer"},
		{"a connection that breaks off", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, gate.HTTPUnreachable, "could not be reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantFailure(t, ask(t, newWorld(t, c.handler).caller(t), hook("https://hooks.example.com/")), c.code, c.says)
		})
	}
}

// raw is a server of plain TCP on loopback, which claude-code may be shown.
func raw(t *testing.T, serve func(net.Conn)) (url, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				serve(conn)
			}()
		}
	}()
	return "http://" + l.Addr().String() + "/", l.Addr().String()
}

// Whatever a server does with the connection, the hook's time is the hook's time
// (fault G33).
func TestServersThatDoNotAnswer(t *testing.T) {
	repeat := func(conn net.Conn, s string, every time.Duration) {
		for {
			if _, err := io.WriteString(conn, s); err != nil {
				return
			}
			time.Sleep(every)
		}
	}
	for name, c := range map[string]struct {
		serve func(net.Conn)
		code  gate.FailureCode
	}{
		"never":                {func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }, gate.Timeout},
		"headers byte by byte": {func(conn net.Conn) { repeat(conn, "X", 10*time.Millisecond) }, gate.Timeout},
		"a body byte by byte": {func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
			repeat(conn, "x", 10*time.Millisecond)
		}, gate.Timeout},
		"interim answers, slow": {func(conn net.Conn) { repeat(conn, "HTTP/1.1 103 Early Hints\r\n\r\n", 10*time.Millisecond) }, gate.Timeout},
		"interim answers, many": {func(conn net.Conn) {
			repeat(conn, "HTTP/1.1 100 Continue\r\nX: "+strings.Repeat("x", 1000)+"\r\n\r\n", 0)
		}, gate.HTTPUnreachable},
		"another protocol": {func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			_, _ = io.Copy(io.Discard, conn)
		}, gate.HTTPStatus},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, address := raw(t, c.serve)
			caller, err := New(Options{Allow: []string{address}})
			if err != nil {
				t.Fatal(err)
			}
			defer caller.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			answered := make(chan gate.Verdict, 1)
			go func() { answered <- caller.Evaluate(ctx, hook(url, ofClaudeCode)) }()
			select {
			case v := <-answered:
				if v.Failure == nil || v.Failure.Code != c.code && v.Failure.Code != gate.Timeout {
					t.Errorf("verdict %q %v, want %s", v.Outcome, v.Failure, c.code)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("the hook outlives its time")
			}
		})
	}
}

// Servers close connections that are idle, at the moment of the next request
// too: that is no failure of the hook.
func TestConnectionsThatWereClosedMeanwhile(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
	var requests atomic.Int64
	url, address := raw(t, func(conn net.Conn) {
		requests.Add(1)
		_, _ = io.WriteString(conn, answer)
		_, _ = http.ReadRequest(bufio.NewReader(conn)) // and closes
	})
	caller, err := New(Options{Allow: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	for range 3 {
		if v := ask(t, caller, hook(url, ofClaudeCode)); v.Outcome != gate.Allow {
			t.Error(v.Failure)
		}
	}
	if requests.Load() != 3 {
		t.Errorf("%d connections answered, want 3", requests.Load())
	}
}

func TestServersThatCannotBeReached(t *testing.T) {
	w := newWorld(t, says("{}"))
	refused := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("connection refused") }
	nowhere := func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }
	for _, c := range []struct {
		name   string
		change func(*Options)
		url    string
		says   string
	}{
		{"nobody listens", func(o *Options) { o.Dial = refused }, "https://hooks.example.com/?key=secret", "connection refused"},
		{"no such name", func(o *Options) { o.Resolve = nowhere }, "https://hooks.example.com/", "no such host"},
		{"a name without address", func(o *Options) {
			o.Resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, nil }
		}, "https://hooks.example.com/", "no address"},
		{"a certificate of nobody's", func(o *Options) { o.RootCAs = nil }, "https://hooks.example.com/", "certificate"},
		{"a certificate of another host", func(o *Options) {}, "https://hooks.example.org/", "certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := ask(t, w.caller(t, c.change), hook(c.url))
			wantFailure(t, v, gate.HTTPUnreachable, c.says)
			if strings.Contains(v.Failure.Message, "secret") {
				t.Errorf("message %q holds the URL's query", v.Failure.Message)
			}
		})
	}
}

// An address that takes no connection is not the end: the next one is tried.
func TestAddressesAreTriedInTurn(t *testing.T) {
	w := newWorld(t, says(`{}`))
	second := netip.MustParseAddr("2606:2800:220:1:248:1893:25c8:1946")
	caller := w.caller(t, func(o *Options) {
		o.Resolve = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{public, second}, nil }
		dial := o.Dial
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, public.String()) {
				return nil, errors.New("unreachable")
			}
			return dial(ctx, network, address)
		}
	})
	if v := ask(t, caller, hook("https://hooks.example.com/")); v.Outcome != gate.Allow || strings.Join(w.asked, " ") != "["+second.String()+"]:443" {
		t.Errorf("verdict %q %v, dialled %v", v.Outcome, v.Failure, w.asked)
	}
}

// Fault http-02: the environment's proxy is nobody's business here. net/http
// reads it once in a process, so it is set for one of its own.
func TestFaultHttp02ProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	if os.Getenv("HTTPHOOKS_TEST_BEHIND_A_PROXY") == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "HTTPHOOKS_TEST_BEHIND_A_PROXY=1", "NO_PROXY=", "no_proxy=")
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
			cmd.Env = append(cmd.Env, name+"=http://127.0.0.1:1")
		}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	r, _ := http.NewRequest(http.MethodPost, "https://hooks.example.com/", nil)
	if p, err := http.ProxyFromEnvironment(r); p == nil || err != nil {
		t.Fatalf("net/http would use no proxy, so nothing is tested: %v", err)
	}
	w := newWorld(t, says("{}"))
	if v := ask(t, w.caller(t), hook("https://hooks.example.com/")); v.Outcome != gate.Allow {
		t.Error(v.Failure)
	}
	if d := cmp.Diff([]string{public.String() + ":443"}, w.asked); d != "" {
		t.Errorf("dialled (-want +got):\n%s", d)
	}
	url, address := raw(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") })
	caller, err := New(Options{Allow: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	if v := ask(t, caller, hook(url, ofClaudeCode)); v.Outcome != gate.Allow {
		t.Error(v.Failure)
	}
}

// proxy is one that speaks CONNECT and leads everywhere to the world.
func (w *world) proxy(t *testing.T, status int) (address *url.URL, connected *[]string) {
	t.Helper()
	connected = &[]string{}
	p := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		*connected = append(*connected, r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
		if status != 200 {
			http.Error(rw, "no", status)
			return
		}
		there, err := net.Dial("tcp", w.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer there.Close()
		here, _, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer here.Close()
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(there, here) }()
		_, _ = io.Copy(here, there)
	}))
	t.Cleanup(p.Close)
	u, _ := url.Parse(p.URL)
	return u, connected
}

func TestProxy(t *testing.T) {
	unknown := func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }
	through := func(p *url.URL) func(*Options) {
		return func(o *Options) { o.Proxy, o.Resolve, o.Dial = p, unknown, nil }
	}
	t.Run("names that it alone can resolve", func(t *testing.T) {
		w := newWorld(t, says(`{"decision":"deny","reason":"no"}`))
		p, connected := w.proxy(t, 200)
		p.User = url.UserPassword("me", "proxy-password")
		v := ask(t, w.caller(t, through(p)), hook("https://hooks.example.com/"))
		if v.Outcome != gate.Block || v.Reason != "no" {
			t.Errorf("verdict %q %v", v.Outcome, v.Failure)
		}
		if d := cmp.Diff([]string{"CONNECT hooks.example.com:443 Basic bWU6cHJveHktcGFzc3dvcmQ="}, *connected); d != "" {
			t.Errorf("the proxy saw (-want +got):\n%s", d)
		}
	})
	t.Run("it refuses", func(t *testing.T) {
		w := newWorld(t, says("{}"))
		p, _ := w.proxy(t, 407)
		p.User = url.UserPassword("me", "proxy-password")
		v := ask(t, w.caller(t, through(p)), hook("https://hooks.example.com/"))
		wantFailure(t, v, gate.HTTPUnreachable, "Proxy Authentication Required")
		if strings.Contains(v.Failure.Message, "proxy-password") {
			t.Error(v.Failure.Message)
		}
	})
	t.Run("the rules hold", func(t *testing.T) {
		w := newWorld(t, says("{}"))
		p, connected := w.proxy(t, 200)
		caller := w.caller(t, through(p))
		for _, url := range []string{"https://localhost/", "https://127.0.0.1/", "https://10.0.0.1/", "https://169.254.169.254/", "https://2130706433/"} {
			wantFailure(t, ask(t, caller, hook(url)), gate.EgressDenied, "")
		}
		here := w.caller(t, through(p), func(o *Options) {
			o.Resolve = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{netip.IPv6Loopback()}, nil }
		})
		wantFailure(t, ask(t, here, hook("https://hooks.example.com/")), gate.EgressDenied, "is this machine")
		if len(*connected) > 0 {
			t.Errorf("the proxy saw %v", *connected)
		}
	})
	t.Run("this machine is reached without it", func(t *testing.T) {
		w := newWorld(t, says("{}"))
		p, connected := w.proxy(t, 200)
		local, address := raw(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n") })
		v := ask(t, w.caller(t, through(p), func(o *Options) { o.Allow = []string{address} }), hook(local, ofClaudeCode))
		if v.Outcome != gate.Allow || len(*connected) > 0 {
			t.Errorf("verdict %q %v, the proxy saw %v", v.Outcome, v.Failure, *connected)
		}
	})
}

// Connections are bounded, and who waits for one waits inside its own time.
func TestConnectionsAreBounded(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-leave
	})
	caller := w.caller(t, func(o *Options) { o.Connections = 1 })
	first := make(chan gate.Verdict, 1)
	go func() { first <- ask(t, caller, hook("https://hooks.example.com/")) }()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantFailure(t, caller.Evaluate(ctx, hook("https://other.example.com/")), gate.Timeout, "before a connection was free")
	close(leave)
	if v := <-first; v.Outcome != gate.Allow {
		t.Error(v.Failure)
	}
	go func() { <-entered }()
	if v := ask(t, caller, hook("https://hooks.example.com/")); v.Outcome != gate.Allow {
		t.Error(v.Failure)
	}
}

func TestOtherDialectsAreNotAsked(t *testing.T) {
	w := newWorld(t, says("{}"))
	for _, d := range []gate.Dialect{gate.Azure, gate.AXCode, ""} {
		wantFailure(t, ask(t, w.caller(t), hook("https://hooks.example.com/", func(h *gate.Hook) { h.Dialect = d })), gate.Internal, "")
	}
}

// TestServersOfOldTLS: TLS 1.2 is the oldest that is spoken.
func TestServersOfOldTLS(t *testing.T) {
	w := newWorld(t, says(`{}`))
	for version, want := range map[uint16]gate.Outcome{tls.VersionTLS11: gate.NoVerdict, tls.VersionTLS12: gate.Allow} {
		server := httptest.NewUnstartedServer(says(`{"decision":"allow"}`))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.TLS = &tls.Config{Certificates: w.TLS.Certificates, MinVersion: version, MaxVersion: version} // #nosec G402 -- to be refused
		server.StartTLS()
		t.Cleanup(server.Close)
		caller := w.caller(t, func(o *Options) {
			o.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
			}
		})
		if v := ask(t, caller, hook("https://hooks.example.com/")); v.Outcome != want {
			t.Errorf("%s: %s, want %s: %v", tls.VersionName(version), v.Outcome, want, v.Failure)
		}
	}
}
