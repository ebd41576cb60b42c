package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// pairOf is a certificate of its own authority, good for both sides.
func pairOf(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// TestServeTLS: both versions of HTTP, with keys and with client certificates,
// guarded as in the clear.
func TestServeTLS(t *testing.T) {
	own, client := pairOf(t, "server"), pairOf(t, "read")
	clients := x509.NewCertPool()
	clients.AddCert(client.Leaf)
	inner := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, NextProtos: []string{"h2", "http/1.1"},
		ClientCAs: clients, ClientAuth: tls.VerifyClientCertIfGiven}
	outer := inner.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return inner, nil } // as access.TLS does
	w := newGuardedWorld(t, func(o *Options) { o.TLS = outer })
	url, stop, ended := listen(t, w)
	base := strings.Replace(url, "http:", "https:", 1)

	for _, version := range []int{1, 2} {
		call := func(method, path, body string, pair *tls.Certificate, authorization ...string) (int, string) {
			t.Helper()
			roots := x509.NewCertPool()
			roots.AddCert(own.Leaf)
			config := &tls.Config{RootCAs: roots}
			if pair != nil {
				config.Certificates = []tls.Certificate{*pair}
			}
			transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: version == 2}
			defer transport.CloseIdleConnections()
			r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if r.Header.Set("Content-Type", "text/plain"); authorization != nil {
				r.Header["Authorization"] = authorization
			}
			resp, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.ProtoMajor != version {
				t.Fatalf("HTTP/%d, %v", resp.ProtoMajor, err)
			}
			return resp.StatusCode, string(text)
		}
		t.Run(fmt.Sprint("HTTP/", version), func(t *testing.T) {
			for name, c := range map[string]struct {
				pair          *tls.Certificate
				authorization []string
				want          int
			}{
				"nobody":              {nil, nil, 401},
				"a key":               {nil, []string{"Bearer read"}, 200},
				"a certificate":       {&client, nil, 200},
				"both, the key wrong": {&client, []string{"Bearer wrong"}, 401},
				"two headers":         {nil, []string{"Bearer read", "Bearer read"}, 401},
			} {
				if got, body := call("GET", "/v1/evaluations", "", c.pair, c.authorization...); got != c.want {
					t.Errorf("%s: status %d, want %d: %s", name, got, c.want, body)
				}
			}
			long := strings.Repeat("a line of the conversation\n", 1<<16) // streamed both ways
			if got, body := call("PUT", "/v1/sessions/long/transcript", long, nil, "Bearer evaluate"); got != 200 {
				t.Errorf("upload: %d %s", got, body)
			}
			if got, body := call("GET", "/v1/sessions/long/transcript", "", nil, "Bearer read"); got != 200 || body != long {
				t.Errorf("download: %d with %d bytes", got, len(body))
			}
			if got, _ := call("PUT", "/v1/sessions/long/transcript", long, nil, "Bearer wrong"); got != 401 {
				t.Errorf("a refused upload: %d", got)
			}
		})
	}
	if got, err := http.Get(url); err == nil {
		got.Body.Close()
		if got.StatusCode != http.StatusBadRequest {
			t.Errorf("in the clear: %d", got.StatusCode)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
