package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"stopgate/gate"
)

// Bounds of a test file. They are far above what people write.
const (
	maxCases       = 10_000
	maxSeries      = 1000
	maxCaseTimeout = 3600 // seconds
)

// ReadTestFile reads a file of `stopgate test`. It is read strictly: a key that
// is unknown is an error. The file is only of use where no finding is an error.
func ReadTestFile(name string, data []byte) (TestFile, []gate.Finding) {
	var f findings
	file := TestFile{Path: name}
	docs, err := readDocuments(data, false, &f)
	switch {
	case err != nil:
		return file, append(f.list, detailsOf(err)...)
	case len(docs) == 0:
		f.errorf("", pos{1, 1}, "file is empty, want an object with tests")
	case len(docs) > 1:
		f.errorf("", docs[1].pos, "file holds %d documents, want one", len(docs))
	case docs[0].kind != objectKind:
		f.errorf("", docs[0].pos, "file is %s, want an object with tests", docs[0].describe())
	default:
		readTestFile(&object{findings: &f, node: docs[0]}, &file)
	}
	return file, f.sorted()
}

func readTestFile(o *object, file *TestFile) {
	if n := o.value("spec"); n != nil && n.kind == listKind {
		for i, item := range o.list("spec") {
			if item.kind != textKind || item.text == "" {
				o.errorf(fmt.Sprintf("spec[%d]", i), item.pos, "spec[%d] is %s, want a file's name", i, item.describe())
				continue
			}
			file.Specs = append(file.Specs, Named{Place: item.place(), Name: item.text})
		}
	} else if named := o.named("spec", "a file's name, or a list of them"); named.Name != "" {
		file.Specs = []Named{named}
	}
	file.Agent = o.text("agent")
	file.AllowHosts = o.texts("allow_hosts")
	tests := o.list("tests")
	if len(tests) == 0 && (o.value("tests") == nil || o.value("tests").kind == listKind) {
		o.errorf("tests", o.place("tests"), "tests is missing or empty: a file that tests nothing cannot fail")
	}
	if len(tests) > maxCases {
		o.errorf("tests", o.place("tests"), "tests has %d cases, want at most %d", len(tests), maxCases)
		return
	}
	names := map[string]bool{}
	for i, n := range tests {
		path := fmt.Sprintf("tests[%d]", i)
		if n.kind != objectKind {
			o.errorf(path, n.pos, "%s is %s, want an object", path, n.describe())
			continue
		}
		c := readCase(&object{findings: o.findings, path: path, node: n})
		if names[c.Name] && c.Name != "" {
			o.errorf(path+".name", n.find("name").pos, "case %q is there twice", cut(c.Name))
		}
		names[c.Name] = true
		file.Cases = append(file.Cases, c)
	}
	o.unknown(true)
}

func (n *node) place() Place { return Place{n.line, n.column} }

func (n *node) json() json.RawMessage { return n.canonical() }

// named is a text that names a file.
func (o *object) named(name, want string) Named {
	n := o.typed(name, textKind, want)
	if n == nil {
		return Named{}
	}
	if n.text == "" || strings.ContainsRune(n.text, 0) {
		o.errorf(o.child(name), n.pos, "%s is %q, want %s", name, cut(n.text), want)
		return Named{}
	}
	return Named{Place: n.place(), Name: n.text}
}

func readCase(o *object) TestCase {
	c := TestCase{Place: o.node.place(), Name: strings.TrimSpace(o.text("name")), Timeout: DefaultCaseTimeout}
	if c.Name == "" && (o.value("name") == nil || o.value("name").kind == textKind) {
		o.errorf(o.child("name"), o.place("name"), "name is missing: a case needs one")
	}
	if strings.ContainsFunc(c.Name, unicode.IsControl) { // reports are read line by line
		o.errorf(o.child("name"), o.place("name"), "name holds a line end or another control character")
	}
	if seconds, ok := o.whole("timeout", 1, maxCaseTimeout, " (seconds)"); ok {
		c.Timeout = time.Duration(seconds) * time.Second
	}
	c.Files = readFiles(o)
	if c.Series = o.value("series") != nil; c.Series {
		c.Events = readSeries(o)
	} else {
		c.Events = []TestEvent{readEvent(o)}
	}
	if counts := o.object("counts"); counts != nil {
		c.Counts = map[gate.Outcome]int{}
		for _, outcome := range []gate.Outcome{gate.Allow, gate.Block, gate.Ask} {
			if n, ok := counts.whole(string(outcome), 0, maxSeries, ""); ok {
				c.Counts[outcome] = n
			}
		}
		counts.unknown(true)
	}
	c.Left = readLeft(o)
	if c.Left != nil && c.Files == nil {
		c.Files = map[string]string{}
	}
	o.unknown(true)
	return c
}

