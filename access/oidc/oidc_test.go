package oidc

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// issuer is a small identity provider.
type issuer struct {
	*httptest.Server
	mu      sync.Mutex
	keys    []jose.JSONWebKey // published
	status  int               // of every answer, if not 200
	body    string            // of the keys, if not theirs
	fetched int               // requests for keys
	name    string            // in the discovery document, if not its URL
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{status: 200}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(i.status)
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			name := i.name
			if name == "" {
				name = i.URL
			}
			// What is signed how is ours to say, whatever an issuer would accept.
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": name, "jwks_uri": i.URL + "/keys",
				"id_token_signing_alg_values_supported": []string{"none", "HS256", "RS256"}})
		case "/keys":
			i.fetched++
			if i.body != "" {
				_, _ = w.Write([]byte(i.body))
				return
			}
			public := jose.JSONWebKeySet{}
			for _, k := range i.keys {
				public.Keys = append(public.Keys, k.Public())
			}
			_ = json.NewEncoder(w).Encode(public)
		}
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) publish(keys ...jose.JSONWebKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

func (i *issuer) answer(status int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.status = status
}

func (i *issuer) asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetched
}

func newKey(t *testing.T, id string, alg jose.SignatureAlgorithm) jose.JSONWebKey {
	t.Helper()
	var key any
	var err error
	if alg == jose.RS256 {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return jose.JSONWebKey{Key: key, KeyID: id, Algorithm: string(alg), Use: "sig"}
}

func sign(t *testing.T, key jose.JSONWebKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func everything() []Rule {
	return []Rule{{Claim: "sub", Value: "*", Scopes: []gate.Scope{gate.ReadScope}, Agents: []string{"*"}}}
}

func newVerifier(t *testing.T, i *issuer, rules []Rule) (*Issuer, *clock) {
	t.Helper()
	c := &clock{at: time.Now()}
	v, err := New(Options{Issuer: i.URL, Audience: "stopgate", Rules: rules, Now: c.now, Transport: http.DefaultTransport})
	if err != nil {
		t.Fatal(err)
	}
	return v, c
}

func (i *issuer) claims(c *clock, more map[string]any) map[string]any {
	claims := map[string]any{"iss": i.URL, "aud": "stopgate", "sub": "alice", "exp": c.now().Add(time.Hour).Unix(), "iat": c.now().Unix()}
	maps.Copy(claims, more)
	for name, v := range more {
		if v == nil {
			delete(claims, name)
		}
	}
	return claims
}

func wantCode(t *testing.T, err error, want gate.Code, says string) {
	t.Helper()
	if err == nil || gate.CodeOf(err) != want || !strings.Contains(err.Error(), says) {
		t.Errorf("error is %v (code %s), want %s with %q", err, gate.CodeOf(err), want, says)
	}
}

func TestTokensThatAreGood(t *testing.T) {
	for _, alg := range []jose.SignatureAlgorithm{jose.RS256, jose.ES256} {
		t.Run(string(alg), func(t *testing.T) {
			i := newIssuer(t)
			key := newKey(t, "k1", alg)
			i.publish(newKey(t, "k0", jose.ES256), key)
			v, c := newVerifier(t, i, everything())
			for _, more := range []map[string]any{nil, {"aud": []string{"other", "stopgate"}}, {"nbf": c.now().Unix()}} {
				who, err := v.Verify(t.Context(), sign(t, key, i.claims(c, more)))
				want := gate.Caller{Name: "alice", Credential: "oidc:" + i.URL + " alice", Scopes: []gate.Scope{gate.ReadScope}, Agents: []string{"*"}}
				if d := cmp.Diff(want, who); d != "" || err != nil {
					t.Errorf("%v: %v (-want +got):\n%s", more, err, d)
				}
			}
			if n := i.asked(); n != 1 {
				t.Errorf("keys were asked for %d times", n)
			}
		})
	}
}

func TestTokensThatAreNot(t *testing.T) {
	i := newIssuer(t)
	key, stranger := newKey(t, "k1", jose.RS256), newKey(t, "k1", jose.RS256)
	i.publish(key)
	v, c := newVerifier(t, i, everything())
	good := sign(t, key, i.claims(c, nil))
	head, rest, _ := strings.Cut(good, ".")
	body, signature, _ := strings.Cut(rest, ".")
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	forged := strings.Replace(good, body, encode(`{"sub":"root"}`), 1)
	if head == "" || forged == good {
		t.Fatal("the test forges nothing")
	}
	public := key.Public()
	spki, err := json.Marshal(public)
	if err != nil {
		t.Fatal(err)
	}
	confused := jose.JSONWebKey{Key: spki, KeyID: "k1", Algorithm: string(jose.HS256)}
	embedding, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: stranger.Key.(crypto.Signer)}, (&jose.SignerOptions{EmbedJWK: true}))
	if err != nil {
		t.Fatal(err)
	}
	payload, _ := json.Marshal(i.claims(c, nil))
	embedded, err := embedding.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	withItsKey, _ := embedded.CompactSerialize()
	for name, token := range map[string]struct{ text, says string }{
		"expired":             {sign(t, key, i.claims(c, map[string]any{"exp": c.now().Add(-time.Second).Unix()})), "expired"},
		"without an end":      {sign(t, key, i.claims(c, map[string]any{"exp": nil})), "expired"},
		"not yet":             {sign(t, key, i.claims(c, map[string]any{"nbf": c.now().Add(time.Hour).Unix()})), "not valid yet"},
		"another issuer's":    {sign(t, key, i.claims(c, map[string]any{"iss": "https://evil.example"})), "another issuer"},
		"of no issuer":        {sign(t, key, i.claims(c, map[string]any{"iss": nil})), "another issuer"},
		"for another":         {sign(t, key, i.claims(c, map[string]any{"aud": "other"})), "another audience"},
		"for nobody":          {sign(t, key, i.claims(c, map[string]any{"aud": nil})), "another audience"},
		"of nobody":           {sign(t, key, i.claims(c, map[string]any{"sub": nil})), "sub"},
		"of a name with NUL":  {sign(t, key, i.claims(c, map[string]any{"sub": "a\x00b"})), "sub"},
		"of a very long name": {sign(t, key, i.claims(c, map[string]any{"sub": strings.Repeat("x", 256)})), "sub"},
		"signed by another":   {sign(t, stranger, i.claims(c, nil)), "signature"},
		"with its own key":    {withItsKey, "signature"},
		"body exchanged":      {forged, "signature"},
		"alg none":            {encode(`{"alg":"none"}`) + "." + body + ".", "signed in a way"},
		"alg none, signed":    {encode(`{"alg":"none","kid":"k1"}`) + "." + body + "." + signature, "signed in a way"},
		"alg NONE":            {encode(`{"alg":"NONE"}`) + "." + body + ".", "signed in a way"},
		"public key as HMAC":  {sign(t, confused, i.claims(c, nil)), "signed in a way"},
		"claims are a list":   {sign(t, key, i.claims(c, map[string]any{"aud": map[string]any{}})), ""},
		"no JWT":              {"abc", "no JWT"},
		"empty parts":         {"..", "no JWT"},
		"JSON":                {`{"payload":"","signatures":[]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			who, err := v.Verify(t.Context(), token.text)
			wantCode(t, err, gate.CodeUnauthenticated, token.says)
			if who.Name != "" || len(who.Scopes) > 0 {
				t.Errorf("it is %+v", who)
			}
			if err != nil && len(token.text) > 10 && strings.Contains(err.Error(), token.text) {
				t.Error("the error quotes the token")
			}
		})
	}
	if n := i.asked(); n != 1 {
		t.Errorf("keys were asked for %d times: whoever sends tokens makes us ask the issuer", n)
	}
}

// A new key is known after a while, a withdrawn one ends, and no token makes us
// ask more often than that.
func TestKeysRotate(t *testing.T) {
	i := newIssuer(t)
	old, next := newKey(t, "old", jose.RS256), newKey(t, "next", jose.ES256)
	i.publish(old)
	v, c := newVerifier(t, i, everything())
	ask := func(key jose.JSONWebKey) error {
		_, err := v.Verify(t.Context(), sign(t, key, i.claims(c, nil)))
		return err
	}
	if err := ask(old); err != nil {
		t.Fatal(err)
	}
	i.publish(next, old)
	wantCode(t, ask(next), gate.CodeUnauthenticated, "")
	c.pass(fetchEvery)
	// The library hands the request of before on until its goroutine has ended.
	err := ask(next)
	for range 1000 {
		if err == nil {
			break
		}
		time.Sleep(time.Millisecond)
		err = ask(next)
	}
	if err != nil {
		t.Errorf("the new key: %v", err)
	}
	i.publish(next)
	if err := ask(old); err != nil {
		t.Errorf("the old one, not asked about yet: %v", err)
	}
	c.pass(keysFresh)
	wantCode(t, ask(old), gate.CodeUnauthenticated, "")
	if err := ask(next); err != nil {
		t.Errorf("the new one after that: %v", err)
	}
	if n := i.asked(); n != 3 {
		t.Errorf("keys were asked for %d times, want 3", n)
	}
	// A forged token at the moment when keys are due spoils them for nobody.
	c.pass(keysFresh)
	wantCode(t, ask(newKey(t, "next", jose.ES256)), gate.CodeUnauthenticated, "")
	if err := ask(next); err != nil {
		t.Errorf("after a forged one: %v", err)
	}
}

// Where the issuer does not answer, a token is not bad; what it has said before
// goes on for a time.
func TestUnreachableIssuer(t *testing.T) {
	i := newIssuer(t)
	key := newKey(t, "k1", jose.RS256)
	i.publish(key)
	i.answer(503)
	v, c := newVerifier(t, i, everything())
	ask := func() error {
		_, err := v.Verify(t.Context(), sign(t, key, i.claims(c, nil)))
		return err
	}
	if err := v.Discover(t.Context()); err == nil {
		t.Error("discovered")
	}
	wantCode(t, ask(), gate.CodeOverloaded, "issuer")
	i.answer(200)
	wantCode(t, ask(), gate.CodeOverloaded, "issuer") // not asked again so soon
	c.pass(fetchEvery)
	if err := ask(); err != nil {
		t.Errorf("once it answers: %v", err)
	}
	i.answer(500)
	c.pass(keysFresh + time.Minute)
	if err := ask(); err != nil {
		t.Errorf("with the keys of before: %v", err)
	}
	_, err := v.Verify(t.Context(), sign(t, newKey(t, "k2", jose.RS256), i.claims(c, nil)))
	wantCode(t, err, gate.CodeOverloaded, "") // it may be a new key's
	c.pass(keysStale)
	wantCode(t, ask(), gate.CodeOverloaded, "issuer")
	i.answer(200)
	c.pass(fetchEvery)
	if err := ask(); err != nil {
		t.Errorf("once it answers again: %v", err)
	}
}

func TestWhatAnIssuerMayNotAnswer(t *testing.T) {
	key := newKey(t, "k1", jose.RS256)
	for name, spoil := range map[string]func(*issuer){
		"another name": func(i *issuer) { i.name = "https://evil.example" },
		"a redirect":   func(i *issuer) { i.status = 302 },
		"keys without end": func(i *issuer) {
			i.body = `{"keys":[` + strings.Repeat(" ", maxFetched) + `]}`
		},
		"keys that are none": func(i *issuer) { i.body = "<html>" },
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t)
			i.publish(key)
			spoil(i)
			v, c := newVerifier(t, i, everything())
			if _, err := v.Verify(t.Context(), sign(t, key, i.claims(c, nil))); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestRules(t *testing.T) {
	i := newIssuer(t)
	key := newKey(t, "k1", jose.ES256)
	i.publish(key)
	v, c := newVerifier(t, i, []Rule{
		{Claim: "groups", Value: "platform", Scopes: []gate.Scope{gate.AdminScope}, Agents: []string{"*"}},
		{Claim: "realm_access.roles", Value: "viewer-*", Scopes: []gate.Scope{gate.ReadScope}, Agents: []string{"*"}},
		{Claim: "https://example.com/team", Value: "build", Scopes: []gate.Scope{gate.EvaluateScope}, Agents: []string{"build-*"}},
		{Claim: "scope", Value: "gate", Scopes: []gate.Scope{gate.EvaluateScope}, AgentsClaim: "agents"},
	})
	v.opt.Name = "email"
	type rights struct {
		Name   string
		Scopes []gate.Scope
		Agents []string
	}
	for name, x := range map[string]struct {
		claims map[string]any
		want   rights
	}{
		"one of a list":          {map[string]any{"groups": []any{"a", 7, "platform"}}, rights{"alice", []gate.Scope{"admin"}, []string{"*"}}},
		"the first that fits":    {map[string]any{"scope": "gate", "groups": "platform"}, rights{"alice", []gate.Scope{"admin"}, []string{"*"}}},
		"a part of a name":       {map[string]any{"groups": []any{"platform-x", "xplatform"}}, rights{"alice", nil, nil}},
		"no list, no text":       {map[string]any{"groups": map[string]any{"platform": true}}, rights{"alice", nil, nil}},
		"inside another":         {map[string]any{"realm_access": map[string]any{"roles": []any{"viewer-eu"}}}, rights{"alice", []gate.Scope{"read"}, []string{"*"}}},
		"a name with dots":       {map[string]any{"https://example.com/team": "build"}, rights{"alice", []gate.Scope{"evaluate"}, []string{"build-*"}}},
		"a word of scope":        {map[string]any{"scope": "openid gate", "agents": []any{"a", "b"}}, rights{"alice", []gate.Scope{"evaluate"}, []string{"a", "b"}}},
		"patterns in a token":    {map[string]any{"scope": "gate", "agents": []any{"*", "b*", "a?", ""}}, rights{"alice", []gate.Scope{"evaluate"}, nil}},
		"no agents in the token": {map[string]any{"scope": "gate"}, rights{"alice", []gate.Scope{"evaluate"}, nil}},
		"nothing that fits":      {nil, rights{"alice", nil, nil}},
		"a name of its own":      {map[string]any{"email": "a@example.com"}, rights{"a@example.com", nil, nil}},
		"a name with a newline":  {map[string]any{"email": "a\nb"}, rights{"alice", nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			who, err := v.Verify(t.Context(), sign(t, key, i.claims(c, x.claims)))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(x.want, rights{who.Name, who.Scopes, who.Agents}); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if len(x.want.Agents) == 0 && !who.Limited() {
				t.Error("without agents it is not limited")
			}
		})
	}
}

func TestIssuersThatAreRefused(t *testing.T) {
	for _, issuer := range []string{"", "example.com", "http://example.com", "http://127.0.0.1.evil.example", "https://a@b.example", "https://example.com?x=1", "ftp://example.com"} {
		if _, err := New(Options{Issuer: issuer, Audience: "a", Now: time.Now, Transport: http.DefaultTransport}); err == nil {
			t.Errorf("%q is accepted", issuer)
		}
	}
	if _, err := New(Options{Issuer: "https://example.com", Now: time.Now, Transport: http.DefaultTransport}); err == nil {
		t.Error("no audience is accepted")
	}
}

// A caller that goes away has not sent a bad token.
func TestCallerThatGoesAway(t *testing.T) {
	i := newIssuer(t)
	key := newKey(t, "k1", jose.RS256)
	i.publish(key)
	v, c := newVerifier(t, i, everything())
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := v.Verify(gone, sign(t, key, i.claims(c, nil)))
	if err != nil && gate.CodeOf(err) != gate.CodeOverloaded {
		t.Errorf("error is %v", err)
	}
}

// TestKeysOutliveAnAnswerThatIsNone: an issuer whose proxy answers with a
// maintenance page, also with 200, has withdrawn no key.
func TestKeysOutliveAnAnswerThatIsNone(t *testing.T) {
	for name, body := range map[string]string{"a page": "<html>back soon</html>", "an object": `{}`, "null": `null`, "keys that are none": `{"keys":null}`, "a broken list": `{"keys":[7]}`, "nothing": "\n"} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t)
			key := newKey(t, "k1", jose.RS256)
			i.publish(key)
			v, c := newVerifier(t, i, everything())
			ask := func() error {
				_, err := v.Verify(t.Context(), sign(t, key, i.claims(c, nil)))
				return err
			}
			if err := ask(); err != nil {
				t.Fatal(err)
			}
			i.mu.Lock()
			i.body = body
			i.mu.Unlock()
			c.pass(keysFresh)
			for n := range 3 {
				if err := ask(); err != nil {
					t.Errorf("token %d by a key that was good: %v", n, err)
				}
			}
		})
	}
}

// TestAnIssuerWithoutKeysMakesNoTokenBad: where nothing can be checked a token is not
// wrong, since a host takes a 401 for "allow"; and keys that are withdrawn end.
func TestAnIssuerWithoutKeysMakesNoTokenBad(t *testing.T) {
	for name, body := range map[string]string{"a page": "<html>back soon</html>", "an object": `{}`, "nothing": "\n", "no keys": `{"keys":[]}`} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t)
			key := newKey(t, "k1", jose.RS256)
			i.publish(key)
			v, c := newVerifier(t, i, everything())
			ask := func() gate.Code {
				_, err := v.Verify(t.Context(), sign(t, key, i.claims(c, nil)))
				if err == nil {
					return ""
				}
				return gate.CodeOf(err)
			}
			say := func(body string) {
				i.mu.Lock()
				defer i.mu.Unlock()
				i.body = body
			}
			say(body)
			for range 2 { // the second is not asked for
				if code := ask(); code != gate.CodeOverloaded {
					t.Errorf("from the start: %s", code)
				}
			}
			c.pass(fetchEvery)
			say("")
			code := ask()
			for n := 0; code != "" && n < 500; n++ { // a token that comes with the last answer shares it
				time.Sleep(10 * time.Millisecond)
				code = ask()
			}
			if code != "" {
				t.Errorf("with keys: %s", code)
			}
			say(body)
			c.pass(keysStale)
			if code := ask(); code != gate.CodeOverloaded {
				t.Errorf("a day later: %s", code)
			}
		})
	}
	t.Run("keys that are withdrawn end", func(t *testing.T) {
		i := newIssuer(t)
		key := newKey(t, "k1", jose.RS256)
		i.publish(key)
		v, c := newVerifier(t, i, everything())
		token := func() error { _, err := v.Verify(t.Context(), sign(t, key, i.claims(c, nil))); return err }
		if err := token(); err != nil {
			t.Fatal(err)
		}
		i.mu.Lock()
		i.body = `{"keys":[]}`
		i.mu.Unlock()
		c.pass(keysFresh)
		for range 2 {
			if code := gate.CodeOf(token()); code != gate.CodeOverloaded {
				t.Errorf("a token by a key that was withdrawn: %s", code)
			}
		}
	})
}
