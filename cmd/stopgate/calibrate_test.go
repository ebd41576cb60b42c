package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/calibrate"
	"stopgate/gate"
)

// scriptedGemini answers as Gemini does, with the text that answer gives to a
// request; no text is a status 400.
func scriptedGemini(answer func(request string) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := answer(string(body))
		w.Header().Set("Content-Type", "application/json")
		if text == "" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"code":400,"message":"no"}}`)
			return
		}
		quoted, _ := json.Marshal(text)
		fmt.Fprintf(w, `{"candidates":[{"content":{"role":"model","parts":[{"text":%s}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":7}}`, quoted)
	}
}

const calibrateSpec = `{"name":"refunds","properties":{"hooks":{"Stop":[{"name":"refunded","type":"prompt","prompt":"Was the order refunded?"}]}}}`

// labelled is a set: of each word the first letter is the label (b: bad, g: good)
// and the whole is what the agent says.
func labelled(words ...string) string {
	var b strings.Builder
	for i, word := range words {
		label := map[byte]string{'b': "fail", 'g': "pass"}[word[0]]
		fmt.Fprintf(&b, `{"id":"run-%d","label":%q,"messages":[{"role":"user","content":"Refund it."},{"role":"assistant","content":%q}]}`+"\n", i+1, label, word)
	}
	return b.String()
}

// calibrateBy runs the command with a scripted model.
func calibrateBy(t *testing.T, ctx context.Context, set string, answer func(request string) string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	s := httptest.NewServer(scriptedGemini(answer))
	defer s.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{"set.jsonl": set, "spec.json": calibrateSpec} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	p := process{ctx: ctx, stdout: &out, stderr: &errs, getenv: func(name string) string {
		return map[string]string{"GEMINI_API_KEY": "a-key-of-no-worth", "GOOGLE_GEMINI_BASE_URL": s.URL, "HOME": dir}[name]
	}}
	code = run(p, append([]string{"calibrate", "--set", filepath.Join(dir, "set.jsonl"), "-f", filepath.Join(dir, "spec.json")}, args...))
	return code, out.String(), errs.String()
}

func decoded(t *testing.T, text string) calibration {
	t.Helper()
	var c calibration
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return c
}

// An error of the model is no rejection: it is counted apart, whatever failMode
// would make of it.
func TestCalibrateKeepsErrorsApart(t *testing.T) {
	code, out, stderr := calibrateBy(t, t.Context(), labelled("b zebra", "b okapi", "g zebra", "g okapi", "g broken"), func(request string) string {
		switch {
		case strings.Contains(request, "broken"):
			return ""
		case strings.Contains(request, "zebra"):
			return `{"ok":true,"probability":0.8}`
		}
		return `{"ok":false,"reason":"no","probability":0.1}`
	}, "--json", "--parallel", "3")
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	c := decoded(t, out)
	if want := (calibrate.Confusion{Caught: 1, Missed: 1, Wrongly: 1, Rightly: 1}); c.Report.Confusion != want || c.Report.NoVerdict.Codes[gate.ModelUnavailable] != 1 || c.Partial {
		t.Errorf("%+v", c)
	}
	if last := c.Trials[4]; last.Run != "run-5" || last.Failure == nil || last.Rejected || last.MS <= 0 {
		t.Errorf("%+v", last)
	}
}

// What the judge is asked is the same each time, and no path of the day is in it.
func TestCalibrateAsksTheSameEachTime(t *testing.T) {
	asked := map[string]int{}
	_, _, stderr := calibrateBy(t, t.Context(), labelled("g one"), func(request string) string {
		var body struct{ Contents json.RawMessage }
		if err := json.Unmarshal([]byte(request), &body); err != nil {
			t.Error(err)
		}
		_, after, _ := strings.Cut(string(body.Contents), "data-")
		asked[strings.ReplaceAll(string(body.Contents), after[:26], "")]++
		return `{"ok":true}`
	}, "--repeat", "3", "--parallel", "1")
	if len(asked) != 1 {
		t.Errorf("asked %d different things: %v %s", len(asked), asked, stderr)
	}
}

// Interrupted, it prints what there is, says so, and is no success.
func TestCalibrateInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var asked atomic.Int32
	code, out, stderr := calibrateBy(t, ctx, labelled("b one", "g one", "b two", "g two"), func(string) string {
		if asked.Add(1) == 3 {
			interrupt()
			return ""
		}
		return `{"ok":true}`
	}, "--parallel", "1")
	if code != exitInternal || !strings.Contains(stderr, "interrupted: the numbers are of 2 trials of 4") || !strings.HasPrefix(out, "PARTIAL: interrupted after 2 of 4 trials.\n") {
		t.Errorf("exit %d\n%s\n%s", code, out, stderr)
	}
	if !strings.Contains(out, "No verdict: 0 of 2 trials") {
		t.Errorf("what was cut short is counted:\n%s", out)
	}
}

func TestOpenSet(t *testing.T) {
	long := `{"id":"long","label":"pass","messages":[` + strings.Repeat(" ", maxRunLine) + "]}\n"
	good := labelled("g one", "b two", "g three")
	tests := []struct {
		name, text string
		limit      int
		skip       bool
		runs, bad  int
		says       string
	}{
		{name: "all", text: good, runs: 3},
		{name: "no line end, CRLF and empty lines", text: strings.ReplaceAll(strings.TrimSuffix(good, "\n"), "\n", "\r\n\r\n"), runs: 3},
		{name: "the first two", text: good + "{", limit: 2, runs: 2},
		{name: "a bad line", text: good + "\n{}\n", says: "set.jsonl:5: id is missing"},
		{name: "a bad line left out", text: "{\n" + good, skip: true, runs: 3, bad: 1},
		{name: "an id twice", text: good + good, says: `set.jsonl:4: id "run-1" is that of line 1, too`},
		{name: "a line too long", text: good + long, says: "set.jsonl:4: the line is longer than 32 MiB"},
		{name: "a line too long left out", text: long + good, skip: true, runs: 3, bad: 1},
		{name: "refused by the check", text: labelled("g refused"), says: "set.jsonl:1: not this one"},
		{name: "nothing", text: "\n", says: "set.jsonl holds no run"},
		{name: "nothing good", text: "x\n", skip: true, says: "set.jsonl holds no run"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "set.jsonl")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := openSet(path, "", test.limit, test.skip, func(r calibrate.Run) error {
				if strings.Contains(r.FinalOutput, "refused") {
					return errors.New("not this one")
				}
				return nil
			})
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v, want %q", err, test.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.file.Close()
			if len(s.runs) != test.runs || s.bad != test.bad {
				t.Errorf("%d runs, %d bad lines", len(s.runs), s.bad)
			}
			for i, want := range []string{"g one", "b two", "g three"}[:test.runs] {
				if r, err := s.run(s.runs[i]); err != nil || r.FinalOutput != want {
					t.Errorf("run %d: %+v %v", i, r, err)
				}
			}
		})
	}
	t.Run("a pipe", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openSet(path, "", 0, false, nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a file that changes", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "set.jsonl")
		if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := openSet(path, "", 0, false, func(calibrate.Run) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		defer s.file.Close()
		if err := os.WriteFile(path, []byte(strings.Replace(good, "run-1", "run-9", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.run(s.runs[0]); err == nil || !strings.Contains(err.Error(), "set.jsonl:1: the file has changed") {
			t.Errorf("got %v", err)
		}
	})
}

func TestStopPrompts(t *testing.T) {
	hook := func(name string, event gate.EventName, kind gate.HookType) gate.Hook {
		return gate.Hook{Name: name, Event: event, Type: kind, Model: "fast", Models: []string{"a", "b"}, Activation: gate.OnDemand}
	}
	agent := func(name string, hooks ...gate.Hook) *gate.Spec {
		return &gate.Spec{Kind: gate.AgentSpec, Name: name, Hooks: hooks}
	}
	one := agent("one", hook("x", gate.Stop, gate.PromptHook), hook("script", gate.Stop, gate.CommandHook), hook("tool", gate.PostToolUse, gate.PromptHook), hook("y", gate.Stop, gate.PromptHook))
	global := &gate.Spec{Kind: gate.HookSpec, Name: "g", Hooks: []gate.Hook{hook("g", gate.Stop, gate.PromptHook)}}
	tests := []struct {
		name  string
		specs []*gate.Spec
		hook  string
		agent string
		hooks []string
		says  string
	}{
		{name: "an agent and everybody's", specs: []*gate.Spec{global, one}, agent: "one", hooks: []string{"g", "x", "y"}},
		{name: "one of them", specs: []*gate.Spec{global, one}, hook: "y", agent: "one", hooks: []string{"y"}},
		{name: "everybody's only", specs: []*gate.Spec{global, one}, hook: "g", agent: "default", hooks: []string{"g"}},
		{name: "none of that name", specs: []*gate.Spec{global, one}, hook: "script", says: `no prompt hook on Stop is called "script"; there are: "g", "x", "y"`},
		{name: "none", specs: []*gate.Spec{agent("no", hook("script", gate.Stop, gate.CommandHook))}, says: "no prompt hook on Stop"},
		{name: "two agents", specs: []*gate.Spec{one, agent("two", hook("z", gate.Stop, gate.PromptHook))}, says: `several agents ("one", "two")`},
		{name: "two agents, one hook", specs: []*gate.Spec{one, agent("two", hook("z", gate.Stop, gate.PromptHook))}, hook: "z", agent: "two", hooks: []string{"z"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h, err := stopPrompts(test.specs, test.hook, "strong")
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v, want %q", err, test.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, k := range h.hooks {
				names = append(names, k.Name)
				if k.Voter(0) != "strong" || k.Voter(1) != "strong" {
					t.Errorf("%+v", k)
				}
			}
			if diff := cmp.Diff(test.hooks, names); diff != "" || h.agent != test.agent {
				t.Errorf("agent %q, hooks %s", h.agent, diff)
			}
		})
	}
	if one.Hooks[0].Model != "fast" || len(one.Hooks) != 4 {
		t.Error("the spec itself was changed")
	}
}
