package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"

	"stopgate/gate"
)

const (
	defaultPage = 100
	maxPage     = 1000
)

// Record is one evaluation, whole.
func (s *Store) Record(ctx context.Context, id string) (gate.Record, error) {
	var w row
	err := s.reads.QueryRowContext(ctx, `SELECT `+listColumns+`, e.evidence, e.payload FROM evaluations AS e WHERE e.id = ?`, id).
		Scan(&w.seq, &w.id, &w.agent, &w.session, &w.event, &w.decision, &w.head, &w.evidence, &w.payload)
	if errors.Is(err, sql.ErrNoRows) {
		return gate.Record{}, gate.Errorf(gate.CodeNotFound, "evaluation %q is not known", id)
	}
	if err != nil {
		return gate.Record{}, explain(err)
	}
	return w.decode()
}

const listColumns = `e.seq, e.id, e.agent, e.session, e.event, e.decision, e.head`

// Records lists evaluations, newest first; those of one nanosecond in the
// order of their commits. Payloads and evidence are not read.
//
// Agent, session, hook, time and a decision other than allow are looked up;
// the other filters read past what they leave out.
func (s *Store) Records(ctx context.Context, f gate.RecordFilter) ([]gate.RecordSummary, string, error) {
	records, next, err := s.page(ctx, f)
	if err != nil {
		return nil, "", err
	}
	items := make([]gate.RecordSummary, len(records))
	for i := range records {
		items[i] = records[i].Summary()
	}
	return items, next, nil
}

// page is one page of records without payload and evidence.
func (s *Store) page(ctx context.Context, f gate.RecordFilter) (records []gate.Record, next string, err error) {
	if f.Limit == 0 {
		f.Limit = defaultPage
	}
	if f.Limit < 1 || f.Limit > maxPage {
		return nil, "", gate.Errorf(gate.CodeValidation, "limit %d is not in 1…%d", f.Limit, maxPage)
	}
	query, args, err := selectPage(f)
	if err != nil {
		return nil, "", err
	}
	rows, err := s.reads.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, "", explain(err)
	}
	defer rows.Close()
	var last int64
	var bytes int
	for rows.Next() {
		if len(records) == f.Limit { // one more was asked for, to know that there is one
			return records, cursor(last), nil
		}
		var w row
		if err := rows.Scan(&w.seq, &w.id, &w.agent, &w.session, &w.event, &w.decision, &w.head); err != nil {
			return nil, "", explain(err)
		}
		bytes += len(w.head) + len(w.agent) + len(w.session)
		if bytes > gate.PageBytes && len(records) > 0 {
			return records, cursor(last), nil
		}
		r, err := w.decode()
		if err != nil {
			return nil, "", err
		}
		records, last = append(records, r), w.seq
	}
	return records, "", explain(rows.Err())
}

// selectPage writes the query of one page. The text is ours alone; whatever a
// caller sends is an argument.
func selectPage(f gate.RecordFilter) (query string, args []any, err error) {
	from, order := `evaluations AS e`, `e.seq`
	var where []string
	add := func(term string, arg any) { where, args = append(where, term), append(args, arg) }
	if f.Hook != "" {
		from, order = `evaluation_hooks AS h CROSS JOIN evaluations AS e ON e.seq = h.seq`, `h.seq`
		add(`h.hook = ?`, f.Hook)
	}
	if f.Agent != "" {
		add(`e.agent = ?`, f.Agent)
	}
	if f.Session != "" {
		add(`e.session <> '' AND e.session = ?`, f.Session)
	}
	if f.Event != "" {
		add(`e.event = ?`, string(f.Event))
	}
	switch f.Decision {
	case "":
	case gate.Allow:
		add(`e.decision = ?`, string(f.Decision))
	default:
		add(`e.decision <> 'allow' AND e.decision = ?`, string(f.Decision))
	}
	if !f.Since.IsZero() {
		add(order+` >= ?`, nanos(f.Since))
	}
	if !f.Until.IsZero() {
		add(order+` < ?`, nanos(f.Until))
	}
	if f.Cursor != "" {
		seq, ok := readCursor(f.Cursor)
		if !ok {
			return "", nil, gate.Errorf(gate.CodeValidation, "cursor %.40q is not one of ours", f.Cursor)
		}
		add(order+` < ?`, seq)
	}
	query = `SELECT ` + listColumns + ` FROM ` + from
	if len(where) > 0 {
		query += ` WHERE ` + strings.Join(where, ` AND `)
	}
	return query + ` ORDER BY ` + order + ` DESC LIMIT ?`, append(args, int64(f.Limit+1)), nil
}

// A cursor is the place of the last record shown, with a sum that tells ours
// from what somebody made up.

func cursor(seq int64) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(seq))
	return base64.RawURLEncoding.EncodeToString(append(b, cursorSum(b)...))
}

func readCursor(text string) (seq int64, ok bool) {
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
