package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"stopgate/config"
	"stopgate/httphooks"
)

// scriptedWorld stands for every host that http hooks may ask, in memory. The
// caller is the real one, with its rules of egress and TLS; names resolve to an
// external address, and whatever is dialled is the world.
type scriptedWorld struct {
	caller *httphooks.Caller
	conns  chan net.Conn
	closed chan struct{}
	server *http.Server
	key    *ecdsa.PrivateKey
	ca     *x509.Certificate

	mu       sync.Mutex
	answers  []config.HTTPAnswer
	requests []hookRequest
	wanting  []string // URLs that there was no answer for
}

// hookRequest is what an http hook has sent.
type hookRequest struct {
	url    string
	header http.Header
	body   []byte
}

// externalHost is any address that egress rules take for an external one; it is
// never dialled.
var externalHost = netip.MustParseAddr("93.184.216.34")

func newScriptedWorld(allow []string, getenv func(string) string) (*scriptedWorld, error) {
	w := &scriptedWorld{conns: make(chan net.Conn), closed: make(chan struct{})}
	var err error
	if w.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	if w.ca, err = w.certify(&x509.Certificate{IsCA: true, BasicConstraintsValid: true}, nil); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(w.ca)
	w.caller, err = httphooks.New(httphooks.Options{Allow: allow, RootCAs: roots, Getenv: getenv, Dial: w.dial,
		Resolve: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{externalHost}, nil }})
	if err != nil {
		return nil, err
	}
	w.server = &http.Server{Handler: w, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: config.DefaultCaseTimeout}
	go w.server.Serve(w) //nolint:errcheck // it ends when it is closed
	return w, nil
}

func (w *scriptedWorld) close() {
	_ = w.caller.Close()
	_ = w.server.Close() // closes the world as its listener, and every connection
}

// certify signs a certificate, by itself if there is no authority yet.
func (w *scriptedWorld) certify(c, by *x509.Certificate) (*x509.Certificate, error) {
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	if by == nil {
		by = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, w.key.Public(), w.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// dial connects to the world, whatever the address. The first byte says whether
// TLS is spoken.
func (w *scriptedWorld) dial(ctx context.Context, _, address string) (net.Conn, error) {
	theirs, ours := net.Pipe()
	go func() {
		buffered := bufio.NewReader(ours)
		first, err := buffered.Peek(1)
		if err != nil {
			ours.Close()
			return
		}
		var c net.Conn = peeked{ours, buffered}
		const handshake = 22 // the type of a TLS record
		if first[0] == handshake {
			c = tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
				return w.certificate(h.ServerName, address)
			}})
		}
		select {
		case w.conns <- c:
		case <-w.closed:
			ours.Close()
		}
	}()
	return theirs, ctx.Err()
}

// peeked is a connection whose first bytes were read ahead.
type peeked struct {
	net.Conn
	from *bufio.Reader
}

// Read implements [net.Conn].
func (p peeked) Read(b []byte) (int, error) { return p.from.Read(b) }

func (w *scriptedWorld) certificate(name, address string) (*tls.Certificate, error) {
	leaf := &x509.Certificate{}
	if name != "" {
		leaf.DNSNames = []string{name}
	} else if host, _, err := net.SplitHostPort(address); err == nil {
		leaf.IPAddresses = []net.IP{net.ParseIP(host)}
	}
	signed, err := w.certify(leaf, w.ca)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{signed.Raw}, PrivateKey: w.key}, nil
}

// Accept implements [net.Listener].
func (w *scriptedWorld) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (w *scriptedWorld) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.closed:
	default:
		close(w.closed)
	}
	return nil
}

// Addr implements [net.Listener].
func (w *scriptedWorld) Addr() net.Addr { return &net.TCPAddr{} }

// play sets the answers from now on.
func (w *scriptedWorld) play(answers []config.HTTPAnswer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers, w.requests, w.wanting = slices.Clone(answers), nil, nil
}

// asked are the requests since play.
func (w *scriptedWorld) asked() []hookRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

// maxRequest is far above what a hook is told, in bytes.
const maxRequest = 64 << 20

// ServeHTTP implements [http.Handler]. A request without an answer is not
// answered: its connection breaks.
func (w *scriptedWorld) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	a, ok := w.answer(hookRequest{url: scheme + r.Host + r.URL.RequestURI(), header: r.Header, body: body})
	if !ok {
		panic(http.ErrAbortHandler)
	}
	for name, value := range a.Headers {
		rw.Header().Set(name, value)
	}
	rw.WriteHeader(a.Status)
	_, _ = io.WriteString(rw, a.Body) // who asked may have gone away
}

func (w *scriptedWorld) answer(r hookRequest) (config.HTTPAnswer, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, r)
	i := slices.IndexFunc(w.answers, func(a config.HTTPAnswer) bool { return a.URL == "" || a.URL == r.url })
	if i < 0 {
		w.wanting = append(w.wanting, r.url)
		return config.HTTPAnswer{}, false
	}
	a := w.answers[i]
	w.answers = slices.Delete(w.answers, i, i+1)
	return a, true
}

// faults are requests without an answer, and answers that nobody asked for.
func (w *scriptedWorld) faults() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, url := range w.wanting {
		errs = append(errs, errors.New("the test has no http answer for the request to "+url))
	}
	if n := len(w.answers); n > 0 {
		errs = append(errs, errors.New("nobody asked for "+plural(n, "http answer")))
	}
	return errors.Join(errs...)
}
