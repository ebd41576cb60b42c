package commandhooks

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stopgate/gate"
)

// Unserved says why the hook can have no verdict here, whatever the event, and
// what helps; nil: that is not known before there is one. asked: it is run all the
// same, without what it wants, and what it refuses counts.
func (r *Runner) Unserved(h *gate.Hook) (why *gate.Failure, asked bool) {
	if r.start == nil {
		return failed(gate.SandboxUnavailable, "%s", r.status.Reason), false
	}
	cwd := "/project" // of an agent that is somewhere
	if r.opt.Workspace.Access != NoWorkspace && len(r.opt.Workspace.Roots) > 0 {
		cwd = r.opt.Workspace.Roots[0]
	}
	j, failure := r.plan(gate.Input{Hook: h, Event: &gate.Event{Name: h.Event, Cwd: cwd}})
	if failure != nil {
		return failure, false
	}
	s := r.sight(j)
	delete(s.env, projectDir) // it stands for itself: no project is known yet
	if !s.confined {          // a whole path is seen, wherever it is
		s.cwd, s.project, s.projectUnseen = "", "", ""
	}
	if r.opt.Workspace.Access != NoWorkspace { // one agent's directory may be seen and another's not
		s.cwd, s.project = "", ""
		s.unseen, s.projectUnseen, s.agentsUnseen = "", "", ""
		s.held = append(s.held, r.opt.Workspace.Roots...)
	}
	l, sure := s.lacks(j, h)
	if l == nil || !l.certain {
		return nil, false
	}
	return failed(l.code, "%s", l.message()), !sure
}

// lacks is what the hook starts and does not find, by its own text; nil: nothing, or
// nothing that is certain.
//
// sure: nothing in the text refuses without it, so that the hook need not be run, and
// should not: an interpreter that misses its script exits as a script that refuses
// may. Otherwise the hook can refuse by what else it does. Then, and where the agent
// has by its own doing what the hook could do without, it is run, and only its
// silence says nothing; see [lack.settled].
//
// A shell has more ways to name a file than can be listed: what else is missing is
// told by what the hook says; see missed.
func (s sight) lacks(j job, h *gate.Hook) (l *lack, sure bool) {
	if j.rooted {
		return nil, false
	}
	r := lineReader{sight: s, set: map[string]string{}, defined: map[string]bool{}, why: s.misses, blockOnFailure: h.BlockOnFailure}
	after := r.read(j, h)
	return r.lack, r.lack != nil && r.lack.certain && after != unknownStep
}

// read reads what the job runs.
func (r *lineReader) read(j job, h *gate.Hook) step {
	if h.Args != nil {
		words := append([]string{h.Command}, h.Args...)
		for i, word := range words {
			words[i] = r.unread(word)
		}
		return r.called(words, false)
	}
	file := r.bashOf(j)
	if file == nil {
		return unknownStep
	}
	r.tail = tailOf(file.Stmts)
	return r.statements(file.Stmts, false)
}

// enter is cd. That a directory of the project is not there is certain; others may
// be of the sandbox's own.
func (r *lineReader) enter(words []string, spare bool) step {
	to := "~"
	if len(words) > 0 {
		to = words[len(words)-1]
	}
	missing := r.inProject(r.from(to)) && r.need(to, spare)
	r.lost = to == unknown || strings.HasPrefix(to, "-") || r.lost && !whole(to)
	r.dir = r.from(to)
	if missing {
		return fails
	}
	return passes
}

// from is a path as it is from where the text starts.
func (r *lineReader) from(path string) string {
	if whole(path) || r.dir == "" {
		return path
	}
	return filepath.Join(r.dir, path)
}

// ask notes what the text asks for, that it may be there.
func (r *lineReader) ask(words ...string) {
	for _, word := range words {
		r.asked = append(r.asked, r.from(word))
	}
}

// need reports whether a file or directory is not there, and notes the first that a
// text wants. spare, or asked for: the text knows what to do without it, and would
// not have to where the agent is.
func (r *lineReader) need(path string, spare bool) (missing bool) {
	if path == "" || path[0] == '-' || strings.Contains(path, unknown) || r.lost && !whole(path) {
		return false
	}
	path = r.from(path)
	if filepath.Clean(path) == "." { // wherever that is
		return false
	}
	why := r.why(path)
	if why == "" {
		return false
	}
	asked := r.asked != nil
	if !asked && !spare || (!asked || slices.Contains(r.asked, path)) && r.agentHas(path) {
		r.note(gate.ScriptMissing, "its command names", path, path, why, !asked && !spare)
	}
	return true
}

// needProject is need of the project's own files, whichever they are.
func (r *lineReader) needProject(tool string, spare bool) (missing bool) {
	here := r.from(".")
	if r.lost || !r.inProject(here) {
		return false
	}
	why := r.why(here)
	if why != "" && r.asked == nil {
		r.note(gate.ScriptMissing, "its command wants a project for", tool, here, why, !spare)
	}
	return why != ""
}

// needInterpreter is need of a program that is found by its name.
func (r *lineReader) needInterpreter(name string, spare bool) (missing bool) {
	if spare || r.asked != nil || r.set["PATH"] != "" || r.hasProgram(name) {
		return false
	}
	r.note(gate.InterpreterMissing, "its command starts", name, name, "that is not where hooks run: install it in a directory of the system, and start the gate anew", true)
	return true
}

// note keeps the first lack.
func (r *lineReader) note(code gate.FailureCode, who, what, path, why string, certain bool) {
	if r.lack == nil {
		r.lack = &lack{code: code, clause: fmt.Sprintf("%s %q", who, head(what, 200)), certain: certain, Unseen: gate.Unseen{Path: head(path, 200), Why: why}}
	}
}
