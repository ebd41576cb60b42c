package commandhooks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"

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
	r := lineReader{sight: s, set: map[string]string{"PATH": project}} // where its programs are is not asked
	var named, starter string
	last := false
	r.why = func(path string) string {
		if !s.absent(path) {
			return ""
		}
		named, starter, last = path, r.starter, h.Args != nil || r.at == r.tail
		return "is not there"
	}
	if r.read(j, h); r.failure == nil {
		return ""
	}
	said := fmt.Sprintf("%q is not in this project", head(named, 200))
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

// without is how an interpreter ends that misses its script.
func without(interpreter string) (said string, code int) {
	switch interpreterName(interpreter) {
	case "python", "perl", "dash":
		return interpreter + " exits with 2", 2
	case "sh": // which is dash, or another
		return "sh exits with 2 or, on other systems, 127", 2
	case "node", "ruby", "php":
		return interpreter + " exits with 1", 1
	case "": // none: the shell itself
		return "the shell exits with 127", 127
	}
	return interpreter + " exits with 127", 127
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

// tailOf is the command whose end is that of all; nil: that is not known.
func tailOf(list []*syntax.Stmt) *syntax.CallExpr {
	if len(list) == 0 {
		return nil
	}
	last := list[len(list)-1]
	switch c := last.Cmd.(type) {
	case *syntax.CallExpr:
		if !last.Negated {
			return c
		}
	case *syntax.Block:
		return tailOf(c.Stmts)
	case *syntax.BinaryCmd:
		if c.Op != syntax.OrStmt {
			return tailOf([]*syntax.Stmt{c.Y})
		}
	}
	return nil
}
