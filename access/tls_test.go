package access

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stopgate/gate"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue makes a pair of PEM texts.
func (a *authority) issue(t *testing.T, name string, serial int64, change ...func(*x509.Certificate)) (cert, key []byte) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	for _, f := range change {
		f(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &own.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// secured is a server whose files tests exchange.
type secured struct {
	files  TLSFiles
	ca     *authority
	base   string
	log    *syncBuffer
	passed time.Duration
	mu     sync.Mutex
	seen   []string // names of the client certificates
}

type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *syncBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

func (s *secured) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.passed)
}

func (s *secured) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed += tlsLooked
}

func (s *secured) put(t *testing.T, ca *authority, serial int64) {
	cert, key := ca.issue(t, "server", serial)
	write(t, s.files.Cert, cert)
	write(t, s.files.Key, key)
}

func newSecured(t *testing.T) *secured {
	t.Helper()
	dir := t.TempDir()
	s := &secured{ca: newAuthority(t, "one"), log: &syncBuffer{},
		files: TLSFiles{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), ClientCA: filepath.Join(dir, "ca.pem")}}
	s.put(t, s.ca, 10)
	write(t, s.files.ClientCA, s.ca.pem)
	config, err := TLS(s.files, s.now, slog.New(slog.NewTextHandler(s.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{TLSConfig: config, ReadHeaderTimeout: time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name := ""
			if len(r.TLS.VerifiedChains) > 0 {
				name = r.TLS.PeerCertificates[0].Subject.CommonName
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.seen = append(s.seen, r.Proto+" "+name)
		})}
	go func() { _ = web.ServeTLS(ln, "", "") }()
	t.Cleanup(func() { _ = web.Close() })
	s.base = "https://" + ln.Addr().String()
	return s
}

// client believes an authority, and has a certificate if one is given.
func (s *secured) client(t *testing.T, ca *authority, pair ...[]byte) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	config := &tls.Config{RootCAs: pool}
	if pair != nil {
		own, err := tls.X509KeyPair(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil } // also if the server would not believe it
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

// serial asks the server, and says by which certificate it answered.
func (s *secured) serial(t *testing.T, c *http.Client) (int64, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.base, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.TLS.PeerCertificates[0].SerialNumber.Int64(), nil
}

func (s *secured) mustSerial(t *testing.T, c *http.Client, want int64) {
	t.Helper()
	if got, err := s.serial(t, c); err != nil || got != want {
		t.Errorf("answered by certificate %d (%v), want %d", got, err, want)
	}
}

func TestCertificatesAreReadAgain(t *testing.T) {
	s := newSecured(t)
	open := s.client(t, s.ca)
	s.mustSerial(t, open, 10)
	s.put(t, s.ca, 11)
	s.mustSerial(t, s.client(t, s.ca), 10) // within the second
	s.pass()
	s.mustSerial(t, s.client(t, s.ca), 11)
	s.mustSerial(t, open, 10) // its connection stays
	if text := s.log.text(); strings.Count(text, "read again") != 1 {
		t.Errorf("log is %s", text)
	}
	for name, spoil := range map[string]func(){
		"no PEM":                 func() { write(t, s.files.Cert, []byte("none")) },
		"another's key":          func() { _, key := s.ca.issue(t, "x", 99); write(t, s.files.Key, key) },
		"no authority":           func() { write(t, s.files.ClientCA, nil) },
		"a file that is missing": func() { _ = os.Remove(s.files.Key) },
		"a file without end":     func() { write(t, s.files.Cert, make([]byte, maxPEM+1)) },
	} {
		t.Run(name, func(t *testing.T) {
			before := strings.Count(s.log.text(), "the old ones stay in use")
			spoil()
			for range 3 {
				s.pass()
				s.mustSerial(t, s.client(t, s.ca), 11)
			}
			if said := strings.Count(s.log.text(), "the old ones stay in use") - before; said != 1 {
				t.Errorf("said %d times, want once: %s", said, s.log.text())
			}
			write(t, s.files.ClientCA, s.ca.pem)
			s.put(t, s.ca, 11)
			s.pass()
			s.mustSerial(t, s.client(t, s.ca), 11)
		})
	}
	if strings.Contains(s.log.text(), "PRIVATE") {
		t.Error("the log has a key in it")
	}
}

func TestClientCertificates(t *testing.T) {
	s := newSecured(t)
	cert, key := s.ca.issue(t, "ci", 20)
	stranger := newAuthority(t, "two")
	foreign, foreignKey := stranger.issue(t, "ci", 21)
	late, lateKey := s.ca.issue(t, "ci", 22, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	server, serverKey := s.ca.issue(t, "ci", 23, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })

	s.mustSerial(t, s.client(t, s.ca, cert, key), 10)
	s.mustSerial(t, s.client(t, s.ca), 10) // who logs in otherwise needs none
	if want := []string{"HTTP/2.0 ci", "HTTP/2.0 "}; strings.Join(s.seen, ",") != strings.Join(want, ",") {
		t.Errorf("the server saw %q, want %q", s.seen, want)
	}
	for name, pair := range map[string][][]byte{"of another authority": {foreign, foreignKey}, "expired": {late, lateKey}, "of a server": {server, serverKey}} {
		if _, err := s.serial(t, s.client(t, s.ca, pair...)); err == nil {
			t.Errorf("a certificate %s was let in", name)
		}
	}
	t.Run("an authority that is not believed any more", func(t *testing.T) {
		c := s.client(t, s.ca, cert, key)
		c.Transport.(*http.Transport).DisableKeepAlives = true
		c.Transport.(*http.Transport).TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(8)
		s.mustSerial(t, c, 10)
		write(t, s.files.ClientCA, stranger.pem)
		s.pass()
		if _, err := s.serial(t, c); err == nil {
			t.Error("its certificate came in by a resumed session")
		}
	})
}

func TestTLSFilesThatAreNotUsable(t *testing.T) {
	dir := t.TempDir()
	for _, files := range []TLSFiles{{}, {Cert: filepath.Join(dir, "none"), Key: filepath.Join(dir, "none")}} {
		if _, err := TLS(files, time.Now, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%+v is accepted", files)
		}
	}
}

func TestWhoACertificateIs(t *testing.T) {
	spiffe, _ := url.Parse("spiffe://example.com/agent/build-7")
	now := time.Now()
	cert := &x509.Certificate{Subject: pkix.Name{CommonName: "old-name"}, DNSNames: []string{"ci.example.com"}, EmailAddresses: []string{"a@example.com"},
		URIs: []*url.URL{spiffe}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
	read, admin := []gate.Scope{gate.ReadScope}, []gate.Scope{gate.AdminScope}
	for name, c := range map[string]struct {
		clients []Client
		at      time.Time
		want    string
		says    string
	}{
		"a URI":               {[]Client{{"spiffe://example.com/agent/*", read, []string{"*"}}}, now, "spiffe://example.com/agent/build-7", ""},
		"a DNS name":          {[]Client{{"*.example.com", read, []string{"*"}}}, now, "ci.example.com", ""},
		"an address":          {[]Client{{"a@example.com", read, []string{"*"}}}, now, "a@example.com", ""},
		"the common name":     {[]Client{{"old-name", read, []string{"*"}}}, now, "old-name", ""},
		"the first that fits": {[]Client{{"nobody", admin, nil}, {"old-*", read, nil}, {"*", admin, nil}}, now, "old-name", ""},
		"nobody":              {[]Client{{"example.com", admin, nil}}, now, "", "nobody"},
		"no clients":          {nil, now, "", "nobody"},
		"not any more":        {[]Client{{"*", admin, nil}}, now.Add(2 * time.Hour), "", "valid from"},
		"not yet":             {[]Client{{"*", admin, nil}}, now.Add(-2 * time.Hour), "", "valid from"},
	} {
		t.Run(name, func(t *testing.T) {
			who, err := callerOf(cert, c.clients, c.at)
			if c.want == "" {
				wantCode(t, err, gate.CodeUnauthenticated, c.says)
				return
			}
			if err != nil || who.Name != c.want || who.Credential != "certificate:"+c.want || !who.May(gate.ReadScope) || who.May(gate.AdminScope) {
				t.Errorf("it is %+v, %v", who, err)
			}
		})
	}
}
