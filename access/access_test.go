package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// unasked is what is not asked for here.
type unasked interface{ gate.Keys }

// shelf is a store of keys.
type shelf struct {
	unasked
	mu    sync.Mutex
	keys  map[string]gate.Key
	down  error
	asked int
	used  []time.Time
	slow  time.Duration // that a write takes
}

func (s *shelf) Key(_ context.Context, id string) (gate.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	k, ok := s.keys[id]
	switch {
	case s.down != nil:
		return gate.Key{}, s.down
	case !ok:
		return gate.Key{}, gate.Errorf(gate.CodeNotFound, "key %q is not known", id)
	}
	return k, nil
}

func (s *shelf) KeyUsed(ctx context.Context, _ string, at time.Time) error {
	select {
	case <-time.After(s.slow):
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = append(s.used, at)
	return s.down
}

func (s *shelf) change(id string, change func(*gate.Key)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[id]
	change(&k)
	s.keys[id] = k
}

func (s *shelf) mint(name string) (id, key string) {
	id, key, hash := Mint()
	s.change(id, func(k *gate.Key) {
		*k = gate.Key{ID: id, Name: name, Hash: hash, Scopes: []gate.Scope{gate.ReadScope}, Agents: []string{"a-*"}}
	})
	return id, key
}

func newLogin(t *testing.T) (*Login, *shelf) {
	t.Helper()
	s := &shelf{keys: map[string]gate.Key{}}
	l, err := New(Options{Keys: s, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return l, s
}

var here = netip.MustParseAddr("192.0.2.1")

func (l *Login) ask(key string, from netip.Addr) error {
	_, err := l.Caller(context.Background(), key, nil, from)
	return err
}

func wantCode(t *testing.T, err error, want gate.Code, says string) {
	t.Helper()
	if err == nil || gate.CodeOf(err) != want || !strings.Contains(err.Error(), says) {
		t.Errorf("error is %v (code %s), want %s with %q", err, gate.CodeOf(err), want, says)
	}
}

func TestMint(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		id, key, hash := Mint()
		gotID, gotHash, err := parse(key)
		if err != nil || gotID != id || gotHash != hash || !strings.HasPrefix(key, "sg_"+id) || len(key) != 67 || seen[key] {
			t.Fatalf("key %q with id %q is read as %q, %v", key, id, gotID, err)
		}
		seen[key] = true
		if got, err := KeyID(key); got != id || err != nil {
			t.Fatalf("id of %q is %q, %v", key, got, err)
		}
		if sum := sha256.Sum256([]byte(key)); sum == hash {
			t.Fatal("the sum is of the key, not of its secret")
		}
	}
}

func TestKeyIDOfWhatIsNone(t *testing.T) {
	for _, text := range []string{"", "sg_", "sg_abcdefgh", "sg_builder-prod", "sg_builder-of-a-long-name", "ci", "abcdefgh"} {
		if id, err := KeyID(text); id != "" || err != nil {
			t.Errorf("id of %q is %q, %v", text, id, err)
		}
	}
	_, key, _ := Mint()
	for _, text := range []string{key[:len(key)-1], key + "a", key[:30]} {
		if id, err := KeyID(text); id != "" || err == nil || strings.Contains(err.Error(), text[3:]) {
			t.Errorf("id of %q, which is misspelt, is %q, %v", text, id, err)
		}
	}
}

// A typo is told apart from a key that is not valid any more, wherever it is.
func TestMisspeltKeys(t *testing.T) {
	_, key, _ := Mint()
	_, other, _ := Mint()
	bad := map[string]string{"empty": "sg_", "shorter": key[:len(key)-1], "longer": key + "a", "no prefix": key[3:], "upper case": "sg_" + strings.ToUpper(key[3:]),
		"digits that are no letters of it": key[:len(key)-1] + "1", "a newline": key[:20] + "\n" + key[20:], "padding": key + "=", "two halves": key[:30] + other[30:]}
	for i := 3; i < len(key); i++ {
		letter := "a"
		if key[i] == 'a' {
			letter = "b"
		}
		bad[fmt.Sprintf("letter %d", i)] = key[:i] + letter + key[i+1:]
	}
	for name, text := range bad {
		_, _, err := parse(text)
		if err == nil {
			t.Errorf("%s: %q is accepted for %q", name, text, key)
		}
		if err != nil && len(text) > 10 && strings.Contains(err.Error(), text[3:10]) {
			t.Errorf("%s: the error quotes the key", name)
		}
	}
}

func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newLogin(t)
		id, key := s.mint("ci")
		who, err := l.Caller(t.Context(), key, nil, here)
		want := gate.Caller{Name: "ci", Credential: "key:" + id, Scopes: []gate.Scope{gate.ReadScope}, Agents: []string{"a-*"}}
		if d := cmp.Diff(want, who); d != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
		_, unknown, _ := Mint()
		wantCode(t, l.ask(unknown, here), gate.CodeUnauthenticated, "not known")
		wantCode(t, l.ask("a-token", here), gate.CodeUnauthenticated, "no kind")
		wantCode(t, l.ask("", here), gate.CodeUnauthenticated, "no credential")

		// Another secret under its id.
		b, _ := keyLetters.DecodeString(key[3:])
		b[20] ^= 1
		forged := "sg_" + keyLetters.EncodeToString(append(b[:37:37], checksum(b[:37])...))
		if forged[:11] != key[:11] {
			t.Fatal("the test forges another key")
		}
		wantCode(t, l.ask(forged, here), gate.CodeUnauthenticated, "not known here")
	})
}

func TestKeysThatHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newLogin(t)
		id, key := s.mint("old")
		s.change(id, func(k *gate.Key) { k.Expires = time.Now().Add(time.Hour) })
		if err := l.ask(key, here); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		wantCode(t, l.ask(key, here), gate.CodeUnauthenticated, `"old" expired`)

		id, key = s.mint("ci")
		if err := l.ask(key, here); err != nil {
			t.Fatal(err)
		}
		s.change(id, func(k *gate.Key) { k.Revoked = time.Now() })
		time.Sleep(time.Second - time.Millisecond)
		wantCode(t, l.ask(key, here), gate.CodeUnauthenticated, `"ci" was revoked`)
	})
}

func TestKeysAreNotLookedUpForEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newLogin(t)
		_, key := s.mint("ci")
		began := time.Now()
		for range 1000 {
			if err := l.ask(key, here); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if most := int(time.Since(began)/keyFresh) + 1; s.asked > most {
			t.Errorf("%d look-ups, want at most %d", s.asked, most)
		}
		if len(s.used) != 2 { // in 100 s
			t.Errorf("its use was written %d times, want 2", len(s.used))
		}
	})
}

// While the store fails, a key that was good is; no other is taken for bad.
func TestStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newLogin(t)
		_, key := s.mint("ci")
		_, other := s.mint("new")
		if err := l.ask(key, here); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.down, s.slow = errors.New("open /secret: denied"), time.Hour
		s.mu.Unlock()
		time.Sleep(keyStale - time.Minute)
		began := time.Now()
		if err := l.ask(key, here); err != nil {
			t.Errorf("a key that was good: %v", err)
		}
		if waited := time.Since(began); waited > useWait {
			t.Errorf("it waited %s for its use to be written", waited)
		}
		for range 2 * failuresAtOnce {
			wantCode(t, l.ask(other, here), gate.CodeOverloaded, "cannot be checked")
		}
		if err := l.ask(other, here); strings.Contains(err.Error(), "secret") {
			t.Errorf("the cause is told: %v", err)
		}
		time.Sleep(2 * time.Minute)
		wantCode(t, l.ask(key, here), gate.CodeOverloaded, "cannot be checked")
	})
}

func TestLockOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newLogin(t)
		_, working := s.mint("working")
		_, fresh := s.mint("fresh")
		_, wrong, _ := Mint()
		if err := l.ask(working, here); err != nil {
			t.Fatal(err)
		}
		for range failuresAtOnce {
			wantCode(t, l.ask(wrong, here), gate.CodeUnauthenticated, "")
		}
		err := l.ask(wrong, here)
		wantCode(t, err, gate.CodeRateLimited, "too many")
		if e, _ := errors.AsType[*gate.Error](err); e.Retry <= 0 || e.Retry > failureForgiven {
			t.Errorf("retry after %s", e.Retry)
		}
		if err := l.ask(fresh, here); err != nil {
			t.Errorf("a good one that was not seen before: %v", err)
		}
		if err := l.ask(working, here); err != nil {
			t.Errorf("one who is at work behind the same address: %v", err)
		}
		wantCode(t, l.ask("", here), gate.CodeUnauthenticated, "")
		if err := l.ask(fresh, netip.MustParseAddr("192.0.2.2")); err != nil {
			t.Errorf("from another address: %v", err)
		}
		wantCode(t, l.ask(wrong, netip.Addr{}), gate.CodeUnauthenticated, "")
		time.Sleep(time.Second)
		wantCode(t, l.ask(wrong, here), gate.CodeRateLimited, "")
		time.Sleep(failureForgiven)
		wantCode(t, l.ask(wrong, here), gate.CodeUnauthenticated, "")
	})
}

// issuer knows two tokens, and counts what it is asked.
type issuer struct{ asked int }

func (i *issuer) Verify(_ context.Context, token string) (gate.Caller, error) {
	i.asked++
	if token == "working" || token == "another" {
		return gate.Caller{Name: token}, nil
	}
	return gate.Caller{}, gate.Errorf(gate.CodeUnauthenticated, "token is not known")
}

// Few tokens are looked at from an address that is locked out, since a signature
// costs more than a wrong key does.
func TestLockOutOfTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := &issuer{}
		l, err := New(Options{Tokens: tokens, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.ask("working", here); err != nil {
			t.Fatal(err)
		}
		for range failuresAtOnce + checksLocked {
			_ = l.ask("wrong", here)
		}
		asked := tokens.asked
		wantCode(t, l.ask("another", here), gate.CodeRateLimited, "") // not even looked at
		if tokens.asked != asked {
			t.Error("a flood is looked at")
		}
		if err := l.ask("working", here); err != nil {
			t.Errorf("one who is at work behind the same address: %v", err)
		}
		time.Sleep(time.Second)
		if err := l.ask("another", here); err != nil {
			t.Errorf("once the flood is over: %v", err)
		}
	})
}

func TestLockOutKnowsNetworks(t *testing.T) {
	l, _ := newLogin(t)
	_, wrong, _ := Mint()
	for n := range failuresAtOnce {
		_ = l.ask(wrong, netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", n)))
	}
	wantCode(t, l.ask(wrong, netip.MustParseAddr("2001:db8::ffff:0:0:1")), gate.CodeRateLimited, "")
	wantCode(t, l.ask(wrong, netip.MustParseAddr("2001:db8:0:1::1")), gate.CodeUnauthenticated, "")
}

func TestMemoryOfFailuresIsBounded(t *testing.T) {
	l, _ := newLogin(t)
	for n := range 2*rememberedAddresses + 1 {
		l.failures.add(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}))
	}
	if n := l.failures.of.Len(); n != rememberedAddresses {
		t.Errorf("%d addresses are remembered", n)
	}
}

// What is asked for at once by many counts for each of them.
func TestLockOutUnderLoad(t *testing.T) {
	l, _ := newLogin(t)
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			_, wrong, _ := Mint()
			_ = l.ask(wrong, here)
		})
	}
	wait.Wait()
	_, wrong, _ := Mint()
	wantCode(t, l.ask(wrong, here), gate.CodeRateLimited, "")
}

// TestAFloodKeepsNoGoodKeyOut: behind one address (a NAT, a proxy, or the machine
// of the agent that is gated) somebody sends wrong credentials all the time. A
// good one comes in, also one that was not used for a while, and a new one.
func TestAFloodKeepsNoGoodKeyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newLogin(t)
		_, hourly := s.mint("hourly")
		_, fresh := s.mint("fresh")
		_, wrong, _ := Mint()
		if err := l.ask(hourly, here); err != nil {
			t.Fatal(err)
		}
		time.Sleep(recentlyGood)
		for second := range 5 {
			for range failuresAtOnce + checksLocked {
				_ = l.ask(wrong, here)
				_ = l.ask("a wrong token", here)
			}
			if err := l.ask(hourly, here); err != nil {
				t.Errorf("second %d: a key that was good an hour ago: %v", second, err)
			}
			if err := l.ask(fresh, here); err != nil {
				t.Errorf("second %d: a new key: %v", second, err)
			}
			time.Sleep(time.Second)
		}
	})
}
