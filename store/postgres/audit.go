package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"stopgate/gate"
	"stopgate/store/record"
)

// audit writes an entry in the transaction of its change, as its last step: the
// lock that all changes share is held for as short as can be. The entry's time is
// the database's.
func audit(ctx context.Context, tx pgx.Tx, e gate.AuditEntry, by gate.Actor) error {
	var batch pgx.Batch
	lock(&batch, lockOf("audit"))
	batch.Queue(`INSERT INTO stopgate.audit (seq, at, action, kind, name, session, key_id, before, after, by, credential, address, reason, until)
		SELECT coalesce(max(seq), 0) + 1, `+nowMillis+`, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::bigint FROM stopgate.audit`,
		bytesOf(string(e.Action)), bytesOf(e.Kind), bytesOf(e.Name), bytesOf(e.Session), bytesOf(e.KeyID), e.Before, e.After,
		bytesOf(by.Name), bytesOf(by.Credential), bytesOf(by.Address), bytesOf(e.Reason), record.Millis(e.Until))
	return tx.SendBatch(ctx, &batch).Close()
}

// Audit lists changes, newest first.
func (s *Store) Audit(ctx context.Context, f gate.AuditFilter) (entries []gate.AuditEntry, next string, err error) {
	if f.Limit, err = record.PageLimit(f.Limit); err != nil {
		return nil, "", err
	}
	query, args, err := selectAudit(f)
	if err != nil {
		return nil, "", err
	}
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		entries, next, err = readAudit(rows, f.Limit)
		return err
	})
	return entries, next, err
}

func readAudit(rows pgx.Rows, limit int) (entries []gate.AuditEntry, next string, err error) {
	var last int64
	for rows.Next() {
		if len(entries) == limit { // one more was asked for, to know that there is one
			return entries, record.AuditCursor(last), nil
		}
		var e gate.AuditEntry
		var at, until int64
		err := rows.Scan(&last, &at, (*text)(&e.Action), (*text)(&e.Kind), (*text)(&e.Name), (*text)(&e.Session), (*text)(&e.KeyID),
			&e.Before, &e.After, (*text)(&e.By), (*text)(&e.Credential), (*text)(&e.From), (*text)(&e.Reason), &until)
		if err != nil {
			return nil, "", err
		}
		e.Time, e.Until = time.UnixMilli(at).UTC(), record.Moment(until)
		entries = append(entries, e)
	}
	return entries, "", rows.Err()
}

// selectAudit writes the query of one page; see selectPage.
func selectAudit(f gate.AuditFilter) (query string, args []any, err error) {
	var where []string
	add := func(term string, arg any) {
		args = append(args, arg)
		where = append(where, fmt.Sprintf(term, len(args)))
	}
	for _, equal := range []struct{ column, value string }{{"action", string(f.Action)}, {"kind", f.Kind}, {"name", f.Name}, {"by", f.By}} {
		if equal.value != "" {
			add(equal.column+` = $%d`, bytesOf(equal.value))
		}
	}
	if !f.Since.IsZero() {
		add(`at >= $%d`, record.MillisUp(f.Since))
	}
	if !f.Until.IsZero() {
		add(`at < $%d`, record.MillisUp(f.Until))
	}
	if f.Cursor != "" {
		seq, err := record.ReadAuditCursor(f.Cursor)
		if err != nil {
			return "", nil, err
		}
		add(`seq < $%d`, seq)
	}
	query = `SELECT seq, at, action, kind, name, session, key_id, before, after, by, credential, address, reason, until FROM stopgate.audit`
	if len(where) > 0 {
		query += ` WHERE ` + strings.Join(where, ` AND `)
	}
	return query + fmt.Sprintf(` ORDER BY seq DESC LIMIT %d`, f.Limit+1), args, nil
}
