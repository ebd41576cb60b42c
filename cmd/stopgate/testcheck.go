package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"stopgate/config"
	"stopgate/gate"
)

// check compares what came of an event with what must have.
func (st *stage) check(r *caseResult, e config.TestEvent, ev *gate.Event, d gate.Decision) {
	w := e.Want
	if len(d.Hooks) == 0 && w.Hooks == nil && !st.suite.unheard(st.played, ev) {
		r.failf(w.Place, "no hook was asked about %s; where none is to be, want hooks: {}", st.suite.missed(ev, e.Active))
	}
	if d.Outcome != w.Decision {
		r.failf(w.Place, "decision is %s, want %s%s", d.Outcome, w.Decision, because(d))
	}
	checkText(r, w.Place, "reason", w.Reason, d.Reason)
	checkText(r, w.Place, "context", w.Context, d.AdditionalContext)
	for _, f := range []struct {
		name string
		want *bool
		is   bool
	}{{"forced", w.Forced, d.Forced}, {"degraded", w.Degraded, d.Degraded}, {"stop_hook_active", w.StopHookActive, d.StopHookActive}} {
		if f.want != nil && f.is != *f.want {
			r.failf(w.Place, "%s is %v, want %v", f.name, f.is, *f.want)
		}
	}
	if n := w.StopRejectionCount; n != nil && d.StopRejectionCount != *n {
		r.failf(w.Place, "stop_rejection_count is %d, want %d", d.StopRejectionCount, *n)
	}
	checkHooks(r, w, d)
	if w.Requests != nil {
		checkRequests(r, w, st.world.asked())
	}
	for _, err := range []error{st.judges.script.faults(), st.world.faults()} {
		if err != nil && !scripted(w) {
			for line := range strings.Lines(err.Error()) {
				r.failf(e.Place, "%s", strings.TrimSuffix(line, "\n"))
			}
		}
	}
	if d.GateError != nil {
		r.failf(e.Place, "the gate itself failed: %s", d.GateError)
	}
}

// because is why a decision is what it is, as far as it says.
func because(d gate.Decision) string {
	if d.Reason != "" {
		return fmt.Sprintf(": %q", d.Reason)
	}
	for _, v := range d.Hooks {
		if v.Failure != nil {
			return fmt.Sprintf(": hook %q gave no verdict: %s", v.Name, v.Failure)
		}
	}
	return ""
}

// missed says whom an event was not for, since a matcher with a slip of the pen is
// about nothing and allows everything.
func (s *suite) missed(ev *gate.Event, active []string) string {
	what := string(ev.Name)
	if ev.ToolName != "" {
		what += fmt.Sprintf(" of the tool %.60q", ev.ToolName)
	}
	var hooks []gate.Hook
	for _, spec := range s.specs {
		for _, h := range spec.Hooks {
			if answers(&h, ev.Name) {
				hooks = append(hooks, h)
			}
		}
	}
	named := func(h *gate.Hook) string {
		if h.Activation == gate.OnDemand && active != nil && !slices.Contains(active, h.Name) {
			return h.Name + " (not active)"
		}
		return h.Name
	}
	return fmt.Sprintf("%s by agent %.60q: there is %s on %s", what, ev.Agent, listed(hooks, named), ev.Name)
}

// answers reports whether a hook is bound to an event, or to the one that it counts as:
// a failed call is a PostToolUse (spec/azure.md 26), a sub-agent's end a Stop.
func answers(h *gate.Hook, name gate.EventName) bool {
	of := map[gate.EventName]gate.EventName{gate.PostToolUseFailure: gate.PostToolUse, gate.SubagentStop: gate.Stop}
	return h.Event == name || of[name] != "" && h.Event == of[name]
}

// unheard reports whether an event stands in a series for what it does to the counts
// or to the conversation alone: a person speaks, a call fails, and none of the files'
// hooks is bound to that.
func (s *suite) unheard(c *testCase, ev *gate.Event) bool {
	return c.Series && (ev.Name == gate.UserPromptSubmit || ev.Name == gate.PostToolUseFailure) &&
		!slices.ContainsFunc(s.specs, func(spec *gate.Spec) bool {
			return slices.ContainsFunc(spec.Hooks, func(h gate.Hook) bool { return answers(&h, ev.Name) })
		})
}

