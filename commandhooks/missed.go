package commandhooks

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"stopgate/gate"
)

// lack is what a hook wants, as its text or its own words say, and does not find
// where hooks run.
type lack struct {
	code   gate.FailureCode
	clause string // who wants it: its command, or what the hook said
	// certain: its command does, by itself, and does not deal with it. In all other
	// cases the agent may have a part in it.
	certain bool
	gate.Unseen
}

func (l *lack) message() string { return l.clause + ", and " + l.Why }

// settled is what a verdict comes to of a hook that wanted what it could not see; nil:
// it is not known to.
//
// What the hook says may be its agent's words, whatever they look like, so that they
// take nothing away that stands against the agent: a refusal counts, and so does what
// the agent is told, unless the hook's owner wants a block where it has no verdict.
// No objection is none of a hook that could not look, and by that the agent gains
// nothing (docs/decisions/0010).
func (l *lack) settled(h *gate.Hook, v gate.Verdict) gate.Verdict {
	if l == nil {
		return v
	}
	tells := v.AdditionalContext != "" || v.Has(gate.HaltRequested)
	if v.Outcome == gate.NoVerdict || v.Outcome == gate.Allow && (!tells || h.FailMode == gate.FailBlock) {
		return gate.Verdict{Outcome: gate.NoVerdict, Failure: failed(l.code, "the hook's end is no verdict: %s", l.message())}
	}
	v.Notes = append(v.Notes, gate.FileMissing)
	return v
}

// missed is what the hook wanted and could not find since it does not see its
// agent's files, by what it and its interpreters said; nil: nothing, or that is no
// doing of the gate's. One that says so of its own is not told apart; what helps is
// the same.
//
// A hook that does see its project is believed, but of files that it names itself
// and that a link or .. leads to, out of what is mounted, and of files elsewhere if
// that is its last word, and it failed.
func (s sight) missed(j job, h *gate.Hook, e ending) *lack {
	if j.rooted || h.Dialect == gate.Azure && j.cwd == "" { // azure's scripts come with it, and there is no project
		return nil
	}
	said := e.stderr.kept
	if out := bytes.TrimSpace(e.stdout.kept); e.code != 0 && !bytes.HasPrefix(out, []byte("{")) {
		said = append(append(out[:len(out):len(out)], '\n'), said...) // of 2>&1
	}
	said = said[max(0, len(said)-maxSaid):]
	text := strings.Join(append([]string{j.script, j.inline}, h.Args...), "\n")
	own := ownPaths(text)
	lines := strings.Split(strings.TrimSpace(clean(said)), "\n")
	for i, line := range lines {
		w, ok := wanted(line)
		if !ok {
			continue
		}
		w.text, w.own, w.fatal = text, own, e.code != 0 && i == len(lines)-1
		if why := s.ours(w); why != "" {
			return w.heard(line, why)
		}
	}
	return nil
}

// maxSaid is how many of the last bytes that a hook said are looked through.
const maxSaid = 64 << 10

// heard is the lack that a line tells of.
func (w want) heard(line, why string) *lack {
	u := gate.Unseen{Path: head(w.path, 200), Said: head(strings.TrimSpace(line), 200), Why: why}
	if w.unnamed {
		u.Path = ""
	}
	return &lack{code: gate.ScriptMissing, clause: fmt.Sprintf("it says %q", u.Said), Unseen: u}
}

// want is a path that a hook said is not there.
type want struct {
	path    string
	unnamed bool     // it did not say which
	joined  bool     // said by a program that puts the directory it is in before a path
	text    string   // the hook's own
	own     []string // what may be paths in it
	fatal   bool     // nothing was said after it, and the hook failed
}

// ownPaths are the words of a hook's text that may be paths, also those in its
// quoted texts.
func ownPaths(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("'\"`;|&()<>,=:[]", r) })
}

// ownName reports whether a word of the hook's is, or ends behind a slash in, that
// name.
func (w want) ownName(name string) bool {
	return slices.ContainsFunc(w.own, func(word string) bool { return endsIn(word, name) })
}

// endsIn reports whether a word is a path, or one below a variable's directory.
func endsIn(word, path string) bool {
	word = strings.TrimLeft(strings.TrimRight(word, "}"), "-") // of ${X:-path}
	return word == path || !filepath.IsAbs(path) && strings.HasSuffix(word, "/"+path)
}

// below is a path as it is from the project or the working directory, where it
// lies in one.
func (s sight) below(path string) string {
	for _, dir := range []string{s.project, s.cwd} {
		if rel, err := filepath.Rel(dir, path); filepath.IsAbs(dir) && err == nil && within(path, dir) {
			return rel
		}
	}
	return path
}

// ours says why the hook did not find it; empty: by no doing of the gate's.
func (s sight) ours(w want) string {
	why := s.misses(w.path)
	own := slices.Contains(w.own, w.path) || w.ownName(s.below(w.path))
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
	case w.fatal && w.ownName(filepath.Base(w.path)) && (strings.Contains(w.text, "~/") || strings.Contains(w.text, "HOME")):
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
		w := want{path: ".", unnamed: len(found) == 1, joined: joins.MatchString(line)}
		if !w.unnamed {
			w.path = strings.TrimPrefix(found[1], "file://")
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
	regexp.MustCompile(`no makefile found|No rule to make target|[Nn]ot a git repository`),
}
