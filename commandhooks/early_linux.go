package commandhooks

import (
	_ "embed"
	"slices"
	"strings"
)

// early is how an interpreter waits for its script before it opens it: a
// program of ours that it runs first, as one of its variables has it. It writes a
// line to standard output when it waits, and goes on after one on [latchFD].
type early struct {
	file     string // beside the script, until it waits
	variable string
	content  []byte
	heeds    []string // what else a variable's name begins with that it heeds then
}

//go:embed ahead.sh
var aheadBash []byte

//go:embed ahead.py
var aheadPython []byte

// What a Python waits with: for its one job, or for each that it forks.
var (
	//go:embed waits.py
	pythonWaits []byte
	//go:embed forks.py
	pythonForks []byte
)

// preloads are what most scripts import, and what takes Python longest. A
// project may have modules by the names of those that come along.
const preloads = "import json, re\n"

// early is how the job's interpreter waits; ok is false if it may not be
// running before the job comes. That holds for a shell line, which bash has with
// its start: did it not find our program, it would run the line at once.
func (j job) early(environ []string, project bool) (e early, ok bool) {
	switch {
	case j.script == "":
		return early{}, false
	case strings.HasSuffix(j.fileName, ".py"):
		e = early{file: "sitecustomize.py", variable: "PYTHONPATH=" + scriptDir, heeds: []string{"PYTHON"}}
		how, first := pythonWaits, preloads
		if j.forks {
			how = pythonForks
		}
		if project {
			first = ""
		}
		e.content = slices.Concat([]byte(first), how, aheadPython)
	default:
		e = early{file: "ahead.sh", variable: "BASH_ENV=" + scriptDir + "/ahead.sh", content: aheadBash,
			heeds: []string{"BASH", "SHELLOPTS=", "POSIXLY_CORRECT="}}
	}
	heeded := func(variable string) bool {
		return slices.ContainsFunc(e.heeds, func(name string) bool { return strings.HasPrefix(variable, name) })
	}
	return e, !slices.ContainsFunc(environ, heeded)
}