// checkText shows long texts as a difference of lines.
func checkText(r *caseResult, at config.Place, name string, want *config.Text, text string) {
	if want == nil || want.Fits(text) {
		return
	}
	is, exact := want.Is()
	if !exact || !strings.Contains(strings.TrimSpace(is), "\n") && !strings.Contains(strings.TrimSpace(text), "\n") {
		r.failf(at, "%s is %q, want %s", name, text, want)
		return
	}
	lines := diff.Diff("want", []byte(strings.TrimSpace(is)+"\n"), "got", []byte(strings.TrimSpace(text)+"\n"))
	r.failf(at, "%s is another one:\n%s", name, bytes.TrimRight(lines, "\n"))
}

// checkHooks also finds the hooks that gave no verdict where nobody wants that: a
// decision that comes of a hook that was not asked tests nothing.
func checkHooks(r *caseResult, w config.Want, d gate.Decision) {
	var notes []gate.Note
	var errs []gate.FailureCode
	took := map[string][]gate.Verdict{} // an agent's hook and one of the agent level may have one name
	for _, v := range d.Hooks {
		took[v.Name] = append(took[v.Name], v)
		notes = append(notes, v.Notes...)
		if v.Failure == nil {
			continue
		}
		errs = append(errs, v.Failure.Code)
		if wanted := w.Hooks[v.Name]; w.Errors == nil && wanted.Outcome != gate.NoVerdict {
			r.failf(w.Place, "hook %q gave no verdict, which the test does not want: %s", v.Name, v.Failure)
		}
	}
	checkList(r, w.Place, "notes", w.Notes, notes)
	checkList(r, w.Place, "errors", w.Errors, errs)
	if w.Hooks == nil {
		return
	}
	for _, v := range d.Hooks {
		if _, wanted := w.Hooks[v.Name]; !wanted {
			r.failf(w.Place, "hook %q took part (%s), and is not wanted", v.Name, v.Outcome)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Hooks)) {
		if len(took[name]) == 0 {
			r.failf(w.Place, "hook %q did not take part%s", name, config.DidYouMean(name, slices.Sorted(maps.Keys(took))))
			continue
		}
		for _, v := range took[name] {
			checkHook(r, w.Place, w.Hooks[name], v)
		}
	}
}

func checkHook(r *caseResult, at config.Place, want config.HookWant, v gate.Verdict) {
	subject := fmt.Sprintf("hook %q: ", v.Name)
	if v.Outcome != want.Outcome {
		r.failf(at, "%soutcome is %s, want %s", subject, v.Outcome, want.Outcome)
	}
	checkText(r, at, subject+"reason", want.Reason, v.Reason)
	checkText(r, at, subject+"context", want.Context, v.AdditionalContext)
	checkList(r, at, subject+"notes", want.Notes, v.Notes)
	if want.Error != "" && (v.Failure == nil || v.Failure.Code != want.Error) {
		r.failf(at, "%serror is %v, want %s", subject, v.Failure, want.Error)
	}
}

// checkList compares in any order; a nil list is not looked at.
func checkList[T ~string](r *caseResult, at config.Place, name string, want, is []T) {
	if want == nil {
		return
	}
	a, b := slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(is))
	if !slices.Equal(a, b) {
		r.failf(at, "%s are %v, want %v", name, b, a)
	}
}

// scripted reports whether the test wants what a missing answer leads to.
func scripted(w config.Want) bool {
	missing := []gate.FailureCode{gate.ModelUnavailable, gate.HTTPUnreachable}
	return slices.ContainsFunc(w.Errors, func(c gate.FailureCode) bool { return slices.Contains(missing, c) })
}

func checkCounts(r *caseResult, c config.TestCase) {
	is := map[gate.Outcome]int{}
	for _, d := range r.decisions {
		is[d.Outcome]++
	}
	for _, outcome := range slices.Sorted(maps.Keys(c.Counts)) {
		if is[outcome] != c.Counts[outcome] {
			r.failf(c.Place, "%s was decided %s, want %d", outcome, plural(is[outcome], "time"), c.Counts[outcome])
		}
	}
}

