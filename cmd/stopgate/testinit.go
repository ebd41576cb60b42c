package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stopgate/config"
	"stopgate/gate"
)

// init writes a first test file: for each hook events that it is about, with what
// comes of them now, and where that shows what it lets pass alone, or refuses alone,
// a case of the other kind. What was written is what was seen to pass, but for
// cases that somebody has to fill in, which were seen to fail.
func (c testCommand) init(p process) error {
	if config.IsTestFile(c.Init) {
		return exit{exitUsage, fmt.Errorf("--init: %s is a test file, want a spec", c.Init)}
	}
	if about, err := os.Stat(c.Init); err == nil && about.IsDir() {
		return exit{exitUsage, fmt.Errorf("--init: %s is a directory, want a spec file", c.Init)}
	}
	files, err := readHookFiles("", false, []string{c.Init})
	if err != nil {
		return err
	}
	specs, err := goodSpecs(p, files)
	if err != nil {
		return err
	}
	path := strings.TrimSuffix(c.Init, filepath.Ext(c.Init)) + ".test.yaml"
	if _, err := os.Lstat(path); err == nil {
		return exit{exitInput, fmt.Errorf("%s is there already; it is not written over", path)}
	}
	t, err := c.tester(p)
	if err != nil {
		return err
	}
	defer t.close()
	var hooks []*gate.Hook
	for _, s := range specs {
		for i := range s.Hooks {
			hooks = append(hooks, &s.Hooks[i])
		}
	}
	draft := draftFile{spec: filepath.Base(c.Init), hooks: hooks, hosts: hostsOf(hooks)}
	for _, h := range hooks {
		draft.add(p.ctx, h)
	}
	if len(draft.cases) == 0 {
		return exit{exitInput, fmt.Errorf("%s has no hook that events could be thought of for", c.Init)}
	}
	text, err := t.settle(p, path, &draft)
	if err != nil {
		return err
	}
	if err := createNew(path, text); err != nil {
		return exit{exitInput, err}
	}
	fill := ""
	if n := draft.unfilled(); n > 0 {
		fill = fmt.Sprintf(" (%d of them to be filled in: %s)", n, fillIn)
	}
	said := fmt.Sprintf("wrote %s with %s%s: change the events to yours, then run stopgate test %s\n", path, plural(len(draft.cases), "case"), fill, path)
	for _, what := range draft.without {
		said += "no case for " + what + "\n"
	}
	_, err = io.WriteString(p.stdout, said)
	return err
}

// draftFile is a test file that is being written.
type draftFile struct {
	spec    string
	hooks   []*gate.Hook
	hosts   []string // that http hooks of claude-code ask
	cases   []draftCase
	without []string // what there is no case for, and why
}

// draftCase is a case without what must come out.
type draftCase struct {
	hook  *gate.Hook // that it is for
	name  string
	event map[string]any
	model []string // for each prompt hook that is about the event: its name and its model's answers, in YAML
	http  []string // what servers answer to the http hooks that are about the event, in YAML
	want  string   // in YAML, indented

	outcome gate.Outcome // what the hook came to
	held    int          // which of its rules decided; noRule: none
	other   gate.Outcome // what a case of the other kind is for: block or allow; empty: it is none
	rule    *ruleDraft   // the rule that the case is for; nil: it is for none
	fill    bool         // somebody has to fill it in
	lacks   string       // what could not be answered about the event; empty: nothing
}

// add drafts cases for one of the hooks: those of a prompt hook or an http hook with a
// judge or a server that is content and one that is not.
func (f *draftFile) add(ctx context.Context, h *gate.Hook) {
	events := draftEvents(h, f.hooks)
	if len(events) == 0 {
		why := "no event " + string(h.Event) + " can be written"
		if h.Event.ForTool() {
			why = fmt.Sprintf("its matcher %q names no tool that could be thought of", h.Matcher.String())
		}
		f.without = append(f.without, fmt.Sprintf("hook %q: %s", h.Name, why))
	}
	for _, e := range events {
		e, asked := askedAbout(ctx, h, e)
		about := aboutEvent(h, e, f.hooks)
		name := plainName(h)
		if tool, of := e["tool_name"].(string); of {
			name += " on " + tool
		}
		switch {
		case h.Type == gate.HTTPHook && refusingAnswer(h) != "" && !slices.ContainsFunc(about[1:], isHTTP):
			f.cases = append(f.cases, draftOf(ctx, name+" lets pass", e, about, true), draftOf(ctx, name+" refuses", e, about, false))
		case h.Type != gate.PromptHook:
			f.cases = append(f.cases, draftOf(ctx, name, e, about, true))
		case !asked:
			f.cases = append(f.cases, draftOf(ctx, name+" is passed over", e, about, true))
		default:
			f.cases = append(f.cases, draftOf(ctx, name+" is content", e, about, true), draftOf(ctx, name+" is not content", e, about, false))
		}
	}
}

func isHTTP(h *gate.Hook) bool { return h.Type == gate.HTTPHook }

// refusingAnswer is what a server answers to refuse, in YAML; "": nothing refuses there.
func refusingAnswer(h *gate.Hook) string {
	const reason = "Say what is wrong here."
	switch {
	case h.Dialect == gate.ClaudeCode && h.Event == gate.PreToolUse:
		return "{hookSpecificOutput: {hookEventName: PreToolUse, permissionDecision: deny, permissionDecisionReason: " + reason + "}}"
	case h.Dialect == gate.ClaudeCode && (h.Event == gate.Stop || h.Event == gate.PostToolUse || h.Event == gate.UserPromptSubmit):
		return "{decision: block, reason: " + reason + "}"
	case h.Dialect == gate.Antigravity && h.Event == gate.PreToolUse:
		return "{decision: deny, reason: " + reason + "}"
	}
	return ""
}

