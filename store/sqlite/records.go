package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"stopgate/gate"
	"stopgate/store/record"
)

// Record is one evaluation, whole.
func (s *Store) Record(ctx context.Context, id string) (gate.Record, error) {
	var w record.Row
	err := s.reads.QueryRowContext(ctx, `SELECT `+listColumns+`, e.evidence, e.payload FROM evaluations AS e WHERE e.id = ?`, id).
		Scan(&w.Seq, &w.ID, &w.Agent, &w.Session, &w.Event, &w.Decision, &w.Head, &w.Evidence, &w.Payload)
	if errors.Is(err, sql.ErrNoRows) {
		return gate.Record{}, gate.Errorf(gate.CodeNotFound, "evaluation %q is not known", id)
	}
	if err != nil {
		return gate.Record{}, explain(err)
	}
	return w.Decode()
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
	if f.Limit, err = record.PageLimit(f.Limit); err != nil {
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
			return records, record.Cursor(last), nil
		}
		var w record.Row
		if err := rows.Scan(&w.Seq, &w.ID, &w.Agent, &w.Session, &w.Event, &w.Decision, &w.Head); err != nil {
			return nil, "", explain(err)
		}
		bytes += w.Size()
		if bytes > gate.PageBytes && len(records) > 0 {
			return records, record.Cursor(last), nil
		}
		r, err := w.Decode()
		if err != nil {
			return nil, "", err
		}
		records, last = append(records, r), w.Seq
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
	if f.Agents != nil {
		term, patterns := ofAgents(`e.agent`, f.Agents)
		where, args = append(where, term), append(args, patterns...)
		if len(patterns) > 0 {
			term, patterns = ofAgents(`a.agent`, f.Agents)
			const elsewhere = `json_extract(CAST(e.head AS TEXT), '$.asked.transcript.session')`
			where = append(where, `(e.session = '' OR NOT EXISTS (SELECT 1 FROM session_agents AS a WHERE a.session = e.session AND NOT `+term+`))`,
				`(`+elsewhere+` IS NULL OR `+elsewhere+` = e.session OR EXISTS (SELECT 1 FROM session_agents AS a WHERE a.session = `+elsewhere+`)
				AND NOT EXISTS (SELECT 1 FROM session_agents AS a WHERE a.session = `+elsewhere+` AND NOT `+term+`))`)
			args = append(append(args, patterns...), patterns...)
		}
	}
	if f.Session != "" {
		add(`e.session <> '' AND e.session = ?`, f.Session)
	}
	if f.Aside != "" {
		add(`e.seq IN (SELECT seq FROM outbox WHERE sink = ? AND aside = 1)`, f.Aside)
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
		add(order+` >= ?`, record.Nanos(f.Since))
	}
	if !f.Until.IsZero() {
		add(order+` < ?`, record.Nanos(f.Until))
	}
	if f.DryRun != nil {
		// A flag that is false is not written. A BLOB would be read as JSONB.
		add(`(json_extract(CAST(e.head AS TEXT), '$.dry_run') IS NOT NULL) = ?`, *f.DryRun)
	}
	if f.Cursor != "" {
		seq, err := record.ReadCursor(f.Cursor)
		if err != nil {
			return "", nil, err
		}
		add(order+` < ?`, seq)
	}
	query = `SELECT ` + listColumns + ` FROM ` + from
	if len(where) > 0 {
		query += ` WHERE ` + strings.Join(where, ` AND `)
	}
	return query + ` ORDER BY ` + order + ` DESC LIMIT ?`, append(args, int64(f.Limit+1)), nil
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
