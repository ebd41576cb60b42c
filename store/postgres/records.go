package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
	"stopgate/store/record"
)

// insertRecord queues a row at a place, unless another record has it: then taken
// says so, and nothing was written.
func insertRecord(batch *pgx.Batch, w *record.Row, seq int64, head, reservation []byte) (taken *bool) {
	taken = new(bool)
	batch.Queue(`WITH stored AS (
			INSERT INTO stopgate.evaluations (seq, id, agent, session, event, decision, dry_run, head, idempotency, evidence, payload)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (seq) DO NOTHING RETURNING seq
		), hooks AS (
			INSERT INTO stopgate.evaluation_hooks (seq, hook) SELECT seq, hook FROM stored, unnest($12::bytea[]) AS hook
		), outbox AS (
			INSERT INTO stopgate.outbox (sink, seq) SELECT name, seq FROM stored, stopgate.sinks
		) SELECT count(*) = 0 FROM stored`,
		seq, bytesOf(w.ID), bytesOf(w.Agent), bytesOf(w.Session), bytesOf(w.Event), bytesOf(w.Decision), w.DryRun,
		head, reservation, w.Evidence, w.Payload, hookSums(w.Hooks)).
		QueryRow(func(row pgx.Row) error { return row.Scan(taken) })
	return taken
}

// insertLater writes a row whose moment is taken at the next free place. Another
// replica may take that too, and then the next.
func insertLater(ctx context.Context, tx pgx.Tx, w *record.Row, reservation []byte) error {
	head, err := record.WithTime(w.Head, w.Seq)
	if err != nil {
		return err
	}
	for seq := w.Seq; ; {
		if seq, err = nextFree(ctx, tx, seq); err != nil {
			return err
		}
		var batch pgx.Batch
		taken := insertRecord(&batch, w, seq, head, reservation)
		if err := tx.SendBatch(ctx, &batch).Close(); err != nil || !*taken {
			return err
		}
	}
}

// nextFree is a free place after seq, in one look however many are taken (a
// clock may stand still): behind the last one within a millisecond, and so on
// while that lands on a full one.
func nextFree(ctx context.Context, tx pgx.Tx, seq int64) (int64, error) {
	const span = int64(time.Millisecond)
	for {
		var last *int64
		err := tx.QueryRow(ctx, `SELECT max(seq) FROM stopgate.evaluations WHERE seq BETWEEN $1 AND $2`, seq, seq+span).Scan(&last)
		if err != nil || last == nil {
			return seq, err
		}
		seq = *last + 1
	}
}

// sumOf is a name where an index has its sum.
func sumOf(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:]
}

func hookSums(names []string) [][]byte {
	sums := make([][]byte, len(names))
	for i, name := range names {
		sums[i] = sumOf(name)
	}
	return sums
}

const listColumns = `e.seq, e.id, e.agent, e.session, e.event, e.decision, e.head`

func listed(w *record.Row) []any {
	return []any{&w.Seq, (*text)(&w.ID), (*text)(&w.Agent), (*text)(&w.Session), (*text)(&w.Event), (*text)(&w.Decision), &w.Head}
}

// Record is one evaluation, whole.
func (s *Store) Record(ctx context.Context, id string) (gate.Record, error) {
	var w record.Row
	err := s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		err := conn.QueryRow(ctx, `SELECT `+listColumns+`, e.evidence, e.payload FROM stopgate.evaluations AS e WHERE e.id = $1`, bytesOf(id)).
			Scan(append(listed(&w), &w.Evidence, &w.Payload)...)
		if errors.Is(err, pgx.ErrNoRows) {
			return gate.Errorf(gate.CodeNotFound, "evaluation %q is not known", id)
		}
		return err
	})
	if err != nil {
		return gate.Record{}, err
	}
	return w.Decode()
}

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
	if f.Limit, err = record.PageLimit(f.Limit); err != nil {
		return nil, "", err
	}
	query, args, err := selectPage(f)
	if err != nil {
		return nil, "", err
	}
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		records, next, err = readPage(rows)
		return err
	})
	return records, next, err
}

func readPage(rows pgx.Rows) (records []gate.Record, next string, err error) {
	for rows.Next() {
		var w record.Row
		var more bool
		if err := rows.Scan(append(listed(&w), &more)...); err != nil {
			return nil, "", err
		}
		r, err := w.Decode()
		if err != nil {
			return nil, "", err
		}
		records, next = append(records, r), ""
		if more {
			next = record.Cursor(w.Seq)
		}
	}
	return records, next, rows.Err()
}

