package commandhooks

import (
	"iter"
	"os"
	"path/filepath"

	"stopgate/gate"
)

// ownDirs are what a project has of the system whose hooks are run.
var ownDirs = map[gate.Dialect]string{gate.ClaudeCode: ".claude", gate.AXCode: ".ax-code", gate.Antigravity: ".agents"}

// Projects are those of an event's agent, as they are now. The gate keeps those of a
// session's first event: see [gate.Beginnings].
func (w Workspace) Projects(ev *gate.Event) gate.Projects {
	found := gate.Projects{}
	for d := range ownDirs {
		found[d] = w.project(d, ev.Cwd, ev.Project)
	}
	return found
}

// projectOf is the directory of an agent's project for a hook: what its host says,
// else the session's, else what looks like it now.
func (w Workspace) projectOf(d gate.Dialect, ev *gate.Event) string {
	if known := ev.Projects[d]; known != "" && !filepath.IsAbs(ev.Project) {
		return known
	}
	return w.project(d, ev.Cwd, ev.Project)
}

// project is the directory of an agent's project: what its host says, else what
// looks like it above the working directory, else that. Those that are looked at
// lie below the roots, so that an agent chooses nothing by where it works that it
// could not by the directory alone.
//
// It is the nearest with the system's own directory, else the nearest repository.
// The system's own directory above a repository counts if it is in one too: it may
// be that of a person's home, which is no project.
func (w Workspace) project(d gate.Dialect, cwd, named string) string {
	if filepath.IsAbs(named) {
		return filepath.Clean(named)
	}
	repository := ""
	if ownDirs[d] == "" || !filepath.IsAbs(cwd) {
		return cwd
	}
	for dir := range w.above(cwd) {
		isRepository := exists(filepath.Join(dir, ".git"))
		if isDir(filepath.Join(dir, ownDirs[d])) && (repository == "" || isRepository) {
			return dir
		}
		if isRepository && repository == "" {
			repository = dir
		}
	}
	if repository != "" {
		return repository
	}
	return cwd
}

// above are the directory and those above it, up to a root. They end at a symbolic
// link: what lies above it by its path holds no more than the link.
func (w Workspace) above(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		real, err := filepath.EvalSymlinks(dir)
		for dir = filepath.Clean(dir); err == nil && !taken(dir) && under(real, w.Roots); {
			if !yield(dir) {
				return
			}
			above := filepath.Dir(real)
			dir = filepath.Dir(dir)
			if real, err = filepath.EvalSymlinks(dir); real != above {
				return
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
