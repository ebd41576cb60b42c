package commandhooks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

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
	text := strings.Join(append([]string{j.script, j.inline}, h.Args...), "\n")
	own := ownPaths(text)
	lines := strings.Split(strings.TrimSpace(clean(said)), "\n")
	heard, left := "", maxWants
	for i, line := range lines {
		w, ok := wanted(line)
		if !ok || left == 0 {
			continue
		}
		w.text, w.own, w.fatal = text, own, e.code != 0 && i == len(lines)-1
		why := s.ours(w)
		if why == "" {
			continue
		}
		if heard == "" {
			heard = letters(spoken(h.Dialect, j.stdin))
		}
		left--
		found := failed(gate.ScriptMissing, "the hook's end is no verdict: it says %q, and %s", head(strings.TrimSpace(line), 200), why)
		if !s.repeats(w, heard) {
			return found, false
		}
		failure, hearsay = cmp.Or(failure, found), true
	}
	return failure, hearsay
}

// maxWants is how many lines are compared with what the agent said, which may be long.
const maxWants = 16

// repeats reports whether the agent may have had the hook say so: heard, the
// letters of what it says in the event, has the same words in it, or a name of the
// path; or the path's last name is none of the hook's own, so that it was made of
// something else. Where the hook reads what its event does not have as it is, that
// cannot be told.
func (s sight) repeats(w want, heard string) bool {
	says := func(text string) bool { return strings.Contains(heard, letters(text)) }
	switch {
	case says(w.words), readsElse.MatchString(w.text):
		return true
	case w.unnamed:
		return goesElsewhere.MatchString(w.text)
	case w.path == s.cwd, w.path == s.project:
		return says(w.path) && !namesProject.MatchString(w.text)
	}
	path := s.below(w.path)
	if w.joined {
		path = startsIn.ReplaceAllString(path, "")
	}
	names := strings.Split(path, "/")
	last := names[len(names)-1]
	return says(last) || !w.ownName(last) || slices.ContainsFunc(names, func(name string) bool { return letters(name) != "" && says(name) })
}

var (
	// readsElse is in a hook's text that reads the conversation, or decodes what the
	// event has.
	readsElse = regexp.MustCompile(`(?i)transcript|execution_summary|base(?:16|32|64|85)|b(?:16|32|64)decode|xxd|decode|unquote|unescape|unhex|fromhex|fromjson|openssl|%b`)
	// namesProject is the directory of the project as a word of the hook's.
	namesProject = regexp.MustCompile(`\$\{?\w*PROJECT_DIR\}?(?:["'\s;&|)]|$)`)
	// startsIn is where hooks start that do not see where the agent works.
	startsIn = regexp.MustCompile(`^/(?:.*/)?tmp/`)
	// goesElsewhere is in one that enters a directory, which the event may have named.
	goesElsewhere = regexp.MustCompile(`\b(?:cd|pushd|chdir|cwd)\b|\s-C\b`)
)

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

// hostsOwn are members of an event that its host says, not the agent.
var hostsOwn = []string{"cwd", "hook_event_name", "session_id", "transcript_path", "agent_transcript_path", "execution_summary", "permission_mode"}

// spoken are the texts of an event's JSON that the agent may have said, or all of
// it if it is none. What a hook of AX Code is told is all the agent's.
func spoken(d gate.Dialect, event []byte) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(event, &members) != nil {
		return string(event)
	}
	var b strings.Builder
	if d == gate.AXCode {
		texts(event, &b)
		return b.String()
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(hostsOwn, name) {
			texts(members[name], &b)
		}
	}
	return b.String()
}

// texts writes those of a JSON value, names of members included.
func texts(value json.RawMessage, to *strings.Builder) {
	for d := json.NewDecoder(bytes.NewReader(value)); ; {
		token, err := d.Token()
		if err != nil {
			return // io.EOF: the value is whole
		}
		if text, ok := token.(string); ok {
			to.WriteString(text)
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
	path    string
	unnamed bool     // it did not say which
	words   string   // in which it said so
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
		w := want{path: ".", unnamed: len(found) == 1, words: found[0], joined: joins.MatchString(line)}
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
	regexp.MustCompile(`no makefile found|No rule to make target|[Nn]ot a git repository`),
}