func readSeries(o *object) (events []TestEvent) {
	list := o.list("series")
	if len(list) == 0 || len(list) > maxSeries {
		o.errorf(o.child("series"), o.place("series"), "series has %d events, want 1…%d", len(list), maxSeries)
		return nil
	}
	for i, n := range list {
		path := fmt.Sprintf("%s[%d]", o.child("series"), i)
		if n.kind != objectKind {
			o.errorf(path, n.pos, "%s is %s, want an object", path, n.describe())
			continue
		}
		e := &object{findings: o.findings, path: path, node: n}
		events = append(events, readEvent(e))
		e.unknown(true)
	}
	return events
}

// readFiles are those of the working directory.
func readFiles(o *object) map[string]string {
	dir := o.object("files")
	if dir == nil {
		return nil
	}
	files := map[string]string{}
	for _, f := range dir.node.fields {
		if !o.localPath(dir.child(f.name), f) {
			continue
		}
		if f.value.kind != textKind {
			o.errorf(dir.child(f.name), f.value.pos, "file %q is %s, want text", cut(f.name), f.value.describe())
			continue
		}
		files[f.name] = f.value.text
	}
	return files
}

func readLeft(o *object) map[string]*Text {
	dir := o.object("files_after")
	if dir == nil {
		return nil
	}
	left := map[string]*Text{}
	for _, f := range dir.node.fields {
		if !o.localPath(dir.child(f.name), f) {
			continue
		}
		left[f.name] = nil
		if f.value.kind != nullKind {
			left[f.name] = dir.wanted(f.name)
		}
	}
	return left
}

// localPath reports whether a field's name is a path that does not lead out of a
// directory.
func (o *object) localPath(path string, f field) bool {
	if filepath.IsLocal(f.name) && f.name != "." && !strings.ContainsRune(f.name, 0) {
		return true
	}
	o.errorf(path, f.pos, "%q is no path of a file inside the working directory", cut(f.name))
	return false
}

// readEvent reads an event with what belongs to it. Its fields stand in an item
// of a series, or in the case itself.
func readEvent(o *object) TestEvent {
	e := TestEvent{Place: o.node.place(), Protocol: o.text("protocol"), Take: o.text("take")}
	if n := o.typed("event", objectKind, "an object, as POST /v1/evaluate takes it"); n != nil {
		e.Place, e.Event = n.place(), n.json()
	}
	e.EventFile = o.named("event_file", "a file's name")
	switch inline, file := o.value("event") != nil, o.value("event_file") != nil; {
	case inline && file:
		o.errorf(o.child("event_file"), o.place("event_file"), "both event and event_file are there, want one of them")
	case !inline && !file:
		o.errorf(o.child("event"), o.node.pos, "event is missing: want event, event_file, or a series of them")
	}
	if e.Active = o.texts("active"); e.Active == nil && o.value("active") != nil {
		e.Active = []string{} // none is
	}
	if n := o.value("transcript"); n != nil {
		if n.kind != textKind && n.kind != listKind {
			o.errorf(o.child("transcript"), n.pos, "transcript is %s, want text or a list of messages", n.describe())
		}
		e.Transcript = n.json()
	}
	if e.TranscriptFile = o.named("transcript_file", "a file's name"); e.TranscriptFile.Name != "" && e.Transcript != nil {
		o.errorf(o.child("transcript_file"), o.place("transcript_file"), "both transcript and transcript_file are there, want one of them")
	}
	e.Model = readModel(o)
	if e.Recording = o.named("recording", "a directory's name"); e.Recording.Name != "" && e.Model != nil {
		o.errorf(o.child("recording"), o.place("recording"), "both model and recording are there, want one of them")
	}
	if o.value("take") != nil && o.value("recording") == nil {
		o.errorf(o.child("take"), o.place("take"), "take has no effect without recording")
	}
	e.HTTP = readHTTPAnswers(o)
	e.Want = readWant(o)
	return e
}

// readModel: a list of answers, or such lists by hook.
func readModel(o *object) map[string][]ModelAnswer {
	n := o.value("model")
	if n == nil {
		return nil
	}
	switch n.kind {
	case listKind:
		return map[string][]ModelAnswer{"": readAnswers(o, "model")}
	case objectKind:
		byHook := o.object("model")
		all := map[string][]ModelAnswer{}
		for _, f := range n.fields {
			all[f.name] = readAnswers(byHook, f.name)
		}
		return all
	}
	o.errorf(o.child("model"), n.pos, "model is %s, want a list of answers, or an object with such a list for each hook", n.describe())
	return nil
}