// checkFiles looks at what lies in the working directory.
func (st *stage) checkFiles(r *caseResult, c config.TestCase) {
	if len(c.Left) == 0 {
		return
	}
	root, err := os.OpenRoot(st.work)
	if err != nil {
		r.failf(c.Place, "working directory: %s", err)
		return
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(c.Left)) {
		text, err := readLeft(root, name)
		switch want := c.Left[name]; {
		case want == nil && errors.Is(err, fs.ErrNotExist):
		case want == nil:
			r.failf(c.Place, "file %q is there, want none", name)
		case errors.Is(err, fs.ErrNotExist):
			r.failf(c.Place, "file %q is not there", name)
		case err != nil:
			r.failf(c.Place, "file %q: %s", name, err)
		default:
			checkText(r, c.Place, fmt.Sprintf("file %q", name), want, text)
		}
	}
}

// checkRequests finds a request for each that is wanted, in any order: hooks are
// asked at once.
func checkRequests(r *caseResult, w config.Want, asked []hookRequest) {
	if len(asked) != len(w.Requests) {
		r.failf(w.Place, "http hooks made %s, want %d", plural(len(asked), "request"), len(w.Requests))
	}
	found := assign(w.Requests, asked)
	var left []hookRequest
	for i, a := range asked {
		if !slices.Contains(found, i) {
			left = append(left, a)
		}
	}
	for i, want := range w.Requests {
		switch {
		case found[i] >= 0:
		case len(left) == 1:
			r.failf(w.Place, "requests[%d]: %s", i, unlike(want, left[0]))
		default:
			r.failf(w.Place, "requests[%d]: no request is like it", i)
		}
	}
}

// assign finds for each wanted request one of its own that is like it, as far as
// that can be: its place in asked, or -1. One that fits several is moved to another
// where it is the only one for somebody else (augmenting paths).
func assign(wanted []config.RequestWant, asked []hookRequest) []int {
	found, owner := slices.Repeat([]int{-1}, len(wanted)), slices.Repeat([]int{-1}, len(asked))
	var find func(want int, tried []bool) bool
	find = func(want int, tried []bool) bool {
		for i, a := range asked {
			if tried[i] || unlike(wanted[want], a) != "" {
				continue
			}
			tried[i] = true
			if owner[i] < 0 || find(owner[i], tried) {
				found[want], owner[i] = i, want
				return true
			}
		}
		return false
	}
	for i := range wanted {
		find(i, make([]bool, len(asked)))
	}
	return found
}

// unlike says what is wrong with a request; "" if it is as wanted.
func unlike(want config.RequestWant, is hookRequest) string {
	if want.URL != "" && want.URL != is.url {
		return fmt.Sprintf("url is %q, want %q", is.url, want.URL)
	}
	for _, name := range slices.Sorted(maps.Keys(want.Headers)) {
		if got := is.header.Get(name); got != want.Headers[name] {
			return fmt.Sprintf("header %s is %q, want %q", name, got, want.Headers[name])
		}
	}
	if want.Body == nil {
		return ""
	}
	var wanted, got any
	if err := json.Unmarshal(is.body, &got); err != nil {
		return fmt.Sprintf("body is no JSON: %s", err)
	}
	_ = json.Unmarshal(want.Body, &wanted) // it was written by us
	return lacking("body", wanted, got)
}

// lacking says where a JSON value has not what is wanted: of objects the members
// that are wanted, of all else the same.
func lacking(path string, want, is any) string {
	members, object := want.(map[string]any)
	of, alike := is.(map[string]any)
	if !object || !alike {
		if reflect.DeepEqual(want, is) {
			return ""
		}
		return fmt.Sprintf("%s is %s, want %s", path, inJSON(is), inJSON(want))
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value, there := of[name]
		if !there {
			return fmt.Sprintf("%s has no %q", path, name)
		}
		if why := lacking(path+"."+name, members[name], value); why != "" {
			return why
		}
	}
	return ""
}

func inJSON(v any) string {
	text, err := gate.PlainJSON(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return gate.Cut(string(text), 300)
}
