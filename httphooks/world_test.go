package httphooks

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stopgate/gate"
)

// world is a TLS server on loopback that stands for every host there is: names
// resolve to an external address, and dialling that reaches the server.
type world struct {
	*httptest.Server
	opt     Options
	dialled atomic.Int64
	mu      sync.Mutex
	asked   []string // addresses that were dialled
}

var public = netip.MustParseAddr("93.184.216.34")

func newWorld(t *testing.T, handler http.HandlerFunc) *world {
	t.Helper()
	w := &world{Server: httptest.NewUnstartedServer(handler)}
	cert, roots := certificate(t, "example.com", "*.example.com", "localhost", "xn--bcher-kva.example")
	w.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	w.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are to fail
	w.EnableHTTP2 = true
	w.StartTLS()
	t.Cleanup(w.Server.Close)
	w.opt = Options{RootCAs: roots,
		Resolve: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{public}, nil },
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			w.mu.Lock()
			w.asked = append(w.asked, address)
			w.mu.Unlock()
			w.dialled.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, w.Listener.Addr().String())
		}}
	return w
}

func certificate(t *testing.T, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, public.AsSlice()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

func (w *world) caller(t *testing.T, change ...func(*Options)) *Caller {
	t.Helper()
	opt := w.opt
	for _, f := range change {
		f(&opt)
	}
	c, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// hook is one of antigravity before a tool, unless changed.
func hook(url string, change ...func(*gate.Hook)) gate.Input {
	h := &gate.Hook{Name: "h", Dialect: gate.Antigravity, Type: gate.HTTPHook, Event: gate.PreToolUse, URL: url, FailMode: gate.FailAllow}
	for _, f := range change {
		f(h)
	}
	return gate.Input{Hook: h, Event: &gate.Event{Name: h.Event}, Context: []byte(`{"tool_call":{"name":"read_file","args":{}}}`)}
}

func ofClaudeCode(h *gate.Hook) { h.Dialect = gate.ClaudeCode }

func on(event gate.EventName) func(*gate.Hook) { return func(h *gate.Hook) { h.Event = event } }

// ask evaluates within a time that only what hangs passes.
func ask(t *testing.T, c *Caller, in gate.Input) gate.Verdict {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return c.Evaluate(ctx, in)
}

// wantFailure checks that there is no verdict, and why.
func wantFailure(t *testing.T, v gate.Verdict, code gate.FailureCode, says string) {
	t.Helper()
	if v.Outcome != gate.NoVerdict || v.Failure == nil || v.Failure.Code != code || !strings.Contains(v.Failure.Message, says) {
		t.Errorf("verdict %q %v, want %s: …%s…", v.Outcome, v.Failure, code, says)
	}
}

// says answers every request with the body.
func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, body)
	}
}
