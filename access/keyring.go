package access

import (
	"context"
	"crypto/subtle"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"stopgate/gate"
)

const (
	// keyFresh is how long a key is not looked up again: a revocation is to be
	// seen within a second, whoever made it.
	keyFresh = 500 * time.Millisecond
	// keyStale is how long a key that was good goes on being so while the store
	// fails: events are decided without a store, too (DESIGN §5). A revocation
	// cannot be stored then either.
	keyStale = 5 * time.Minute
	// useNoted is how often a key's last use is written.
	useNoted = time.Minute
	// useWait bounds what a caller waits for that.
	useWait = 200 * time.Millisecond
)

// keyring looks keys up.
type keyring struct {
	store gate.Keys
	now   func() time.Time
	known *lru.Cache[string, knownKey] // by ID; those that exist alone
	noted *lru.Cache[string, time.Time]
}

type knownKey struct {
	key gate.Key
	at  time.Time // when it was read
}

func newKeyring(store gate.Keys, now func() time.Time) (*keyring, error) {
	known, err := lru.New[string, knownKey](rememberedCredentials)
	if err != nil {
		return nil, err
	}
	noted, err := lru.New[string, time.Time](rememberedCredentials)
	return &keyring{store, now, known, noted}, err
}

// caller is whose key it is. The secret is compared in constant time, also with
// that of a key that does not exist. What became of a key is told to those alone
// who have it.
func (r *keyring) caller(ctx context.Context, text string) (gate.Caller, error) {
	id, hash, err := parse(text)
	if err != nil {
		return gate.Caller{}, err
	}
	key, err := r.find(ctx, id)
	if err != nil && gate.CodeOf(err) != gate.CodeNotFound {
		return gate.Caller{}, &gate.Error{Code: gate.CodeOverloaded, Message: "credentials cannot be checked just now: the store failed", Err: err}
	}
	same := subtle.ConstantTimeCompare(key.Hash[:], hash[:]) == 1
	now := r.now()
	switch {
	case err != nil || !same:
		return gate.Caller{}, gate.Errorf(gate.CodeUnauthenticated, "key is not known here")
	case !key.Revoked.IsZero():
		return gate.Caller{}, gate.Errorf(gate.CodeUnauthenticated, "key %q was revoked at %s", key.Name, key.Revoked.UTC().Format(time.RFC3339))
	case !key.Expires.IsZero() && !now.Before(key.Expires):
		return gate.Caller{}, gate.Errorf(gate.CodeUnauthenticated, "key %q expired at %s", key.Name, key.Expires.UTC().Format(time.RFC3339))
	}
	r.noteUse(ctx, id, now)
	return gate.Caller{Name: key.Name, Credential: "key:" + id, Scopes: key.Scopes, Agents: key.Agents}, nil
}

// find reads a key, unless it was read just now.
func (r *keyring) find(ctx context.Context, id string) (gate.Key, error) {
	had, known := r.known.Get(id)
	now := r.now()
	if known && now.Sub(had.at) < keyFresh {
		return had.key, nil
	}
	key, err := r.store.Key(ctx, id)
	switch {
	case err == nil:
		r.known.Add(id, knownKey{key, now})
	case gate.CodeOf(err) == gate.CodeNotFound:
		r.known.Remove(id)
	case known && now.Sub(had.at) < keyStale:
		return had.key, nil
	}
	return key, err
}

// noteUse writes down now and then that a key is used. It is no harm if that
// fails.
func (r *keyring) noteUse(ctx context.Context, id string, now time.Time) {
	if last, ok := r.noted.Get(id); ok && now.Sub(last) < useNoted {
		return
	}
	r.noted.Add(id, now) // before it is written, so that no other waits as well
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), useWait)
	defer cancel()
	_ = r.store.KeyUsed(ctx, id, now)
}
