package commandhooks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"stopgate/gate"
)

// Absent says of a script that a hook of Claude Code or AX Code starts first, one of
// the project that is not there, what comes of that, in the hook's own system as
// here. Empty: that is not certain. project is absolute; hooks start there.
func Absent(h *gate.Hook, project string) string {
	if h.Type != gate.CommandHook || h.Dialect != gate.ClaudeCode && h.Dialect != gate.AXCode {
		return ""
	}
	j := job{inline: h.Command, cwd: project, project: project}
	if h.Dialect == gate.ClaudeCode {
		j.forClaudeCode(h)
	}
	s := sight{cwd: project, project: project, env: j.env}
	r := lineReader{sight: s, set: map[string]string{"PATH": project}, defined: map[string]bool{}} // where its programs are is not asked
	var starter string
	last := false
	r.why = func(path string) string {
		if !s.absent(path) {
			return ""
		}
		if r.lack == nil { // it is the first, or not noted
			starter, last = r.starter, h.Args != nil || r.at == r.tail
		}
		return "is not there"
	}
	if r.read(j, h); r.lack == nil || !r.lack.certain {
		return ""
	}
	said := fmt.Sprintf("%q is not in this project", r.lack.Path)
	end, code := without(starter)
	switch v := judge(h, h.Event, ending{code: code}); {
	case starter == "" && h.Args != nil:
		return said + ": the hook cannot be started, and decides nothing"
	case !last:
		return said + ": " + end
	case v.Outcome == gate.Block:
		return said + ": " + end + ", which blocks " + every(h.Event)
	}
	return said + ": " + end + ", which decides nothing"
}

// absent reports whether a path is one of the project, and nothing lies there.
func (s sight) absent(path string) bool {
	if strings.HasPrefix(path, "$") || strings.HasPrefix(path, "~") {
		return false
	}
	whole := s.whole(path)
	if _, err := os.Stat(whole); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return within(whole, filepath.Clean(s.project))
}

// without is how a program ends that misses its script, or another file that it
// cannot do without.
func without(program string) (said string, code int) {
	switch interpreterName(program) {
	case "python", "perl", "dash", "awk", "gawk", "mawk", "grep", "egrep", "fgrep", "jq", "make":
		return program + " exits with 2", 2
	case "sh": // which is dash, or another
		return "sh exits with 2 or, on other systems, 127", 2
	case "node", "ruby", "php", "sed", "cd", "source", "the shell":
		return program + " exits with 1", 1
	case "": // none: the shell itself
		return "the shell exits with 127", 127
	}
	return program + " exits with 127", 127
}

// every is all that hooks on an event are asked about.
func every(event gate.EventName) string {
	switch event {
	case gate.PreToolUse:
		return "every call"
	case gate.Stop, gate.SubagentStop:
		return "every stop"
	case gate.UserPromptSubmit:
		return "every prompt"
	}
	return "on every " + string(event)
}
