package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stopgate/gate"
)

// APIKey is an API key as its row holds it: lists are JSON, times are Unix
// milliseconds, 0 for never.
type APIKey struct {
	Seq                                 int64
	ID, Name, CreatedBy                 string
	Hash, Scopes, Agents                []byte
	Created, Expires, Revoked, LastUsed int64
}

// EncodeKey makes the row of a new key.
func EncodeKey(k gate.Key) (APIKey, error) {
	scopes, err := json.Marshal(k.Scopes)
	if err != nil {
		return APIKey{}, err
	}
	agents, err := json.Marshal(k.Agents)
	if err != nil {
		return APIKey{}, err
	}
	return APIKey{ID: k.ID, Name: k.Name, Hash: k.Hash[:], Scopes: scopes, Agents: agents, Expires: Millis(k.Expires)}, nil
}

// Decode makes the key of a row.
func (r APIKey) Decode() (gate.Key, error) {
	k := gate.Key{ID: r.ID, Name: r.Name, CreatedBy: r.CreatedBy, Created: Moment(r.Created), Expires: Moment(r.Expires),
		Revoked: Moment(r.Revoked), LastUsed: Moment(r.LastUsed)}
	if len(r.Hash) != len(k.Hash) {
		return k, fmt.Errorf("store key %q is damaged: its hash has %d bytes", r.ID, len(r.Hash))
	}
	copy(k.Hash[:], r.Hash)
	if err := errors.Join(json.Unmarshal(r.Scopes, &k.Scopes), json.Unmarshal(r.Agents, &k.Agents)); err != nil {
		return k, fmt.Errorf("store key %q is damaged: %w", r.ID, err)
	}
	return k, nil
}

// Millis is a time in Unix milliseconds, 0 where there is none.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Moment is the time that [Millis] wrote.
func Moment(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}

// MillisUp is the first whole millisecond, since 1970, that is not before t.
func MillisUp(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }
