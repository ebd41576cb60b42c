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

// find is the workspace of an event's cwd. It is none when the cwd, symbolic
// links resolved, lies under no root or in a hidden directory, or has a path
// that the sandbox needs for itself; then why says so, and what helps.
func (w Workspace) find(cwd string) (m mounted, why string) {
	switch {
	case w.Access == NoWorkspace:
		return mounted{}, unmounted
	case !filepath.IsAbs(cwd):
		return mounted{}, "the event does not say, in cwd, in which directory the agent works"
	}
	source, err := filepath.EvalSymlinks(cwd)
	if err != nil || !isDir(source) {
		return mounted{}, fmt.Sprintf("the agent's working directory %q is not on this machine: run the gate where the agent works", cwd)
	}
	path := filepath.Clean(cwd)
	if path == "/" || path == "/tmp" || slices.ContainsFunc(reserved, func(r string) bool { return within(path, r) || within(r, path) }) {
		return mounted{}, fmt.Sprintf("the agent's working directory is %q, which the sandbox has for itself", path)
	}
	under := func(root string) bool {
		real, err := filepath.EvalSymlinks(root)
		return err == nil && within(source, real)
	}
	switch {
	case !slices.ContainsFunc(w.Roots, under):
		return mounted{}, fmt.Sprintf("the agent's working directory %q lies under none of sandbox.workspace_roots in the server file: add a directory above it", path)
	case slices.ContainsFunc(w.Hidden, under):
		return mounted{}, fmt.Sprintf("the agent's working directory %q lies in the gate's data directory", path)
	}
	return mounted{source: source, path: path}, ""
}

// unmounted is why no hook sees its agent's files.
const unmounted = "hooks do not see the agent's working directory here: in the server file, set sandbox.workspace to read-only, and sandbox.workspace_roots to directories above the projects"

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
