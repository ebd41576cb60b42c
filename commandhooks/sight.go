package commandhooks

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sight is what a hook finds of the machine that the agent is on.
type sight struct {
	cwd     string // the agent's working directory
	project string // the directory of its project
	unseen  string // why the hook does not start in cwd; empty: it does
	// projectUnseen is why the hook does not see the project.
	projectUnseen string
	env           map[string]string // of its own
	tools         tools
	confined      bool
	// agents is whether /.agents is the project's, and agentsUnseen why it is not there
	// then; empty: it is.
	agents       bool
	agentsUnseen string
	// held is what a sandbox has of this machine, but for its /tmp, which is its
	// own; without one: everything.
	held []string
}

func (r *Runner) sight(j job) sight {
	v := r.opt.Workspace.view(j.cwd, j.project)
	s := sight{cwd: j.cwd, project: j.project, unseen: v.unseen, projectUnseen: v.projectUnseen,
		env: maps.Clone(r.opt.Env), tools: r.tools, confined: r.status.Mode == Bubblewrap}
	if s.env == nil {
		s.env = map[string]string{}
	}
	maps.Copy(s.env, j.env)
	s.held = slices.DeleteFunc(slices.Clone(reserved), func(dir string) bool { return dir == "/etc" })
	for _, i := range []interpreter{r.tools.bash, r.tools.python} {
		s.held = append(s.held, i.prefixes...)
	}
	s.held = append(s.held, j.transcripts...)
	for _, dir := range v.dirs {
		s.held = append(s.held, dir.path, dir.source)
	}
	if s.agents = j.wantsAgents() && s.confined; s.agents {
		if _, s.agentsUnseen = r.opt.Workspace.agents(j.project); s.agentsUnseen == "" {
			s.held = append(s.held, agentsDir)
		}
	}
	return s
}

// whole reports whether a path is the same wherever the hook is. It may begin with
// a directory that stands for itself; see variable.
func whole(path string) bool {
	return filepath.IsAbs(path) || path == "~" || strings.HasPrefix(path, "~/") || strings.HasPrefix(path, "$")
}

const homeless = "hooks have a home directory of their own, which is empty: put the file below the agent's working directory, or, in mode bubblewrap, below /usr"

// misses says why a hook does not find a file; empty: if it is there, it does.
func (s sight) misses(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "$"), "/")
	switch {
	case path == "~" || strings.HasPrefix(path, "~/"):
		return homeless
	case strings.HasPrefix(path, topLevel):
		return s.unseen
	case strings.HasPrefix(path, "$") && strings.HasSuffix(name, projectVariable):
		return s.projectUnseen
	case strings.HasPrefix(path, "$"):
		return fmt.Sprintf("$%s is not known to the gate: write the path out", name)
	case !filepath.IsAbs(path) && (s.unseen != "" || s.cwd == ""):
		return s.unseen
	}
	path = s.whole(path)
	for _, d := range []struct{ dir, why string }{{s.cwd, s.unseen}, {s.project, s.projectUnseen}} {
		if d.why != "" && filepath.IsAbs(d.dir) && within(path, filepath.Clean(d.dir)) && (s.confined || !isDir(d.dir)) {
			return d.why
		}
	}
	if !s.confined || s.holds(path) {
		return ""
	}
	if s.agents && within(path, agentsDir) {
		return s.agentsUnseen
	}
	return "the sandbox has nothing that lies there: put the file below the agent's working directory, with sandbox.workspace read-only (read-write, where hooks write to it), or below /usr"
}

// whole is a path as the agent has it.
func (s sight) whole(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.cwd, path)
	}
	return filepath.Clean(path)
}

// holds reports whether a sandbox has what lies at the path, where a symbolic link
// may lead out of what it has, or may have something of its own there.
func (s sight) holds(path string) bool {
	if within(path, "/dev") || within(path, "/proc") { // which are the hook's own
		return true
	}
	mounted := func(path string) bool {
		return slices.ContainsFunc(s.held, func(dir string) bool { return within(path, dir) })
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return mounted(path) || within(path, "/tmp")
	}
	return mounted(path) && mounted(real)
}

// inProject reports whether a path is one of the agent's project.
func (s sight) inProject(path string) bool {
	if !whole(path) || strings.HasPrefix(path, "$") {
		return true
	}
	return slices.ContainsFunc([]string{s.cwd, s.project}, func(dir string) bool {
		return filepath.IsAbs(dir) && within(filepath.Clean(path), filepath.Clean(dir))
	})
}

// agentHas reports whether a path of the project is there for the agent, as far as
// this machine is the one that it is on.
func (s sight) agentHas(path string) bool {
	if name, below, _ := strings.Cut(path, "/"); strings.HasPrefix(name, "$") {
		path = filepath.Join(s.project, below)
	}
	if !s.inProject(path) || s.cwd == "" {
		return false
	}
	_, err := os.Stat(s.whole(path))
	return err == nil
}

func (s sight) hasProgram(name string) bool {
	search := s.tools.path
	if theirs := s.env["PATH"]; theirs != "" {
		search = theirs + ":" + search
	}
	dirs := slices.DeleteFunc(filepath.SplitList(search), func(dir string) bool {
		return !filepath.IsAbs(dir) || s.confined && !s.holds(filepath.Clean(dir))
	})
	return len(candidates(dirs, name)) > 0
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
