package sqlite

import (
	"context"

	"stopgate/gate"
)

const selectActive = `SELECT hook, active FROM activations WHERE session = ?`

// SetActive switches a hook in one session (spec/azure.md 12). It acts at once:
// the next Active sees it.
func (s *Store) SetActive(ctx context.Context, session, hook string, active bool, by gate.Actor) error {
	if session == "" || hook == "" {
		return gate.Errorf(gate.CodeValidation, "activation needs a session and a hook")
	}
	return s.writer.do(ctx, setActive{session, hook, active, by, s.opt.Now().UnixMilli()})
}

type setActive struct {
	session, hook string
	active        bool
	by            gate.Actor
	at            int64
}

func (w setActive) apply(c *conn) error {
	err := c.exec(`INSERT OR REPLACE INTO activations (session, hook, active, by, at) VALUES (?, ?, ?, ?, ?)`,
		w.session, w.hook, asInt(w.active), w.by.Name, w.at)
	if err != nil {
		return err
	}
	action := gate.HookDeactivated
	if w.active {
		action = gate.HookActivated
	}
	e := entry(action, "activation", w.hook, w.by, w.at)
	e.Session = w.session
	return insertAudit(c, e)
}

// Active maps the hooks that were switched in the session to their state.
func (s *Store) Active(ctx context.Context, session string) (map[string]bool, error) {
	rows, err := s.activeOf.QueryContext(ctx, session)
	if err != nil {
		return nil, explain(err)
	}
	defer rows.Close()
	active := map[string]bool{}
	for rows.Next() {
		var hook string
		var on bool
		if err := rows.Scan(&hook, &on); err != nil {
			return nil, explain(err)
		}
		active[hook] = on
	}
	return active, explain(rows.Err())
}
