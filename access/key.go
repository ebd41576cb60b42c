package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"hash/crc32"
	"strings"

	"stopgate/gate"
)

// A key is "sg_" and 40 bytes in 64 letters and digits: 5 of an ID, which names
// it in lists and logs and is its visible beginning, 32 of a random secret, and 3
// of a checksum over both, which tells a key that was copied badly from one that
// is not valid any more.
const (
	keyPrefix   = "sg_"
	idBytes     = 5
	secretBytes = 32
	sumBytes    = 3
	idLength    = 8  // letters
	keyLength   = 64 // letters after the prefix
)

var keyLetters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Mint makes a new key: its ID, the text that is shown once, and the sum of the
// secret, which is what is kept.
func Mint() (id, key string, hash [32]byte) {
	b := make([]byte, idBytes+secretBytes, idBytes+secretBytes+sumBytes)
	rand.Read(b) // never fails (crypto/rand)
	hash = sha256.Sum256(b[idBytes:])
	text := keyLetters.EncodeToString(append(b, checksum(b)...))
	return text[:idLength], keyPrefix + text, hash
}

// KeyID is the ID of a key; empty of what is none, as a name that begins like
// one. The error, which quotes nothing, is of what must be a misspelt key.
func KeyID(text string) (id string, err error) {
	id, _, err = parse(text)
	if rest, ours := strings.CutPrefix(text, keyPrefix); !ours || len(rest) <= 2*idLength || strings.ContainsFunc(rest, notInKey) {
		return "", nil
	}
	return id, err
}

func notInKey(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
}

// parse takes a key apart. The error never quotes it.
func parse(key string) (id string, hash [32]byte, err error) {
	text, ours := strings.CutPrefix(key, keyPrefix)
	b, bad := keyLetters.DecodeString(text)
	// The decoder passes over line breaks, so the text's own length counts, too.
	if !ours || bad != nil || len(text) != keyLength || len(b) != idBytes+secretBytes+sumBytes || !bytes.Equal(checksum(b[:idBytes+secretBytes]), b[idBytes+secretBytes:]) {
		return "", hash, gate.Errorf(gate.CodeUnauthenticated, "key is misspelt: its checksum is wrong, so that a part of it is missing or another")
	}
	return text[:idLength], sha256.Sum256(b[idBytes : idBytes+secretBytes]), nil
}

func checksum(b []byte) []byte {
	sum := crc32.ChecksumIEEE(b)
	return []byte{byte(sum >> 16), byte(sum >> 8), byte(sum)}
}
