package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stopgate/gate"
)

// plainHost is a host that is answered with what went wrong.
type plainHost struct{}

func (plainHost) Decode([]byte, HostQuery) (gate.Event, error) {
	return gate.Event{Name: gate.Stop, Protocol: "plain", Agent: "default"}, nil
}

func (plainHost) Encode(_ gate.Event, d gate.Decision) ([]byte, string) {
	return fmt.Appendf(nil, `{"code":%q}`, d.GateError.Code), typeJSON
}

// connection is what drain sees of one.
type connection struct {
	*httptest.ResponseRecorder
	deadline time.Time // for reading
}

func (c *connection) SetReadDeadline(t time.Time) error { c.deadline = t; return nil }

// What a refused caller goes on to send is read for a bounded time, and not
// waited for where it has not begun.
func TestRefusedBodyIsDrainedInTime(t *testing.T) {
	for name, c := range map[string]struct {
		expect  string
		drained bool
	}{
		"sent":                  {"", true},
		"waits to be asked for": {"100-continue", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				r := httptest.NewRequest(http.MethodPost, "/v2/nowhere", strings.NewReader("body"))
				if c.expect != "" {
					r.Header.Set("Expect", c.expect)
				}
				body := &countingBody{Reader: strings.NewReader("body")}
				r.Body = body
				conn := &connection{ResponseRecorder: httptest.NewRecorder()}
				w.Handler().ServeHTTP(conn, r)
				if (body.read == 4) != c.drained {
					t.Errorf("%d bytes were read", body.read)
				}
				if wait := time.Until(conn.deadline); c.drained && (wait <= 0 || wait > 2*time.Second) {
					t.Errorf("a caller can hold its connection for %s, want at most 2 s", wait)
				}
			})
		})
	}
}

type countingBody struct {
	io.Reader
	read int
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

func (b *countingBody) Close() error { return nil }

// dial opens a connection that gives up after a while.
func dial(t *testing.T, web *httptest.Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A simple client writes its whole request before it reads. Whatever a request
// is refused for before its body was read, the answer reaches it.
func TestRefusalReachesAClientThatWritesFirst(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Limits.BodyBytes, o.Limits.TranscriptBytes, o.Limits.SpecBytes = 1<<10, 1<<10, 1<<10
		o.Protocol = func(string) (HostProtocol, bool) { return plainHost{}, true }
	})
	web := httptest.NewServer(w.Handler())
	defer web.Close()
	// More than the buffers of both sides' sockets hold together.
	body := bytes.Repeat([]byte("x"), 12<<20)
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	chunks := fmt.Appendf(nil, "%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	for _, c := range []struct {
		name, line, headers string
		body                []byte
		want                string
	}{
		{"too large", "POST /v1/evaluate", "Content-Type: application/json\r\n" + length, body, "413"},
		{"too large, of no stated length", "POST /v1/evaluate", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n", chunks, "413"},
		{"too large an upload", "PUT /v1/sessions/s/transcript", "Content-Type: text/plain\r\n" + length, body, "413"},
		{"too large an upload of no stated length", "PUT /v1/sessions/s/transcript", "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n", chunks, "413"},
		{"wrong type", "PUT " + agents + "/a", "Content-Type: text/csv\r\n" + length, body, "415"},
		{"another page's", "POST /v1/evaluate", "Origin: https://evil.example\r\n" + length, body, "403"},
		{"no such route", "POST /v2/evaluate", length, body, "404"},
		{"too large for a host", "POST /v1/hooks/plain", "Content-Type: application/json\r\n" + length, body, "200"},
		{"too large for a host, of no stated length", "POST /v1/hooks/plain", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n", chunks, "200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := dial(t, web)
			if _, err := conn.Write(append([]byte(c.line+" HTTP/1.1\r\nHost: localhost\r\n"+c.headers+"\r\n"), c.body...)); err != nil {
				t.Fatalf("the connection was closed on the body: %v", err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("the answer was lost: %v", err)
			}
			defer answer.Body.Close()
			if text, err := io.ReadAll(answer.Body); err != nil || !strings.HasPrefix(answer.Status, c.want) || !bytes.Contains(text, []byte(`"code"`)) {
				t.Errorf("%s %s (%v), want %s", answer.Status, text, err, c.want)
			}
		})
	}
	t.Run("one that never ends its body is let go", func(t *testing.T) {
		conn := dial(t, web)
		fmt.Fprintf(conn, "POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n{", length)
		if text, err := io.ReadAll(conn); err != nil || !bytes.Contains(text, []byte("body_too_large")) {
			t.Errorf("%q, %v; want the answer and the end", text, err)
		}
	})
	t.Run("one that waits for 100 Continue is not asked to go on", func(t *testing.T) {
		conn := dial(t, web)
		fmt.Fprintf(conn, "POST /v1/evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n%s\r\n", length)
		if text, err := io.ReadAll(conn); err != nil || !bytes.HasPrefix(text, []byte("HTTP/1.1 413")) {
			t.Errorf("%q, %v; want the answer alone", text, err)
		}
	})
}
