package gate

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// remembered is what a store keeps of sessions' beginnings.
type remembered struct {
	*memory
	projects map[sessionOf]Projects
	lookups  int
	broken   error
}

func (r *remembered) SessionProjects(_ context.Context, session, agent string) (Projects, error) {
	r.lookups++
	return r.projects[sessionOf{session, agent}], r.broken
}

func (r *remembered) Commit(ctx context.Context, c Commit) error {
	_, rec := c.Settle(c.Seen)
	if of := (sessionOf{rec.Session, rec.Agent}); c.Projects != nil && r.projects[of] == nil {
		r.projects[of] = c.Projects
	}
	return r.memory.Commit(ctx, c)
}

// A session's project is where its first event was, whatever hooks that one had, and
// is looked for once.
func TestBeginnings(t *testing.T) {
	store := &remembered{memory: newMemory(), projects: map[sessionOf]Projects{}}
	finds := 0
	newOne := func() *Gate {
		spec := agent(Hook{Name: "script", Event: PreToolUse, Matcher: claudeMatcher(t, "*")})
		spec.Kind, spec.Hooks[0].Dialect = Attached(ClaudeCode), ClaudeCode // in which scripts know a project
		g := newGate(store.memory, answers{"script": func(in Input) Verdict {
			return Verdict{Outcome: Block, Reason: in.Event.Projects[ClaudeCode]}
		}}, spec)
		g.Store = store
		g.Beginnings = &Beginnings{Stored: store, Find: func(ev *Event) Projects {
			finds++
			return Projects{ClaudeCode: ev.Cwd}
		}}
		return g
	}
	g := newOne()
	at := func(g *Gate, session, cwd string, change ...func(*Event)) string {
		t.Helper()
		ev := tool(PreToolUse)
		ev.Session, ev.Cwd = session, cwd
		for _, f := range change {
			f(&ev)
		}
		return decide(t, g, ev).Reason
	}
	steps := func(name string, wantFinds, wantLookups int, got, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" || finds != wantFinds || store.lookups != wantLookups {
			t.Errorf("%s: found %d times, looked up %d times (-want +got)\n%s", name, finds, store.lookups, diff)
		}
		finds, store.lookups = 0, 0
	}
	quiet := func(session, cwd string) string {
		ev := stop(session)
		ev.Cwd = cwd
		return decide(t, g, ev).Reason
	}
	steps("hooks at once", 1, 3, []string{at(g, "s", "/p"), at(g, "s", "/q"), at(g, "s", "/p/x")}, []string{"/p", "/p", "/p"})
	steps("another process", 0, 1, []string{at(newOne(), "s", "/q")}, []string{"/p"})
	steps("hooks later", 1, 3, []string{quiet("t", "/p"), quiet("t", "/q"), at(g, "t", "/q")}, []string{"", "", "/p"})
	steps("an event that says no directory", 2, 6, []string{quiet("u", ""), at(g, "u", "/p"), at(g, "u", ""), quiet("u", "/q"), at(g, "u", "/q"), at(newOne(), "u", "/r")},
		[]string{"", "/p", "/p", "", "/p", "/p"})
	steps("no session", 2, 0, []string{at(g, "", "/p"), at(g, "", "/q")}, []string{"/p", "/q"})
	dry := func(ev *Event) { ev.Dry = true }
	steps("dry runs keep nothing, and know what is kept", 2, 4, []string{at(g, "d", "/p", dry), at(g, "d", "/q"), at(g, "d", "/p"), at(g, "s", "/q", dry)}, []string{"/p", "/q", "/q", "/p"})
	steps("agents of one session have their own", 1, 1, []string{at(g, "s", "/r", func(ev *Event) { ev.Agent = "a"; ev.Session = "s2" })}, []string{"/r"})

	// Without such hooks a session is looked for once, for those that may come.
	hooked := g
	g = newOne()
	g.Policies = policiesOf(nil)
	plain := func(session, cwd string) string {
		ev := stop(session)
		ev.Agent, ev.Cwd = DefaultAgent, cwd
		return decide(t, g, ev).Reason
	}
	steps("an agent without hooks", 1, 1, []string{plain("n", "/p"), plain("n", "/q"), plain("n", "/p")}, []string{"", "", ""})
	if p := store.projects[sessionOf{"n", DefaultAgent}]; p[ClaudeCode] != "/p" {
		t.Errorf("kept are %v", p)
	}
	g = hooked

	// Rules on paths are about the project's files, wherever the agent is.
	about, err := CompileRule("Write(src/**)")
	if err != nil {
		t.Fatal(err)
	}
	g = newOne()
	g.Policies = policiesOf([]*Spec{{Kind: Attached(ClaudeCode), Name: "a", Hooks: []Hook{{Name: "rule", Event: PreToolUse, Matcher: claudeMatcher(t, "*"),
		Type: CommandHook, Dialect: ClaudeCode, Timeout: DefaultTimeout, FailMode: FailBlock, If: about}}}})
	g.Evaluators[CommandHook] = answers{"rule": says(Verdict{Outcome: Block, Reason: "asked"})}
	write := func(file string) func(*Event) {
		return func(ev *Event) { ev.ToolName, ev.ToolInput = "Write", []byte(`{"file_path":"`+file+`"}`) }
	}
	steps("rules on paths", 1, 5, []string{at(g, "w", "/p", write("/p/src/a.go")), at(g, "w", "/p/src", write("/p/src/a.go")), at(g, "w", "/tmp", write("/p/src/a.go")),
		at(g, "w", "/p", write("/p/a.go")), at(g, "w", "/q", write("/q/src/a.go"))}, []string{"asked", "asked", "asked", "", "asked"})
	g = newOne()

	store.broken = errors.New("disk on fire")
	if d := decide(t, g, func() Event { ev := tool(PreToolUse); ev.Session, ev.Cwd = "s", "/q"; return ev }()); !d.Degraded || d.GateError == nil || d.GateError.Code != StoreUnavailable {
		t.Errorf("with a store that fails: %+v", d)
	}
}
