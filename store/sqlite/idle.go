package sqlite

import (
	"database/sql/driver"

	"stopgate/gate"
)

// idle are ledgers that are known to hold nothing, of agents to whom their session
// belongs: of most events nothing needs to be looked up before they are written. It
// is the writer's own, and true inside its transactions.
type idle struct {
	keys map[gate.LedgerKey]struct{}
	// version is SQLite's data_version: another number once anybody but this
	// connection has written, be it another process.
	version int64
}

// maxIdle bounds how many are known, and maxIdleName how long their names may be: some
// 10 MB at worst.
const (
	maxIdle     = 20_000
	maxIdleName = 300
)

func (i *idle) has(key gate.LedgerKey) bool {
	_, is := i.keys[key]
	return is
}

// set notes whether a ledger holds nothing, once its row is as that says.
func (i *idle) set(key gate.LedgerKey, nothing bool) {
	switch {
	case !nothing, len(key.Session)+len(key.Agent)+len(key.SubAgent) > maxIdleName:
		delete(i.keys, key)
	case len(i.keys) >= maxIdle, i.keys == nil:
		i.keys = map[gate.LedgerKey]struct{}{key: {}}
	default:
		i.keys[key] = struct{}{}
	}
}

// forget is for what has written elsewhere than a ledger, or was rolled back.
func (i *idle) forget() { clear(i.keys) }

// begun forgets what others may have changed. It is asked for at the beginning of a
// transaction that nobody else can write in.
func (c *conn) begun() error {
	var v [1]driver.Value
	if _, err := c.row(v[:], `PRAGMA data_version`); err != nil {
		return err
	}
	if now, _ := v[0].(int64); now != c.idle.version {
		c.idle.forget()
		c.idle.version = now
	}
	return nil
}
