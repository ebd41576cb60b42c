package commandhooks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
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
// A hook that does see its project is believed, but of files that it names itself
// and that a link or .. leads to, out of what is mounted, and of files elsewhere if
// that is its last word, and it failed.
//
// hearsay: the agent may have had the hook say so, as one does that repeats what it
// refuses. Then nothing but a refusal is to be believed.
func (s sight) missed(j job, h *gate.Hook, e ending) (failure *gate.Failure, hearsay bool) {
	if _, ended := e.ended(); !ended || j.rooted {
		return nil, false
	}
	if h.Dialect == gate.Azure && j.cwd == "" { // its scripts come with it, and there is no project
		return nil, false
	}
	said := e.stderr.kept
	if out := bytes.TrimSpace(e.stdout.kept); e.code != 0 && !bytes.HasPrefix(out, []byte("{")) {
		said = append(append(out[:len(out):len(out)], '\n'), said...) // of 2>&1
	}
	said = said[max(0, len(said)-maxSaid):]
	text := j.script + j.inline + strings.Join(h.Args, "\n")
	lines := strings.Split(strings.TrimSpace(clean(said)), "\n")
	heard, left := "", maxWants
	for i, line := range lines {
		w, ok := wanted(line)
		if !ok || left == 0 {
			continue
		}
		w.text, w.fatal = text, e.code != 0 && i == len(lines)-1
		why := s.ours(w)
		if why == "" {
			continue
		}
		if heard == "" {
			heard = letters(spoken(j.stdin))
		}
		left--
		found := failed(gate.ScriptMissing, "the hook's end is no verdict: it says %q, and %s", head(strings.TrimSpace(line), 200), why)
		if !strings.Contains(heard, letters(w.words)) && !strings.Contains(text, "transcript") && !strings.Contains(text, "execution_summary") {
			return found, false
		}
		failure, hearsay = cmp.Or(failure, found), true
	}
	return failure, hearsay
}

// maxWants is how many lines are compared with what the agent said, which may be long.
const maxWants = 16

// spoken are the texts of an event's JSON, or all of it if it is none.
func spoken(event []byte) string {
	var b strings.Builder
	for d := json.NewDecoder(bytes.NewReader(event)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return b.String()
		}
		if err != nil {
			return b.String() + string(event)
		}
		if text, ok := token.(string); ok {
			b.WriteString(text)
		}
	}
}

// letters are a text's own, which are left of it whatever a shell does to it on its
// way through a hook.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z':
			return r
		}
		return -1
	}, text)
}

// maxSaid is how many of the last bytes that a hook said are looked through.
const maxSaid = 64 << 10

// want is a path that a hook said is not there.
type want struct {
	path   string
	words  string // in which it said so
	joined bool   // said by a program that puts the directory it is in before a path
	text   string // the hook's own
	fatal  bool   // nothing was said after it, and the hook failed
}

// ours says why the hook did not find it; empty: by no doing of the gate's.
func (s sight) ours(w want) string {
	why := s.misses(w.path)
	below, _ := filepath.Rel(s.project, w.path) // where both are whole
	own := strings.Contains(w.text, w.path) || below != "" && strings.Contains(w.text, below)
	switch {
	case !filepath.IsAbs(w.path) && s.unseen != "":
		return s.unseen
	case why != "" && (s.unseen != "" || s.projectUnseen != "") && s.inProject(s.whole(w.path)):
		return why
	case why != "" && own && (w.fatal || s.agentHas(w.path)):
		return why
	case s.unseen != "" && s.env[projectDir] == "" && strings.Contains(w.text, projectVariable):
		return s.unseen // it begins with a variable that is empty here
	case !filepath.IsAbs(w.path) || s.inProject(w.path) || own:
		return ""
	case s.unseen != "" && w.joined:
		return s.unseen
	case w.fatal && strings.Contains(w.text, filepath.Base(w.path)) && (strings.Contains(w.text, "~/") || strings.Contains(w.text, "HOME")):
		return homeless
	}
	return ""
}

// wanted is what a line says is not there; ".", if it does not say which.
func wanted(line string) (want, bool) {
	for _, form := range wants {
		found := form.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		w := want{path: ".", words: found[0], joined: joins.MatchString(line)}
		if len(found) > 1 {
			w.path, w.words = strings.TrimPrefix(found[1], "file://"), strings.Replace(found[0], found[1], "", 1)
		}
		return w, true
	}
	return want{}, false
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
