package commandhooks

import "stopgate/gate"

// notRun says why the hook is not run: what it starts first exists where the agent
// is and not where hooks run. An interpreter that misses its script exits as a
// script that refuses may, and a shell as one that has no objection.
//
// Only what is certain by the hook's own text is told ahead. A shell has more ways to
// name a file than can be listed: what else is missing is told by what the hook says;
// see missed. doubt: the hook is run, and what it would do with a file of the agent's
// that it does not see is not known; its refusal stands.
func (s sight) notRun(j job, h *gate.Hook) (failure *gate.Failure, doubt string) {
	if j.rooted {
		return nil, ""
	}
	if failure, doubt = s.lacks(j, h); failure != nil {
		failure.Message = "the hook was not run: " + failure.Message
	}
	return failure, doubt
}

// Unserved says why the hook can have no verdict here, whatever the event, and
// what helps; nil: that is not known before there is one.
func (r *Runner) Unserved(h *gate.Hook) *gate.Failure {
	if r.start == nil {
		return failed(gate.SandboxUnavailable, "%s", r.status.Reason)
	}
	cwd := "/project" // of an agent that is somewhere
	if r.opt.Workspace.Access != NoWorkspace && len(r.opt.Workspace.Roots) > 0 {
		cwd = r.opt.Workspace.Roots[0]
	}
	j, failure := r.plan(gate.Input{Hook: h, Event: &gate.Event{Name: h.Event, Cwd: cwd}})
	if failure != nil {
		return failure
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
	failure, _ = s.lacks(j, h)
	return failure
}

// lacks is what the hook starts, as far as it is certain, and does not find; and what
// it may start, since its agent has it.
func (s sight) lacks(j job, h *gate.Hook) (failure *gate.Failure, doubt string) {
	r := lineReader{sight: s, set: map[string]string{}, why: s.misses}
	r.read(j, h)
	return r.failure, r.doubt
}
