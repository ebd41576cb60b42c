package commandhooks

import (
	"os"
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
// that the sandbox needs for itself.
func (w Workspace) find(cwd string) (mounted, bool) {
	if w.Access == NoWorkspace || !filepath.IsAbs(cwd) {
		return mounted{}, false
	}
	source, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return mounted{}, false
	}
	if info, err := os.Stat(source); err != nil || !info.IsDir() {
		return mounted{}, false
	}
	path := filepath.Clean(cwd)
	if path == "/" || path == "/tmp" || slices.ContainsFunc(reserved, func(r string) bool { return within(path, r) || within(r, path) }) {
		return mounted{}, false
	}
	under := func(root string) bool {
		real, err := filepath.EvalSymlinks(root)
		return err == nil && within(source, real)
	}
	if !slices.ContainsFunc(w.Roots, under) || slices.ContainsFunc(w.Hidden, under) {
		return mounted{}, false
	}
	return mounted{source: source, path: path}, true
}

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
