package sqlite

import (
	"context"

	"stopgate/gate"
)

const selectActive = `SELECT hook, active FROM activations WHERE session = ?`

// SetActive switches a hook in one session (spec/azure.md 12). It acts at once:
// the next Active sees it.
func (s *Store) SetActive(ctx context.Context, session, hook string, active bool, by string) error {
	if session == "" || hook == "" {
		return gate.Errorf(gate.CodeValidation, "activation needs a session and a hook")
	}
	return s.writer.do(ctx, setActive{session, hook, by, active, s.opt.Now().UnixMilli()})
}

type setActive struct {
	session, hook, by string
	active            bool
	at                int64
}

func (w setActive) apply(c *conn) error {
	return c.exec(`INSERT OR REPLACE INTO activations (session, hook, active, by, at) VALUES (?, ?, ?, ?, ?)`,
		w.session, w.hook, asInt(w.active), w.by, w.at)
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
