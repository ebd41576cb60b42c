package sqlite

import (
	"context"
	"strings"
	"time"

	"stopgate/gate"
	"stopgate/store/record"
)

// entry is the audit entry of a change by somebody at a moment.
func entry(action gate.Action, kind, name string, by gate.Actor, at int64) gate.AuditEntry {
	return gate.AuditEntry{Time: time.UnixMilli(at), Action: action, Kind: kind, Name: name, By: by.Name, Credential: by.Credential, From: by.Address}
}

// insertAudit writes an entry in the transaction of its change.
func insertAudit(c *conn, e gate.AuditEntry) error {
	return c.exec(`INSERT INTO audit (at, action, kind, name, session, key_id, before, after, by, credential, address, reason, until)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, e.Time.UnixMilli(), string(e.Action), e.Kind, e.Name, e.Session, e.KeyID,
		int64(e.Before), int64(e.After), e.By, e.Credential, e.From, e.Reason, record.Millis(e.Until))
}

// Audit lists changes, newest first. Nothing ever leaves the table, so that the
// row's number is the order.
func (s *Store) Audit(ctx context.Context, f gate.AuditFilter) (entries []gate.AuditEntry, next string, err error) {
	if f.Limit, err = record.PageLimit(f.Limit); err != nil {
		return nil, "", err
	}
	query, args, err := selectAudit(f)
	if err != nil {
		return nil, "", err
	}
	rows, err := s.reads.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, "", explain(err)
	}
	defer rows.Close()
	var last int64
	for rows.Next() {
		if len(entries) == f.Limit { // one more was asked for, to know that there is one
			return entries, record.AuditCursor(last), nil
		}
		var e gate.AuditEntry
		var at, until int64
		if err := rows.Scan(&last, &at, &e.Action, &e.Kind, &e.Name, &e.Session, &e.KeyID, &e.Before, &e.After, &e.By, &e.Credential, &e.From, &e.Reason, &until); err != nil {
			return nil, "", explain(err)
		}
		e.Time, e.Until = time.UnixMilli(at).UTC(), record.Moment(until)
		entries = append(entries, e)
	}
	return entries, "", explain(rows.Err())
}

// selectAudit writes the query of one page; see selectPage.
func selectAudit(f gate.AuditFilter) (query string, args []any, err error) {
	var where []string
	add := func(term string, arg any) { where, args = append(where, term), append(args, arg) }
	for _, equal := range []struct{ column, value string }{{"action", string(f.Action)}, {"kind", f.Kind}, {"name", f.Name}, {"by", f.By}} {
		if equal.value != "" {
			add(equal.column+` = ?`, equal.value)
		}
	}
	if !f.Since.IsZero() {
		add(`at >= ?`, record.MillisUp(f.Since))
	}
	if !f.Until.IsZero() {
		add(`at < ?`, record.MillisUp(f.Until))
	}
	if f.Cursor != "" {
		seq, err := record.ReadAuditCursor(f.Cursor)
		if err != nil {
			return "", nil, err
		}
		add(`seq < ?`, seq)
	}
	query = `SELECT seq, at, action, kind, name, session, key_id, before, after, by, credential, address, reason, until FROM audit`
	if len(where) > 0 {
		query += ` WHERE ` + strings.Join(where, ` AND `)
	}
	return query + ` ORDER BY seq DESC LIMIT ?`, append(args, int64(f.Limit+1)), nil
}