func readAnswers(o *object, name string) (answers []ModelAnswer) {
	for i, n := range o.list(name) {
		path := fmt.Sprintf("%s[%d]", o.child(name), i)
		if n.kind != objectKind {
			o.errorf(path, n.pos, "%s is %s, want an object with one of verdict, calls, text, error", path, n.describe())
			continue
		}
		answers = append(answers, readAnswer(&object{findings: o.findings, path: path, node: n}))
	}
	return answers
}

func readAnswer(o *object) (a ModelAnswer) {
	a.Text = o.text("text")
	if verdict := o.object("verdict"); verdict != nil {
		a.Text = string(verdict.node.json())
	}
	for i, n := range o.list("calls") {
		path := fmt.Sprintf("%s[%d]", o.child("calls"), i)
		if n.kind != objectKind {
			o.errorf(path, n.pos, "%s is %s, want an object with name and args", path, n.describe())
			continue
		}
		call := &object{findings: o.findings, path: path, node: n}
		c := ModelCall{Name: call.text("name"), Args: json.RawMessage("{}")}
		if c.Name == "" && call.value("name") == nil {
			o.errorf(call.child("name"), n.pos, "name is missing: a call needs the tool's")
		}
		if args := call.object("args"); args != nil {
			c.Args = args.node.json()
		}
		call.unknown(true)
		a.Calls = append(a.Calls, c)
	}
	a.Failure = gate.FailureCode(o.oneOf("error", string(gate.ModelUnavailable), string(gate.ModelRateLimited),
		string(gate.ModelRefused), string(gate.ModelTruncated)))
	o.unknown(true)
	if n := len(o.node.fields) - len(o.rest()); n != 1 {
		o.errorf(o.path, o.node.pos, "answer has %d of verdict, calls, text and error, want one of them", n)
	}
	return a
}

func readHTTPAnswers(o *object) (answers []HTTPAnswer) {
	for i, n := range o.list("http") {
		path := fmt.Sprintf("%s[%d]", o.child("http"), i)
		if n.kind != objectKind {
			o.errorf(path, n.pos, "%s is %s, want an object with status and body", path, n.describe())
			continue
		}
		item := &object{findings: o.findings, path: path, node: n}
		a := HTTPAnswer{URL: item.text("url"), Status: 200, Headers: item.pairs("headers")}
		if status, ok := item.whole("status", 200, 599, ""); ok {
			a.Status = status
		}
		if body := item.value("body"); body != nil && body.kind == textKind {
			a.Body = body.text
		} else if body != nil {
			a.Body = string(body.json())
		}
		item.unknown(true)
		answers = append(answers, a)
	}
	return answers
}

// pairs are the texts of an object.
func (o *object) pairs(name string) map[string]string {
	of := o.object(name)
	if of == nil {
		return nil
	}
	pairs := map[string]string{}
	for _, f := range of.node.fields {
		if f.value.kind != textKind {
			o.errorf(of.child(f.name), f.value.pos, "%s is %s, want text", f.name, f.value.describe())
			continue
		}
		pairs[f.name] = f.value.text
	}
	return pairs
}

// outcomes are what an event can come to.
var outcomes = []string{string(gate.Allow), string(gate.Block), string(gate.Ask)}

// hookOutcomes are what a hook can come to.
var hookOutcomes = append(slices.Clone(outcomes), string(gate.NoVerdict), string(gate.Skipped))

// readWant: an object, or the decision alone.
func readWant(o *object) Want {
	n := o.value("want")
	if n == nil {
		o.errorf(o.child("want"), o.node.pos, "want is missing: a case without it cannot fail")
		return Want{}
	}
	w := Want{Place: n.place()}
	if n.kind == textKind {
		w.Decision = gate.Outcome(o.oneOf("want", outcomes...))
		return w
	}
	of := o.object("want")
	if of == nil {
		return w
	}
	w.Decision = gate.Outcome(of.oneOf("decision", outcomes...))
	if of.value("decision") == nil {
		o.errorf(of.child("decision"), n.pos, "decision is missing, want one of %s", strings.Join(outcomes, ", "))
	}
	w.Reason, w.Context = of.wanted("reason"), of.wanted("context")
	w.Forced, w.Degraded, w.StopHookActive = of.perhaps("forced"), of.perhaps("degraded"), of.perhaps("stop_hook_active")
	if count, ok := of.whole("stop_rejection_count", 0, maxWhole, ""); ok {
		w.StopRejectionCount = &count
	}
	w.Hooks = readHookWants(of)
	w.Notes = words(of, "notes", gate.Notes)
	w.Errors = words(of, "errors", gate.FailureCodes)
	w.Requests = readRequests(of)
	of.unknown(true)
	return w
}

