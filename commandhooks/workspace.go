package commandhooks

import (
	"fmt"
	"path/filepath"
	"slices"
)

// mounted is a directory that a hook may see, above all its workspace.
type mounted struct {
	source string // with symbolic links resolved
	path   string // where the agent, and so the hook, knows it
}

// view is what of its agent's files a hook sees.
type view struct {
	dirs []mounted // the project, and the working directory where it lies elsewhere
	cwd  string    // where the hook starts; empty: not where the agent works
	// unseen and projectUnseen say why the working directory and the project are
	// not there, and what helps; empty: they are.
	unseen, projectUnseen string
}

// view finds the directories of an agent that works in cwd, on a project.
func (w Workspace) view(cwd, project string) view {
	at, unseen := w.find("working directory", cwd)
	of, projectUnseen := at, unseen
	if project != cwd {
		of, projectUnseen = w.find("project", project)
	}
	v := view{unseen: unseen, projectUnseen: projectUnseen}
	switch {
	case unseen != "" && projectUnseen != "":
	case unseen != "":
		v.dirs = []mounted{of}
	case projectUnseen != "":
		v.cwd, v.dirs = at.path, []mounted{at}
	default:
		v.cwd, v.dirs = at.path, both(of, at)
	}
	return v
}

// both are two directories, or the one that the other lies in. One that lies in
// the other by its path alone, behind a symbolic link, is mounted where it is: a
// link cannot be mounted over, and leads there in the sandbox too.
func both(a, b mounted) []mounted {
	if within(a.path, b.path) {
		a, b = b, a
	}
	rel, err := filepath.Rel(a.path, b.path)
	switch {
	case err != nil || !within(b.path, a.path):
		return []mounted{a, b}
	case filepath.Join(a.source, rel) == b.source, a.path == a.source && within(b.source, a.source), taken(b.source):
		return []mounted{a}
	}
	return []mounted{a, {source: b.source, path: b.source}}
}

// find is a directory of an agent's. It is none when dir, symbolic links resolved,
// lies under no root or in a hidden directory, or has a path that the sandbox needs
// for itself; then why says so, and what helps.
func (w Workspace) find(what, dir string) (m mounted, why string) {
	switch {
	case w.Access == NoWorkspace:
		return mounted{}, unmounted
	case dir == "":
		return mounted{}, "the event does not say, in cwd, in which directory the agent works"
	case !filepath.IsAbs(dir):
		return mounted{}, fmt.Sprintf("the event's cwd %q is not absolute", dir)
	}
	source, err := filepath.EvalSymlinks(dir)
	if err != nil || !isDir(source) {
		return mounted{}, fmt.Sprintf("the agent's %s %q is not on this machine: run the gate where the agent works", what, dir)
	}
	path := filepath.Clean(dir)
	switch {
	case taken(path):
		return mounted{}, fmt.Sprintf("the agent's %s is %q, which the sandbox has for itself", what, path)
	case !under(source, w.Roots):
		return mounted{}, fmt.Sprintf("the agent's %s %q lies under none of sandbox.workspace_roots in the server file: add a directory above it", what, path)
	case under(source, w.Hidden):
		return mounted{}, fmt.Sprintf("the agent's %s %q lies in the gate's data directory", what, path)
	}
	return mounted{source: source, path: path}, ""
}

// under reports whether a path without symbolic links lies under one of the
// directories.
func under(source string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		real, err := filepath.EvalSymlinks(dir)
		return err == nil && within(source, real)
	})
}

// taken reports whether the sandbox needs a path for itself.
func taken(path string) bool {
	return path == "/" || path == "/tmp" || slices.ContainsFunc(reserved, func(r string) bool { return within(path, r) || within(r, path) })
}

// unmounted is why no hook sees its agent's files.
const unmounted = "hooks do not see the agent's working directory here: in the server file, set sandbox.workspace to read-only, and sandbox.workspace_roots to directories above the projects; hooks that write there need read-write"

// reserved are the paths that a sandbox has for itself.
var reserved = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/dev", "/sys", scriptDir}

// scriptDir is where a sandbox has the hook's script and our jq.
const scriptDir = "/hook"

// hiddenIn are the hidden paths below what is mounted, with what the hook would
// see there. usable says whether a path, symbolic links resolved, can be mounted
// over: what a hook cannot even reach needs no hiding.
func (w Workspace) hiddenIn(all []mounted, usable func(real string) bool) []mounted {
	var found []mounted
	for _, hidden := range w.Hidden {
		real, err := filepath.EvalSymlinks(hidden)
		if err != nil || !usable(real) {
			continue
		}
		for _, m := range all {
			if rel, err := filepath.Rel(m.source, real); err == nil && within(real, m.source) {
				found = append(found, mounted{source: real, path: filepath.Join(m.path, rel)})
			}
		}
	}
	return found
}
