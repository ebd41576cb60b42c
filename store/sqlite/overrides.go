package sqlite

import (
	"context"
	"database/sql/driver"

	"stopgate/gate"
	"stopgate/store/record"
)

const (
	overrideColumns = `reason, by, agents, since, until`
	selectOverride  = `SELECT ` + overrideColumns + ` FROM overrides WHERE session = ?`
)

// SetOverride stores the session's override, and the entry that says who set it.
func (s *Store) SetOverride(ctx context.Context, o gate.Override, by gate.Actor) error {
	row, err := record.EncodeOverride(o, by)
	if err != nil {
		return err
	}
	e := entry(gate.OverrideSet, "override", "", by, s.opt.Now().UnixMilli())
	e.Session, e.Reason, e.Until = o.Session, o.Reason, o.Until
	return s.writer.do(ctx, setOverride{row, e})
}

type setOverride struct {
	row   record.Override
	entry gate.AuditEntry
}

func (w setOverride) apply(c *conn) error {
	err := c.exec(`INSERT OR REPLACE INTO overrides (session, `+overrideColumns+`) VALUES (?, ?, ?, ?, ?, ?)`,
		w.row.Session, w.row.Reason, w.row.By, string(w.row.Agents), w.row.Since, w.row.Until)
	if err != nil {
		return err
	}
	return insertAudit(c, w.entry)
}

// Override is the session's, also one that is over until it is swept.
func (s *Store) Override(ctx context.Context, session string) (gate.Override, error) {
	var v [5]driver.Value
	switch found, err := s.lookups.row(ctx, v[:], selectOverride, session); {
	case err != nil:
		return gate.Override{}, err
	case !found:
		return gate.Override{}, gate.NoOverride(session)
	}
	row := record.Override{Session: session, Reason: v[0].(string), By: v[1].(string), Agents: []byte(v[2].(string)), Since: v[3].(int64), Until: v[4].(int64)}
	return row.Decode()
}

// RemoveOverride ends it.
func (s *Store) RemoveOverride(ctx context.Context, session string, by gate.Actor) error {
	e := entry(gate.OverrideRemoved, "override", "", by, s.opt.Now().UnixMilli())
	e.Session = session
	return s.writer.do(ctx, removeOverride{e})
}

type removeOverride struct{ entry gate.AuditEntry }

func (w removeOverride) apply(c *conn) error {
	var v [1]driver.Value
	found, err := c.row(v[:], `SELECT until FROM overrides WHERE session = ?`, w.entry.Session)
	if err == nil && (!found || v[0].(int64) <= w.entry.Time.UnixMilli()) {
		err = gate.NoOverride(w.entry.Session)
	}
	if err != nil {
		return err
	}
	if err := c.exec(`DELETE FROM overrides WHERE session = ?`, w.entry.Session); err != nil {
		return err
	}
	return insertAudit(c, w.entry)
}
