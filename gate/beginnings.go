package gate

import (
	"context"
	"sync"
)

// Projects are the directories of an agent's project on this machine, by the
// dialect whose hooks look for it: what marks a project differs from system to
// system.
type Projects map[Dialect]string

// Beginnings keep where the project of each session is: there, where its first
// event said that the agent works. An agent that makes a project of its own later,
// and goes there, does not choose with it whose scripts judge it.
//
// They are safe for concurrent use once made.
type Beginnings struct {
	// Find looks for the projects of an event's agent on this machine.
	Find func(ev *Event) Projects
	// Stored has those of a session's first event.
	Stored SessionProjects

	mu    sync.Mutex
	begun map[sessionOf]struct{} // whose are stored
}

// SessionProjects are part of what a store keeps of sessions, by [Commit.Projects].
type SessionProjects interface {
	// SessionProjects are nil where nothing is kept for the agent in the session.
	SessionProjects(ctx context.Context, session, agent string) (Projects, error)
}

type sessionOf struct{ session, agent string }

// maxBegun bounds how many are known to be stored, and maxBegunName how long their
// names may be: some 20 MB at worst. Others are looked for at each event.
const (
	maxBegun     = 50_000
	maxBegunName = 300
)

func (b *Beginnings) has(s sessionOf) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, is := b.begun[s]
	return is
}

func (b *Beginnings) add(s sessionOf) {
	if len(s.session)+len(s.agent) > maxBegunName {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun == nil || len(b.begun) >= maxBegun {
		b.begun = map[sessionOf]struct{}{}
	}
	b.begun[s] = struct{}{}
}

// begin finds where the session's project is: for an agent whose hooks know a project,
// needed, and at the session's first event for those that come later.
//
// A session that was erased since begins anew, at the latest with the next event of
// an agent that has such hooks.
func (e *evaluation) begin(ctx context.Context, needed bool) {
	b := e.gate.Beginnings
	if b == nil || e.ev.Projects != nil {
		return
	}
	of := sessionOf{e.ev.Session, e.ev.Agent} // a sub-agent works where the one that started it is at home
	first := (e.ev.Cwd != "" || e.ev.Project != "") && !e.ev.Dry && e.ev.Probe == "" && e.ev.Name != SubagentStop
	switch {
	case e.ev.Session == "":
		if needed {
			e.ev.Projects = b.Find(e.ev)
		}
		return
	case !needed && (!first || b.has(of)):
		return
	}
	stored, err := b.Stored.SessionProjects(ctx, of.session, of.agent)
	switch {
	case err != nil:
		if needed {
			e.storeFailed(err)
		}
		e.ev.Projects = b.Find(e.ev)
	case stored != nil:
		e.ev.Projects = stored
		b.add(of)
	default:
		if e.ev.Projects = b.Find(e.ev); first {
			e.first = e.ev.Projects
		}
	}
}

// begun notes that what was committed is stored.
func (e *evaluation) begun() {
	if e.first != nil {
		e.gate.Beginnings.add(sessionOf{e.ev.Session, e.ev.Agent})
	}
}
