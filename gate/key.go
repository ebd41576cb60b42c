package gate

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Key is an API key as it is kept: everything but the key itself.
type Key struct {
	ID     string   `json:"id"` // the key's beginning, which is no secret
	Name   string   `json:"name"`
	Scopes []Scope  `json:"scopes"`
	Agents []string `json:"agents"` // patterns, see [Caller]
	// Hash is the SHA-256 sum of the key's secret. A plain hash is enough: the
	// secret is 256 random bits, which nobody guesses, however fast a guess is;
	// salt and slowness are for what people choose.
	Hash      [32]byte  `json:"-"`
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
	Expires   time.Time `json:"expires,omitzero"` // zero: never
	Revoked   time.Time `json:"revoked,omitzero"` // zero: it was not
	LastUsed  time.Time `json:"last_used,omitzero"`
}

const (
	maxKeyName  = 128 // bytes
	maxPatterns = 100
	maxPattern  = 512 // bytes, as the longest name
)

// Check reports what is wrong with a key that is to be made at the moment now:
// CodeValidation.
func (k Key) Check(now time.Time) error {
	switch {
	case k.Name == "" || len(k.Name) > maxKeyName || !printable(k.Name):
		return Errorf(CodeValidation, "key name %.200q is not 1 to %d bytes of printable text", k.Name, maxKeyName)
	case !k.Expires.IsZero() && !k.Expires.After(now):
		return Errorf(CodeValidation, "key %q would have expired already, at %s", k.Name, k.Expires.Format(time.RFC3339))
	}
	if err := CheckScopes(k.Scopes); err != nil {
		return err
	}
	return CheckPatterns(k.Agents)
}

// CheckScopes reports a list of scopes that is empty or names what is none:
// CodeValidation.
func CheckScopes(scopes []Scope) error {
	if len(scopes) == 0 {
		return Errorf(CodeValidation, "scopes name none: want some of %q", Scopes)
	}
	seen := map[Scope]bool{}
	for _, s := range scopes {
		switch {
		case s != EvaluateScope && s != ReadScope && s != AdminScope:
			return Errorf(CodeValidation, "scope %q is unknown: want some of %q", s, Scopes)
		case seen[s]:
			return Errorf(CodeValidation, "scope %q is named twice", s)
		}
		seen[s] = true
	}
	return nil
}

// CheckPatterns reports a list of agent patterns that is empty or holds what is
// none: CodeValidation.
func CheckPatterns(patterns []string) error {
	if len(patterns) == 0 || len(patterns) > maxPatterns {
		return Errorf(CodeValidation, "agents have %d patterns, want 1 to %d: %q is every agent", len(patterns), maxPatterns, EveryAgent)
	}
	for _, p := range patterns {
		if p == "" || len(p) > maxPattern || !printable(p) {
			return Errorf(CodeValidation, "agent pattern %.200q is not 1 to %d bytes of printable text", p, maxPattern)
		}
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && s == strings.TrimSpace(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// Keys holds API keys. A key that was revoked stays, for those who ask what it
// was.
type Keys interface {
	// AddKey stores a key that passed [Key.Check]. CodeConflict: its ID is
	// taken, or its name by a key that was not revoked.
	AddKey(ctx context.Context, k Key, by Actor) error
	// Key is the key with that ID, revoked or not. CodeNotFound.
	Key(ctx context.Context, id string) (Key, error)
	// Keys lists every key, the newest first.
	Keys(ctx context.Context) ([]Key, error)
	// RevokeKey ends the key with that ID, or else that name, which was not
	// revoked before. CodeNotFound.
	RevokeKey(ctx context.Context, idOrName string, by Actor) error
	// KeyUsed notes when a key was used last; an unknown ID is no error.
	KeyUsed(ctx context.Context, id string, at time.Time) error
}
