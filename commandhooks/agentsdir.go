package commandhooks

import (
	"fmt"
	"os"
	"path/filepath"

	"stopgate/gate"
)

// agentsDir is where hooks of the Gemini API's agents find their scripts: in the
// environment that they are written for, the project's own directory of that name
// lies at / (spec/antigravity.md 1, 2).
const agentsDir = "/.agents"

// agents finds the project's .agents, which hooks of antigravity have at /.agents,
// read-only, where they see the project. It is a directory and no link, which might
// lead to another project; else why says so, and what helps.
func (w Workspace) agents(project string) (m mounted, why string) {
	of, why := w.find("project", project)
	if why != "" {
		return mounted{}, fmt.Sprintf("%s is the project's own .agents where hooks see it: %s", agentsDir, why)
	}
	source := filepath.Join(of.source, agentsDir)
	about, err := os.Lstat(source)
	switch {
	case err != nil || !about.IsDir():
		return mounted{}, fmt.Sprintf("%s is the project's own .agents, and the project %q has no directory of that name: put it there, or name another path in the command", agentsDir, project)
	case under(source, w.Hidden):
		return mounted{}, fmt.Sprintf("%s lies in the gate's data directory", agentsDir)
	}
	return mounted{source: source, path: agentsDir}, ""
}

// wantsAgents reports whether the job's hook has its scripts at [agentsDir].
func (j job) wantsAgents() bool { return j.dialect == gate.Antigravity && !j.rooted }