// plainName is a hook's name without brackets, in which inline hooks have their
// place.
func plainName(h *gate.Hook) string {
	return strings.NewReplacer("[", " ", "]", "").Replace(h.Name)
}

// aboutEvent are the hooks that are about an event of the first one.
func aboutEvent(h *gate.Hook, event map[string]any, all []*gate.Hook) []*gate.Hook {
	about := []*gate.Hook{h}
	for _, o := range all {
		tool, _ := event["tool_name"].(string)
		if o != h && o.Event == h.Event && (tool == "" || o.Matcher.Match(tool)) {
			about = append(about, o)
		}
	}
	return about
}

// draftOf is a case in which the first hook's judge or server is content or not, and
// all others are content.
func draftOf(ctx context.Context, name string, event map[string]any, about []*gate.Hook, content bool) draftCase {
	d := draftCase{name: name, event: event, hook: about[0]}
	for i, h := range about {
		if h.When != nil && !whenHolds(ctx, h, event) {
			continue // it is not asked
		}
		switch h.Type {
		case gate.HTTPHook:
			answer := "{}"
			if i == 0 && !content {
				answer = refusingAnswer(h)
			}
			d.http = append(d.http, answer)
		case gate.PromptHook:
			verdict := `{ok: true}`
			if i == 0 && !content {
				verdict = `{ok: false, reason: Say what is missing here.}`
			}
			answers := strings.TrimSuffix(strings.Repeat("{verdict: "+verdict+"}, ", max(h.Votes, 1)), ", ")
			d.model = append(d.model, scalar(h.Name)+": ["+answers+"]")
		}
	}
	return d
}

// hostsOf are the hosts that http hooks of claude-code ask, which need leave.
func hostsOf(hooks []*gate.Hook) (hosts []string) {
	for _, h := range hooks {
		if u, err := url.Parse(h.URL); err == nil && h.Type == gate.HTTPHook && h.Dialect == gate.ClaudeCode && !slices.Contains(hosts, u.Host) {
			hosts = append(hosts, u.Host)
		}
	}
	return hosts
}

// settle runs the draft and writes down what came of each case, drafts the cases of
// the other kind, and does the same with them; then the whole is run as it will be
// read.
func (t *tester) settle(p process, path string, draft *draftFile) ([]byte, error) {
	if err := t.decide(p, path, draft); err != nil {
		return nil, err
	}
	for _, more := range []func(context.Context) draftFile{draft.others, draft.byRule} {
		if others := more(p.ctx); len(others.cases) > 0 {
			if err := t.decide(p, path, &others); err != nil {
				return nil, err
			}
			draft.cases = append(draft.cases, others.cases...)
		}
	}
	if err := t.withoutUseless(p, path, draft); err != nil {
		return nil, err
	}
	text := draft.written()
	second, err := t.tried(p, path, text)
	if err != nil {
		return nil, err
	}
	for i, c := range second.cases {
		if failed := len(c.result.failures) > 0; failed != draft.cases[i].fill {
			printSuite(p.stderr, second, false)
			return nil, exit{exitInput, errors.New("this does not come out the same a second time; nothing was written")}
		}
	}
	return text, nil
}

// decide fills in what comes of each case.
func (t *tester) decide(p process, path string, draft *draftFile) error {
	for i := range draft.cases {
		draft.cases[i].want = "\n      decision: allow\n"
	}
	ran, err := t.tried(p, path, draft.written())
	if err != nil {
		return err
	}
	for i, c := range ran.cases {
		if len(c.result.decisions) == 0 {
			return exit{exitInput, fmt.Errorf("no decision on %q: %s", c.Name, c.result.failures[0].Message)}
		}
		d := c.result.decisions[0]
		for _, v := range d.Hooks { // what this machine lacks is no property of the hook
			if failure := v.Hindered(gate.Missing); failure != nil {
				return exit{exitInput, fmt.Errorf("hook %q could not be asked: %w", v.Name, failure)}
			}
		}
		draft.cases[i].decided(d, c.result.held[0])
	}
	return nil
}

// withoutUseless leaves out cases that are to be filled in and pass as they are: what
// they want comes out of another rule, too, so nobody would see that they were not
// filled in.
func (t *tester) withoutUseless(p process, path string, draft *draftFile) error {
	if draft.unfilled() == 0 {
		return nil
	}
	ran, err := t.tried(p, path, draft.written())
	if err != nil {
		return err
	}
	var kept []draftCase
	for i, d := range draft.cases {
		if d.fill && len(ran.cases[i].result.failures) == 0 {
			draft.without = append(draft.without, fmt.Sprintf("%s: no event that it decides was found, and others come to the same", d.subject()))
			continue
		}
		kept = append(kept, d)
	}
	draft.cases = kept
	return nil
}

// tried is a test file that was run without having been written.
func (t *tester) tried(p process, path string, text []byte) (*suite, error) {
	s := readSuite(p.ctx, path, text)
	if gate.HasErrors(s.findings) {
		printFindings(p.stderr, []specFile{{path: path, findings: s.findings}})
		return nil, exit{exitInput, errors.New("no test file can be written for this spec")}
	}
	for range t.run(p.ctx, []*suite{s}) {
	}
	if p.ctx.Err() != nil {
		return nil, exit{exitInternal, errors.New("interrupted")}
	}
	return s, nil
}
