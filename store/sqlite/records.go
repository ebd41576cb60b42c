package sqlite

import (
	"cmp"
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
	if f.Limit, err = pageLimit(f.Limit); err != nil {
		return nil, "", err
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
			return records, recordCursor.text(last), nil
		}
		var w row
		if err := rows.Scan(&w.seq, &w.id, &w.agent, &w.session, &w.event, &w.decision, &w.head); err != nil {
			return nil, "", explain(err)
		}
		bytes += len(w.head) + len(w.agent) + len(w.session)
		if bytes > gate.PageBytes && len(records) > 0 {
			return records, recordCursor.text(last), nil
		}
		r, err := w.decode()
		if err != nil {
			return nil, "", err
		}
		records, last = append(records, r), w.seq
	}
	return records, "", explain(rows.Err())
}

// pageLimit is how many a page may have, the default for 0.
func pageLimit(limit int) (int, error) {
	if limit < 0 || limit > maxPage {
		return 0, gate.Errorf(gate.CodeValidation, "limit %d is not in 1…%d", limit, maxPage)
	}
	return cmp.Or(limit, defaultPage), nil
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
	if f.Agents != nil {
		term, patterns := ofAgents(`e.agent`, f.Agents)
		where, args = append(where, term), append(args, patterns...)
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
	if f.DryRun != nil {
		// A flag that is false is not written. A BLOB would be read as JSONB.
		add(`(json_extract(CAST(e.head AS TEXT), '$.dry_run') IS NOT NULL) = ?`, *f.DryRun)
	}
	if f.Cursor != "" {
		seq, ok := recordCursor.read(f.Cursor)
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

// cursor is what a kind of cursor begins its sum with. A cursor is the place of
// the last row shown, with a sum that tells ours from what somebody made up, and
// from those of another list.
type cursor string

const (
	recordCursor cursor = "stopgate cursor 1\x00"
	auditCursor  cursor = "stopgate audit cursor 1\x00"
)

func (c cursor) text(seq int64) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(seq))
	return base64.RawURLEncoding.EncodeToString(append(b, c.sum(b)...))
}

func (c cursor) read(text string) (seq int64, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != 12 || string(b[8:]) != string(c.sum(b[:8])) {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(b)), true
}

func (c cursor) sum(b []byte) []byte {
	sum := sha256.Sum256(append([]byte(c), b...))
	return sum[:4]
}

// ofAgents is the condition that a column matches one of the patterns. Names
// with a NUL, which no caller can send, match none but [gate.EveryAgent]: GLOB
// would see only what stands before it.
func ofAgents(column string, patterns []string) (term string, args []any) {
	terms := []string{`FALSE`}
	for _, p := range patterns {
		switch {
		case p == gate.EveryAgent:
			return `TRUE`, nil
		case strings.ContainsAny(p, "*?"):
			terms = append(terms, column+` GLOB ? AND instr(`+column+`, char(0)) = 0`)
			args = append(args, strings.ReplaceAll(p, "[", "[[]"))
		default:
			terms = append(terms, column+` = ?`)
			args = append(args, p)
		}
	}
	return `(` + strings.Join(terms, ` OR `) + `)`, args
}
