package commandhooks

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"

	"stopgate/gate"
)

// missed says what the hook wanted and could not find since it does not see its
// agent's files, by what it and its interpreters said. Then its end, whatever it
// is, is no verdict: a hook that does not see the project and says that a file of
// it is not there may have refused for that, or had no objection for that. One that
// says so of its own is not told apart; what helps is the same.
//
// A hook that does see its project is believed, but of files that a link or .. leads
// to, out of what is mounted. Of files elsewhere its last word counts, if it failed.
func (r *Runner) missed(j job, h *gate.Hook, e ending) *gate.Failure {
	if _, ended := e.ended(); !ended || j.rooted {
		return nil
	}
	if h.Dialect == gate.Azure && j.cwd == "" { // its scripts come with it, and there is no project
		return nil
	}
	said := e.stderr.kept
	if out := bytes.TrimSpace(e.stdout.kept); e.code != 0 && !bytes.HasPrefix(out, []byte("{")) {
		said = append(append(out[:len(out):len(out)], '\n'), said...) // of 2>&1
	}
	said = said[max(0, len(said)-maxSaid):]
	lines := strings.Split(strings.TrimSpace(clean(said)), "\n")
	for i, line := range lines {
		path, ok := wanted(line)
		if !ok {
			continue
		}
		w := want{path: path, text: j.script + j.inline + strings.Join(h.Args, "\n"),
			joined: joins.MatchString(line), fatal: e.code != 0 && i == len(lines)-1}
		if why := r.sight(j).missed(w); why != "" {
			return failed(gate.ScriptMissing, "the hook's end is no verdict: it says %q, and %s", head(strings.TrimSpace(line), 200), why)
		}
	}
	return nil
}

// maxSaid is how many of the last bytes that a hook said are looked through.
const maxSaid = 64 << 10

// want is a path that a hook said is not there.
type want struct {
	path   string
	text   string // the hook's own
	joined bool   // said by a program that puts the directory it is in before a path
	fatal  bool   // nothing was said after it, and the hook failed
}

// missed says why the hook did not find it; empty: by no doing of the gate's.
func (s sight) missed(w want) string {
	why := s.misses(w.path)
	switch {
	case !filepath.IsAbs(w.path) && s.unseen != "":
		return s.unseen
	case why != "" && (w.fatal || s.inProject(s.whole(w.path)) || s.agentHas(w.path)):
		return why
	case s.unseen != "" && s.env[projectDir] == "" && strings.Contains(w.text, projectVariable):
		return s.unseen // it begins with a variable that is empty here
	case !filepath.IsAbs(w.path) || s.inProject(w.path) || strings.Contains(w.text, w.path):
		return ""
	case s.unseen != "" && w.joined:
		return s.unseen
	case w.fatal && (strings.Contains(w.text, "~/") || strings.Contains(w.text, "HOME")):
		return homeless
	}
	return ""
}

// wanted is the path that a line says is not there; ".", if it does not say which.
func wanted(line string) (path string, ok bool) {
	for _, form := range wants {
		if found := form.FindStringSubmatch(line); found != nil {
			if path = "."; len(found) > 1 {
				path = strings.TrimPrefix(found[1], "file://")
			}
			return path, true
		}
	}
	return "", false
}

// joins are the forms of python3, node and deno.
var joins = regexp.MustCompile(`can't open file|Cannot find module|Module not found`)

// wants are how programs say that a path is not there. The last, without one, come
// from make and git where there is no project.
var wants = []*regexp.Regexp{
	regexp.MustCompile(`(?i)no such file or directory(?:: |, \w+ | -- )['"]?([^\s'"]+)`),                    // Python, node, ruby
	regexp.MustCompile(`(?i)([^\s'"‘(]+?)['"’]?(?: for reading)?(?::| \()\s?(?:\[Errno 2\] )?no such file`), // bash, dash, python3, perl, awk, make, coreutils
	regexp.MustCompile(`can't cd to (\S+)`),                                                                 // dash
	regexp.MustCompile(`([^\s:]*/[^\s:]*): not found`),                                                      // dash, of a program
	regexp.MustCompile(`(?i)not found:? ['"]?([^\s'":]*(?:://)?[^\s'":]*[/.][^\s'"]+)`),                     // pytest, deno, bun
	regexp.MustCompile(`(?i)(?:cannot find|no) module (?:named )?['"]?([^\s'"]+)`),                          // node, Python
	regexp.MustCompile(`(?i)(?:cannot open|could not open input file:) ['"]?([^\s'":]*[/.][^\s'":]*)`),      // lua, php
	regexp.MustCompile(`no makefile found|No rule to make target|not a git repository`),
}
