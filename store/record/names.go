package record

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"stopgate/gate"
)

// KeyLife is how long a key is kept from its reservation (DESIGN §5).
const KeyLife = 24 * time.Hour

// KeyID is what a key is stored as: of one size whatever a caller sends, and no
// credential on disk.
func KeyID(k gate.IdempotencyKey) []byte {
	h := sha256.New()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(k.Credential)))
	h.Write(n[:])
	h.Write([]byte(k.Credential))
	h.Write([]byte(k.Key))
	return h.Sum(nil)
}

// ETag is a strong tag. Versions go on after a deletion, so it never comes
// again; the document is in it for those who meet another store with the same
// version.
func ETag(s *gate.StoredSpec) string {
	sum := sha256.Sum256(s.Document)
	return fmt.Sprintf(`"%d-%x"`, s.Version, sum[:8])
}