// perhaps is a flag; nil where it is not set.
func (o *object) perhaps(name string) *bool {
	if n := o.typed(name, boolKind, "true or false"); n != nil {
		set := n.text == "true"
		return &set
	}
	return nil
}

// words is a list of some closed set; nil where there is no list.
func words[T ~string](o *object, name string, all []T) []T {
	if o.value(name) == nil {
		return nil
	}
	legal := make([]string, len(all))
	for i, w := range all {
		legal[i] = string(w)
	}
	found := []T{}
	for i, n := range o.list(name) {
		if n.kind != textKind || !slices.Contains(legal, n.text) {
			o.errorf(fmt.Sprintf("%s[%d]", o.child(name), i), n.pos, "%s[%d] is %s, want one of %s%s", name, i, n.describe(),
				strings.Join(legal, ", "), DidYouMean(n.text, legal))
			continue
		}
		found = append(found, T(n.text))
	}
	return found
}

func readHookWants(o *object) map[string]HookWant {
	of := o.object("hooks")
	if of == nil {
		return nil
	}
	legal := hookOutcomes
	wants := map[string]HookWant{}
	for _, f := range of.node.fields {
		if f.value.kind != objectKind {
			wants[f.name] = HookWant{Outcome: gate.Outcome(of.oneOf(f.name, legal...))}
			continue
		}
		h := of.object(f.name)
		w := HookWant{Outcome: gate.Outcome(h.oneOf("outcome", legal...)), Reason: h.wanted("reason"), Context: h.wanted("context"),
			Notes: words(h, "notes", gate.Notes)}
		if n := h.value("error"); n != nil {
			codes := make([]string, len(gate.FailureCodes))
			for i, c := range gate.FailureCodes {
				codes[i] = string(c)
			}
			w.Error = gate.FailureCode(h.oneOf("error", codes...))
		}
		if h.value("outcome") == nil {
			o.errorf(h.child("outcome"), f.value.pos, "outcome is missing, want one of %s", strings.Join(legal, ", "))
		}
		h.unknown(true)
		wants[f.name] = w
	}
	return wants
}

func readRequests(o *object) []RequestWant {
	if o.value("requests") == nil {
		return nil
	}
	wants := []RequestWant{}
	for i, n := range o.list("requests") {
		path := fmt.Sprintf("%s[%d]", o.child("requests"), i)
		if n.kind != objectKind {
			o.errorf(path, n.pos, "%s is %s, want an object with url, headers or body", path, n.describe())
			continue
		}
		item := &object{findings: o.findings, path: path, node: n}
		w := RequestWant{URL: item.text("url"), Headers: item.pairs("headers")}
		if body := item.object("body"); body != nil {
			w.Body = body.node.json()
		}
		item.unknown(true)
		wants = append(wants, w)
	}
	return wants
}

// wanted is what a text must be; nil where nothing is said.
func (o *object) wanted(name string) *Text {
	n := o.value(name)
	if n == nil {
		return nil
	}
	if n.kind == textKind {
		return Exactly(n.text)
	}
	of := o.object(name)
	if of == nil {
		return nil
	}
	defer of.unknown(true)
	for _, form := range []string{"is", "contains", "matches"} {
		text := of.text(form)
		if of.value(form) == nil {
			continue
		}
		t := &Text{form: form}
		if form != "is" && text == "" && of.node.find(form) != nil && of.node.find(form).kind == textKind {
			o.errorf(of.child(form), of.place(form), "%s is empty, which every text fits: for one that is empty write %s: \"\"", form, name)
		}
		switch form {
		case "is":
			t.is = text
		case "contains":
			t.contains = text
		default:
			re, err := regexp.Compile(text)
			if err != nil {
				o.errorf(of.child(form), of.place(form), "%s is no RE2 pattern: %s", form, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
				re = regexp.MustCompile("")
			}
			t.matches = re
		}
		if len(of.node.fields) > 1 {
			o.errorf(of.path, n.pos, "%s has several of is, contains and matches, want one of them", name)
		}
		return t
	}
	o.errorf(of.path, n.pos, "%s has none of is, contains and matches, want one of them", name)
	return nil
}
