package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"stopgate/gate"
)

const (
	defaultPage = 100
	maxPage     = 1000
)

// PageLimit is how many a page may have, the default for 0. CodeValidation.
func PageLimit(limit int) (int, error) {
	if limit < 0 || limit > maxPage {
		return 0, gate.Errorf(gate.CodeValidation, "limit %d is not in 1…%d", limit, maxPage)
	}
	return cmp.Or(limit, defaultPage), nil
}

// list is what the cursors of one list have in their sum. A cursor is the place
// of the last one shown, with a sum that tells ours from what somebody made up,
// and from those of another list.
type list string

const (
	records list = "stopgate cursor 1\x00"
	changes list = "stopgate audit cursor 1\x00"
)

// Cursor names the place of a record.
func Cursor(seq int64) string { return records.cursor(seq) }

// ReadCursor is the place that a cursor names. CodeValidation: it is not one of
// ours.
func ReadCursor(text string) (seq int64, err error) { return records.read(text) }

// AuditCursor names the place of a change.
func AuditCursor(seq int64) string { return changes.cursor(seq) }

// ReadAuditCursor is ReadCursor for changes.
func ReadAuditCursor(text string) (seq int64, err error) { return changes.read(text) }

func (l list) cursor(seq int64) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(seq))
	return base64.RawURLEncoding.EncodeToString(append(b, l.sum(b)...))
}

func (l list) read(text string) (seq int64, err error) {
	b, bad := base64.RawURLEncoding.Strict().DecodeString(text)
	if bad != nil || len(b) != 12 || string(b[8:]) != string(l.sum(b[:8])) {
		return 0, gate.Errorf(gate.CodeValidation, "cursor %.40q is not one of ours", text)
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

func (l list) sum(b []byte) []byte {
	sum := sha256.Sum256(append([]byte(l), b...))
	return sum[:4]
}