// elsewhereOf is the condition that the session whose conversation was read in the
// place of the record's own (see [gate.Record.ReadElsewhere]) belongs to agents, and
// to none but these. Of a head's JSON only that one string is read: PostgreSQL can
// hold no text with a NUL, which may stand anywhere in the rest. Within a string of
// JSON no quotation mark stands without a backslash, so what is found is the field.
func elsewhereOf(others string) string {
	const (
		field   = `"transcript":{"session":`
		literal = `substring(convert_from(e.head, 'UTF8') FROM '"transcript":\{"session":("(?:[^"\\]|\\.)*")')`
		session = `convert_to(` + literal + `::json #>> '{}', 'UTF8')`
		agents  = `EXISTS (SELECT FROM stopgate.session_agents AS a WHERE sha256(a.session) = sha256(` + session + `)`
	)
	return `CASE WHEN position('` + field + `'::bytea IN e.head) = 0 THEN TRUE
		WHEN position('\u0000' IN ` + literal + `) > 0 THEN FALSE
		WHEN ` + session + ` = e.session THEN TRUE
		ELSE ` + agents + `) AND NOT ` + agents + ` AND NOT ` + others + `) END`
}

// selectPage writes the query of one page. The text is ours alone; whatever a
// caller sends is an argument.
//
// The server cuts the page to its size, since what it sends would have to be
// read to its end: one record beyond the limit tells that there are more, and
// sizes are known without reading what is long.
func selectPage(f gate.RecordFilter) (query string, args []any, err error) {
	from, order := `stopgate.evaluations AS e`, `e.seq`
	var where []string
	add := func(term string, arg any) {
		args = append(args, arg)
		where = append(where, strings.ReplaceAll(term, `?`, fmt.Sprintf(`$%d`, len(args))))
	}
	if f.Hook != "" {
		from, order = `stopgate.evaluation_hooks AS h JOIN stopgate.evaluations AS e ON e.seq = h.seq`, `h.seq`
		add(`h.hook = ?`, sumOf(f.Hook))
	}
	if f.Agent != "" {
		add(`sha256(e.agent) = sha256(?)`, bytesOf(f.Agent))
	}
	if f.Agents != nil {
		first := len(args) + 1
		condition, patterns := ofAgents(`e.agent`, f.Agents, first)
		where, args = append(where, condition), append(args, patterns...)
		if len(patterns) > 0 {
			others, _ := ofAgents(`a.agent`, f.Agents, first)
			where = append(where, `(e.session = '' OR NOT EXISTS (
				SELECT FROM stopgate.session_agents AS a WHERE sha256(a.session) = sha256(e.session) AND NOT `+others+`))`, elsewhereOf(others))
		}
	}
	if f.Session != "" {
		add(`e.session <> '' AND sha256(e.session) = sha256(?)`, bytesOf(f.Session))
	}
	if f.Aside != "" {
		add(`e.seq IN (SELECT seq FROM stopgate.outbox WHERE sink = ? AND aside)`, bytesOf(f.Aside))
	}
	if f.Event != "" {
		add(`e.event = ?`, bytesOf(string(f.Event)))
	}
	switch f.Decision {
	case "":
	case gate.Allow:
		add(`e.decision = ?`, bytesOf(string(f.Decision)))
	default:
		add(`e.decision <> 'allow' AND e.decision = ?`, bytesOf(string(f.Decision)))
	}
	if !f.Since.IsZero() {
		add(order+` >= ?`, record.Nanos(f.Since))
	}
	if !f.Until.IsZero() {
		add(order+` < ?`, record.Nanos(f.Until))
	}
	if f.DryRun != nil {
		add(`e.dry_run = ?`, *f.DryRun)
	}
	if f.Cursor != "" {
		seq, err := record.ReadCursor(f.Cursor)
		if err != nil {
			return "", nil, err
		}
		add(order+` < ?`, seq)
	}
	page := `SELECT ` + listColumns + `, octet_length(e.head) + octet_length(e.agent) + octet_length(e.session) AS size FROM ` + from
	if len(where) > 0 {
		page += ` WHERE ` + strings.Join(where, ` AND `)
	}
	page += ` ORDER BY ` + order + fmt.Sprintf(` DESC LIMIT %d`, f.Limit+1)
	return `SELECT ` + listColumns + `, place < found AS more FROM (
			SELECT *, row_number() OVER newest AS place, sum(size) OVER newest AS total, count(*) OVER () AS found
			FROM (` + page + `) AS page WINDOW newest AS (ORDER BY seq DESC)
		) AS e WHERE ` + fmt.Sprintf(`place <= %d AND (place = 1 OR total <= %d) ORDER BY e.seq DESC`, f.Limit, gate.PageBytes), args, nil
}
