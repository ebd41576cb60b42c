package record

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"stopgate/gate"
)

const (
	defaultPage = 100
	maxPage     = 1000
)

// PageLimit is how many records a page may have. CodeValidation.
func PageLimit(f gate.RecordFilter) (int, error) {
	if f.Limit == 0 {
		return defaultPage, nil
	}
	if f.Limit < 1 || f.Limit > maxPage {
		return 0, gate.Errorf(gate.CodeValidation, "limit %d is not in 1…%d", f.Limit, maxPage)
	}
	return f.Limit, nil
}

// A cursor is the place of the last record shown, with a sum that tells ours
// from what somebody made up.

// Cursor names the place of a record.
func Cursor(seq int64) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(seq))
	return base64.RawURLEncoding.EncodeToString(append(b, cursorSum(b)...))
}

// ReadCursor is the place that a cursor names, if it is one of ours.
func ReadCursor(text string) (seq int64, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != 12 || string(b[8:]) != string(cursorSum(b[:8])) {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(b)), true
}

func cursorSum(b []byte) []byte {
	sum := sha256.Sum256(append([]byte("stopgate cursor 1\x00"), b...))
	return sum[:4]
}
