package oidc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

const (
	// fetchEvery is how often the issuer is asked, whoever sends us tokens that
	// no key fits. A new key of the issuer is known after so long.
	fetchEvery = 10 * time.Second
	// fetchTime bounds one request.
	fetchTime = 5 * time.Second
	// maxFetched is more than any issuer has to say, in bytes.
	maxFetched = 1 << 20
	// keysFresh is how long keys are used without asking for them again, so that
	// one which the issuer has withdrawn ends.
	keysFresh = 15 * time.Minute
	// keysStale is how long while the issuer does not answer.
	keysStale = 24 * time.Hour
)

// keys are the issuer's, as they were at one time.
type keys struct {
	set *oidc.RemoteKeySet
	at  time.Time
	url string
}

// current are keys that may be used: those there are, while they are fresh, or
// newer ones.
func (i *Issuer) current(ctx context.Context) (*keysInUse, error) {
	i.mu.Lock()
	have := i.keys
	i.mu.Unlock()
	if have == nil {
		var err error
		if have, err = i.discover(ctx); err != nil {
			return nil, err
		}
	}
	return &keysInUse{issuer: i, keys: have}, nil
}

// Discover asks the issuer where its keys are, unless that is known.
func (i *Issuer) Discover(ctx context.Context) error {
	_, err := i.current(ctx)
	return err
}

// discover asks the issuer where its keys are; one at a time.
func (i *Issuer) discover(ctx context.Context) (*keys, error) {
	select {
	case <-i.discovering:
		defer func() { i.discovering <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	i.mu.Lock()
	have := i.keys
	i.mu.Unlock()
	if have != nil { // another one has found out meanwhile
		return have, nil
	}
	// Not with the caller's context: who goes away would end it for all who wait.
	provider, err := oidc.NewProvider(i.client, i.opt.Issuer)
	if err != nil {
		return nil, fmt.Errorf("oidc issuer %s: %w", i.opt.Issuer, err)
	}
	var says struct {
		KeysURL string `json:"jwks_uri"`
	}
	if err := provider.Claims(&says); err != nil || says.KeysURL == "" {
		return nil, fmt.Errorf("oidc issuer %s does not say where its keys are", i.opt.Issuer)
	}
	return i.use(says.KeysURL, oidc.NewRemoteKeySet(i.client, says.KeysURL)), nil
}

func (i *Issuer) use(url string, set *oidc.RemoteKeySet) *keys {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = &keys{set, i.opt.Now(), url}
	return i.keys
}

// keysInUse are an issuer's keys for one token.
type keysInUse struct {
	issuer *Issuer
	keys   *keys
}

// verify checks a signature. unreachable says that it could not be checked: there
// are no keys to check it with.
func (k *keysInUse) verify(ctx context.Context, jwt string) (payload []byte, unreachable, err error) {
	i := k.issuer
	defer func() {
		if err != nil && i.fetch.withdrawn(k.keys.url) {
			unreachable = err
		}
	}()
	age := i.opt.Now().Sub(k.keys.at)
	if age >= keysFresh {
		set := oidc.NewRemoteKeySet(i.client, k.keys.url)
		payload, err := set.VerifySignature(ctx, jwt)
		if err == nil || !i.fetch.failed(k.keys.url) && !errors.Is(err, errTooSoon) && ctx.Err() == nil {
			i.use(k.keys.url, set)
			return payload, nil, err
		}
		if age >= keysStale {
			return nil, err, err
		}
	}
	payload, err = k.keys.set.VerifySignature(ctx, jwt)
	if err != nil && (i.fetch.failed(k.keys.url) || ctx.Err() != nil) {
		return nil, err, err
	}
	return payload, nil, err
}

// checking is the key set of one token: it keeps apart that a signature is wrong
// and that nobody could say.
type checking struct {
	set         *keysInUse
	unreachable error
}

// VerifySignature is [oidc.KeySet].
func (c *checking) VerifySignature(ctx context.Context, jwt string) (payload []byte, err error) {
	payload, c.unreachable, err = c.set.verify(ctx, jwt)
	return payload, err
}

// errTooSoon is a request that is not made, since one was just before.
var errTooSoon = errors.New("the issuer was asked just now")

// fetcher bounds what is asked of an issuer, and what is taken from it.
type fetcher struct {
	transport http.RoundTripper
	now       func() time.Time
	mu        sync.Mutex
	asked     map[string]asked // by URL: the two that an issuer has
}

type asked struct {
	at     time.Time
	failed bool
	empty  bool // it was answered by a list without keys
}

func newFetcher(transport http.RoundTripper, now func() time.Time) *fetcher {
	return &fetcher{transport: transport, now: now, asked: map[string]asked{}}
}

func (f *fetcher) client() *http.Client {
	return &http.Client{Transport: f, Timeout: fetchTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// failed reports whether the last request to a URL was not answered as it
// should be.
func (f *fetcher) failed(url string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[url].failed
}

// withdrawn reports whether the last list at a URL has no keys.
func (f *fetcher) withdrawn(url string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[url].empty
}

// RoundTrip is [http.RoundTripper]. An answer that is neither a list of keys nor
// says where they are is none: a proxy has a page of its own, also with 200, and the
// issuer has withdrawn no key by it.
func (f *fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := secure(r.URL); err != nil {
		return nil, err
	}
	url, now := r.URL.String(), f.now()
	f.mu.Lock()
	before, known := f.asked[url]
	if since := now.Sub(before.at); known && since >= 0 && since < fetchEvery {
		f.mu.Unlock()
		return nil, errTooSoon
	}
	f.asked[url] = asked{now, before.failed, before.empty}
	f.mu.Unlock()

	resp, empty, err := f.answer(r)
	f.mu.Lock()
	f.asked[url] = asked{now, err != nil || resp.StatusCode != http.StatusOK, empty}
	f.mu.Unlock()
	return resp, err
}

// answer is what the issuer says, read whole; empty says that it is a list without
// keys.
func (f *fetcher) answer(r *http.Request) (resp *http.Response, empty bool, err error) {
	if resp, err = f.transport.RoundTrip(r); err != nil {
		return nil, false, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFetched))
	if err != nil {
		return nil, false, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if resp.StatusCode != http.StatusOK {
		return resp, false, nil
	}
	var says struct {
		Keys []struct { // nil: it is no list of keys
			Algorithm string `json:"alg"`
		} `json:"keys"`
		KeysURL string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(body, &says); err != nil || says.Keys == nil && says.KeysURL == "" {
		return nil, false, errors.New("the issuer's answer is neither a list of keys nor says where they are")
	}
	return resp, says.KeysURL == "" && len(says.Keys) == 0, nil
}
