package commandhooks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stopgate/gate"
)

// lacks says why the hook is not run: it cannot do without a file, or an
// interpreter, that exists where the agent is and not where hooks run. An
// interpreter that misses its script exits as a script that refuses may, and a
// shell as one that has no objection: what is missing by our doing says neither.
// What a hook lacks by its own fault is found out by running it.
func (r *Runner) lacks(j job, h *gate.Hook) *gate.Failure {
	if j.rooted {
		return nil
	}
	failure := r.sight(j).lacks(h)
	if failure != nil {
		failure.Message = "the hook was not run: " + failure.Message
	}
	return failure
}

// Unserved says why the hook can have no verdict here, whatever the event, and
// what helps; nil: that is not known before there is one.
func (r *Runner) Unserved(h *gate.Hook) *gate.Failure {
	if r.start == nil {
		return failed(gate.SandboxUnavailable, "%s", r.status.Reason)
	}
	cwd := "/" // of an agent that is somewhere
	if r.opt.Workspace.Access != NoWorkspace && len(r.opt.Workspace.Roots) > 0 {
		cwd = r.opt.Workspace.Roots[0]
	}
	j, failure := r.plan(gate.Input{Hook: h, Event: &gate.Event{Name: h.Event, Cwd: cwd}})
	if failure != nil {
		return failure
	}
	s := r.sight(j)
	s.cwd, s.project = "", ""
	if r.opt.Workspace.Access != NoWorkspace { // one agent's directory may be seen and another's not
		s.unseen, s.projectUnseen, s.held = "", "", append(s.held, r.opt.Workspace.Roots...)
	}
	return s.lacks(h)
}

// lacks is what the hook needs and does not find.
func (s sight) lacks(h *gate.Hook) *gate.Failure {
	for _, n := range h.Needs() {
		if n.Kind == gate.ProgramNeed {
			if !n.Spare && !s.hasProgram(n.Path) {
				return failed(gate.InterpreterMissing, "its command starts %q, which is not where hooks run: install it in a directory of the system, and start the gate anew", head(n.Path, 80))
			}
			continue
		}
		if why := s.misses(n); why != "" {
			return failed(gate.ScriptMissing, "its command names %q, and %s", head(n.String(), 200), why)
		}
	}
	return nil
}

// sight is what a hook finds of the machine that the agent is on.
type sight struct {
	cwd     string // the agent's working directory
	project string // the directory of its project
	unseen  string // why the hook does not start in cwd; empty: it does
	// projectUnseen is why the hook does not see the project.
	projectUnseen string
	env           map[string]string // of its own
	path          string            // its search path
	confined      bool
	held          []string // what a sandbox has; without one: everything
}

func (r *Runner) sight(j job) sight {
	s := sight{cwd: j.cwd, project: j.project, env: j.env, path: r.tools.path, confined: r.status.Mode == Bubblewrap}
	if theirs := j.env["PATH"]; theirs != "" {
		s.path = theirs + ":" + s.path
	}
	v := r.opt.Workspace.view(j.cwd, j.project)
	s.unseen, s.projectUnseen = v.unseen, v.projectUnseen
	s.held = append(slices.DeleteFunc(slices.Clone(reserved), func(dir string) bool { return dir == "/etc" }), "/tmp")
	for _, i := range []interpreter{r.tools.bash, r.tools.python} {
		s.held = append(s.held, i.prefixes...)
	}
	s.held = append(s.held, j.transcripts...)
	for _, dir := range v.dirs {
		s.held = append(s.held, dir.path)
	}
	return s
}

// misses says why a hook does not find what it needs; empty: if it is there, it
// does.
func (s sight) misses(n gate.Need) string {
	if n.Spare && !s.there(n) {
		return ""
	}
	value := s.env[n.Base]
	switch {
	case n.Base == "PWD", n.Base == "" && !filepath.IsAbs(n.Path):
		return s.unseen
	case gate.ProjectVariable(n.Base) && (value == "" || s.confined && s.projectUnseen != ""):
		return s.projectUnseen
	case gate.ProjectVariable(n.Base) && !s.confined && !isDir(value):
		return fmt.Sprintf("the agent's project %q is not on this machine: run the gate where the agent works", value)
	case n.Base == "HOME" && value == "":
		return "hooks have a home directory of their own, which is empty: put the file below the agent's working directory, or, in mode bubblewrap, below /usr"
	case n.Base != "" && value == "":
		return fmt.Sprintf("$%s is not known to the gate: write the path out", n.Base)
	case !s.confined:
		return ""
	}
	path := filepath.Clean(n.Path)
	if n.Base != "" {
		path = filepath.Join(value, n.Path)
	}
	switch {
	case s.unseen != "" && filepath.IsAbs(s.cwd) && within(path, filepath.Clean(s.cwd)):
		return s.unseen
	case s.projectUnseen != "" && filepath.IsAbs(s.project) && within(path, filepath.Clean(s.project)):
		return s.projectUnseen
	case slices.ContainsFunc(s.held, func(dir string) bool { return within(path, dir) }):
		return ""
	}
	return "the sandbox has nothing that lies there: put the file below the agent's working directory, with sandbox.workspace read-only, or below /usr"
}

// there reports whether a file that the hook can do without lies in the agent's
// working directory or project, so that hooks which do not see that take it for
// absent.
func (s sight) there(n gate.Need) bool {
	path, unseen, dir := n.Path, s.unseen, s.cwd
	switch {
	case gate.ProjectVariable(n.Base):
		unseen, dir = s.projectUnseen, s.project
		path = filepath.Join(dir, path)
	case !filepath.IsAbs(path) || n.Base == "PWD":
		path = filepath.Join(dir, path)
	case s.projectUnseen != "" && within(filepath.Clean(path), filepath.Clean(s.project)):
		unseen, dir = s.projectUnseen, s.project
	}
	if unseen == "" || !filepath.IsAbs(dir) || !within(filepath.Clean(path), filepath.Clean(dir)) {
		return false
	}
	_, err := os.Stat(path)
	return err == nil
}

func (s sight) hasProgram(name string) bool {
	dirs := slices.DeleteFunc(filepath.SplitList(s.path), func(dir string) bool {
		return !filepath.IsAbs(dir) || s.confined && !slices.ContainsFunc(s.held, func(held string) bool { return within(filepath.Clean(dir), held) })
	})
	return !strings.Contains(name, "/") && len(candidates(dirs, name)) > 0
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
