package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// newKeyPair is a certificate that signs itself, good for both sides, and its PEM
// files.
func newKeyPair(t testing.TB, dir, name string) (pair tls.Certificate, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	uri := &url.URL{Scheme: "spiffe", Host: "example.com", Path: "/" + name}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, URIs: []*url.URL{uri}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}, cert, key
}

// newIssuer is an identity provider, and what signs its tokens.
func newIssuer(t *testing.T) (base string, token func(claims map[string]any) string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := jose.JSONWebKey{Key: private, KeyID: "k1", Algorithm: "ES256", Use: "sig"}
	mux := http.NewServeMux()
	issuer := httptest.NewServer(mux)
	t.Cleanup(issuer.Close)
	answer := func(path string, body any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(body) })
	}
	answer("/.well-known/openid-configuration", map[string]string{"issuer": issuer.URL, "jwks_uri": issuer.URL + "/keys"})
	answer("/keys", jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key.Public()}})
	return issuer.URL, func(claims map[string]any) string {
		claims["iss"], claims["exp"], claims["sub"] = issuer.URL, time.Now().Add(time.Hour).Unix(), "alice"
		payload, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
		if err != nil {
			t.Fatal(err)
		}
		jws, err := signer.Sign(payload)
		if err != nil {
			t.Fatal(err)
		}
		text, err := jws.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
}

// TestServerFileLogins: what the server file says of tokens and certificates is
// what the service does.
func TestServerFileLogins(t *testing.T) {
	dir := t.TempDir()
	own, cert, key := newKeyPair(t, dir, "server")
	client, clientCert, _ := newKeyPair(t, dir, "deploy")
	issuer, token := newIssuer(t)
	file := filepath.Join(dir, "stopgate.yaml")
	err := os.WriteFile(file, fmt.Appendf(nil, `
data: %s
sandbox: {mode: "off"}
models: {providers: {}}
auth:
  oidc:
    issuer: %s
    audience: stopgate
    name: email
    rules:
      - {claim: groups, value: platform, scopes: [admin]}
      - {claim: scope, value: gate, scopes: [read], agents: [one], agents_claim: agent}
  tls: {cert: %s, key: %s, client_ca: %s, clients: [{name: "spiffe://example.com/dep*", scopes: [admin], agents: ["one"]}]}
`, filepath.Join(dir, "data"), issuer, cert, key, clientCert), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p := process{ctx: t.Context(), getenv: func(string) string { return "" }}
	cfg, err := loadConfig(p, file, overrides{listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		t.Fatal(err)
	}
	s, app, err := newServer(p, cfg, slog.New(slog.DiscardHandler), ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, ln) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := app.close(); err != nil {
			t.Error(err)
		}
	}()

	roots := x509.NewCertPool()
	roots.AddCert(own.Leaf)
	ask := func(bearer string, pair *tls.Certificate, path string) int {
		t.Helper()
		config := &tls.Config{RootCAs: roots}
		if pair != nil {
			config.Certificates = []tls.Certificate{*pair}
		}
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+ln.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		resp, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	const keys, evaluations, metrics = "/v1/keys", "/v1/evaluations", "/metrics"
	for name, c := range map[string]struct {
		bearer string
		pair   *tls.Certificate
		want   map[string]int
	}{
		"nobody":                  {"", nil, map[string]int{keys: 401, evaluations: 401, "/healthz": 200}},
		"an API key":              {"sg_abcdefgh", nil, map[string]int{keys: 401}}, // of which the file says nothing
		"an admin's token":        {token(map[string]any{"aud": "stopgate", "groups": []string{"platform"}}), nil, map[string]int{keys: 200, evaluations: 200, metrics: 200}},
		"a limited token":         {token(map[string]any{"aud": "stopgate", "scope": "gate", "agent": "two"}), nil, map[string]int{keys: 403, evaluations: 200, metrics: 403}},
		"nobody's token":          {token(map[string]any{"aud": "stopgate"}), nil, map[string]int{evaluations: 403}},
		"another's token":         {token(map[string]any{"aud": "other", "groups": "platform"}), nil, map[string]int{keys: 401}},
		"a certificate":           {"", &client, map[string]int{evaluations: 200, metrics: 403, keys: 403}},
		"a claim by another name": {token(map[string]any{"aud": "stopgate", "value": "platform"}), nil, map[string]int{keys: 403}},
		"a key that is none":      {"x", &client, map[string]int{evaluations: 401}},
	} {
		for path, want := range c.want {
			if got := ask(c.bearer, c.pair, path); got != want {
				t.Errorf("%s, %s: status %d, want %d", name, path, got, want)
			}
		}
	}
}
