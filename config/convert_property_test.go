package config

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
	"stopgate/internal/contract"
)

// testTools are tools of each kind: alike in two systems, one here and several
// there, two here and one there, known in one alone.
var testTools = []Tool{
	tool([]string{"Bash"}, []string{"bash"}, "code_execution"),
	tool([]string{"Read"}, []string{"read"}, "read_file"),
	tool([]string{"Write"}, []string{"write", "apply_patch"}, "write_file"),
	tool([]string{"Edit", "MultiEdit"}, []string{"edit", "multiedit", "apply_patch"}, "write_file"),
	tool([]string{"Glob"}, []string{"glob", "list"}, "list_files"),
	tool([]string{"WebFetch"}, []string{"webfetch"}),
	tool([]string{"WebSearch"}, []string{"websearch"}),
	tool([]string{"NotebookEdit"}, nil),
	tool(nil, nil, "delete_file"),
}

func tool(canonical, axCode []string, antigravity ...string) Tool {
	return Tool{gate.Azure: canonical, gate.ClaudeCode: canonical, gate.AXCode: axCode, gate.Antigravity: antigravity}
}

// fileName is a name by which a dialect's own file is read.
func fileName(d gate.Dialect) string {
	if d == gate.Azure {
		return "agent.yaml"
	}
	return "hooks.json"
}

// reread is the hooks of a file that was written, by its own reader.
func reread(t *testing.T, d gate.Dialect, document []byte) []gate.Hook {
	t.Helper()
	specs, list := ReadHooks(d, fileName(d), document)
	if gate.HasErrors(list) || len(specs) != 1 {
		t.Fatalf("%d specs, findings:\n%s\nof:\n%s", len(specs), textOf(list), document)
	}
	if d != gate.ClaudeCode {
		return specs[0].Hooks
	}
	docs, err := readDocuments(document, true, &findings{})
	if err != nil {
		t.Fatal(err)
	}
	return readClaudeCodeEvents(docs[0], &findings{}, claudeCodeMoments()) // the gate's own reader leaves three events out
}

// unlikeHooks says how hooks that were read differ from those that were meant:
// azure's stand by event in the file.
func unlikeHooks(want, got []gate.Hook) string {
	var texts [2][]string
	for i, hooks := range [][]gate.Hook{want, got} {
		for _, h := range hooks {
			texts[i] = append(texts[i], fmt.Sprintf("%s %s %s %q timeout=%s fail=%s prompt=%q model=%q command=%q script=%q args=%q url=%q headers=%q answers=%t blocks=%t ends=%t",
				h.Dialect, h.Event, h.Type, h.Matcher, h.Timeout, h.FailMode, h.Prompt, h.Model, h.Command, h.Script, h.Args, h.URL, h.Headers, h.ReadsAnswer, h.BlockOnFailure, h.EndsTurn))
		}
		slices.SortStableFunc(texts[i], func(a, b string) int {
			return strings.Compare(strings.Fields(a)[1], strings.Fields(b)[1]) // the order within an event is kept
		})
	}
	return cmp.Diff(texts[0], texts[1])
}

// convertChecked converts what can be, and holds that what was written is read
// as it was meant.
func convertChecked(t *testing.T, c Conversion, name string, data []byte) ([]byte, []gate.Finding) {
	t.Helper()
	c.Tools, c.Partial = testTools, true
	f := &findings{}
	hooks, readable := c.read(name, data, f)
	if !readable {
		t.Fatalf("%s cannot be read:\n%s\n%s", name, textOf(f.list), data)
	}
	meant, _ := c.convert(hooks, f)
	document, report := c.Convert(name, data)
	if len(meant) == 0 {
		if document != nil {
			t.Errorf("written without a hook:\n%s", document)
		}
		return nil, report
	}
	for i := range meant {
		if meant[i].Model == "" && c.To == gate.Azure {
			meant[i].Model = gate.DefaultModel
		}
		if c.To == gate.Azure && meant[i].Type == gate.CommandHook {
			meant[i].Model = gate.DefaultModel
		}
	}
	if diff := unlikeHooks(meant, reread(t, c.To, document)); diff != "" {
		t.Errorf("%s to %s (-meant +read):\n%s\n%s", c.From, c.To, diff, document)
	}
	strict := c
	strict.Partial = false
	if whole, _ := strict.Convert(name, data); (whole == nil) != gate.HasErrors(report) {
		t.Errorf("written without --partial: %v, with a report of\n%s", whole != nil, textOf(report))
	}
	return document, report
}

func TestConvertExamples(t *testing.T) {
	roots := []string{examples}
	if dir, wanted := contract.Find("spec/examples"); wanted {
		roots = append(roots, dir)
	}
	converted := 0
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !specExtension(filepath.Ext(path)) || filepath.Base(path) == "network.json" {
				return err
			}
			if IsTestFile(path) {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			from, err := DialectOf(path, data)
			if err != nil {
				return err
			}
			for _, to := range gate.Dialects {
				if to != from {
					if document, _ := convertChecked(t, Conversion{From: from, To: to}, path, data); document != nil {
						converted++
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if converted < 15 {
		t.Errorf("only %d examples became anything", converted)
	}
}

// generated is a hook as somebody could have written it.
func generated(r *rand.Rand, d gate.Dialect) gate.Hook {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	h := gate.Hook{Dialect: d, Type: gate.CommandHook, FailMode: gate.FailAllow, Timeout: time.Duration(1+r.IntN(700)) * time.Second}
	events := eventsOf(d)
	h.Event = events[r.IntN(len(events))]
	pattern := map[gate.Dialect]func() string{
		gate.Azure: func() string {
			return one("*", "Bash", "Edit|Write", "Notebook.*", "(Web.*|Bash)", "mcp__a__.*", "[BR].*", "Bash, Read")
		},
		gate.Antigravity: func() string {
			return one("*", "code_execution", "read_file|write_file", ".*_file", "delete_file", "list_files|code_.*")
		},
		gate.AXCode: func() string { return one("", "bash", "edit | write", "web*", "apply_patch", "mcp_*|bash", "my.tool") },
		gate.ClaudeCode: func() string {
			return one("", "Bash", "Edit, Write", "Notebook", "^Bash$", "^(?:Web.*|Bash)$", "mcp__a__.*", "Edit.*|Bash")
		},
	}[d]()
	if h.Event.ForTool() {
		h.Matcher, _ = compileMatcher(d, pattern)
	}
	h.Command = one("x", "./gate.sh --now", "a\n# b", "echo 'it''s'; exit 2", "cat <<E\n$x\nE", "bash -c 'exit 1'", "bash -c '\n\ttrue\n'", "python3 -c '#!/usr/bin/env python3\nprint(1)'", "python3 -I -c '#!/usr/bin/env python3\nprint(1)'",
		"printf \u00e9\u2028", "case x in x) exit 3;; esac", "( true ) || exit 1", "not 'bash")
	if r.IntN(2) == 0 {
		var b strings.Builder
		b.WriteString("x")
		for range r.IntN(12) {
			b.WriteString(one("\n", "\t", " ", "'", "\"", "\\", "$", "(", ")", "#", ":", "- ", "\r", "\u0085", "\u2028", "\x01", "\x7f", "{", "|", "&", "é", "\U0001F600", "!", "%", "---", "\ufeff", "\u00a0"))
		}
		h.Command = b.String()
	}
	switch kind := r.IntN(4); {
	case d == gate.AXCode:
		h.Timeout = gate.DefaultTimeout
		h.ReadsAnswer, h.BlockOnFailure = r.IntN(2) == 0, r.IntN(2) == 0
		if h.BlockOnFailure && !h.ReadsAnswer && gate.AXCodeBlocks(h.Event) {
			h.FailMode = gate.FailBlock
		}
	case d == gate.Azure && r.IntN(3) == 0:
		h.FailMode = gate.FailBlock
		fallthrough
	case d == gate.Azure || d == gate.ClaudeCode && h.Event != gate.Start:
		if kind == 0 {
			h.Type, h.Command, h.Prompt = gate.PromptHook, "", one(h.Command, "Done? $ARGUMENTS", " two\nlines \n", "Done\u2028?")
			h.Model = one(gate.DefaultModel, "Reasoning", "opus", "own")
			break
		}
		fallthrough
	case d == gate.Antigravity:
		if kind == 1 && d != gate.Azure && h.Event != gate.Start {
			h.Type, h.Command, h.URL = gate.HTTPHook, "", "https://a.example/x"
			if d == gate.Antigravity {
				h.URL = one(h.URL, "https://a.example/$y")
			}
			h.Headers = [][]gate.Header{nil, {{Name: "X-A", Value: "b"}}, {{Name: "X-A", Value: "$B"}}}[r.IntN(3)]
		} else if d == gate.Azure && kind == 2 {
			h.Command, h.Script = "", one(h.Command, "#!/bin/bash\n"+h.Command, "#!/usr/bin/env python3\n"+h.Command, "#!/bin/bash\nexit 2\n", "echo \"it's\"\n\ttrue", "#!/usr/bin/env python3\nprint('a\\\\n')\n", " x ")
		}
	}
	return h
}

func TestConvertGenerated(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 7)) // the same every time
	for range 400 {
		from, to := gate.Dialects[r.IntN(4)], gate.Dialects[r.IntN(4)]
		if from == to {
			continue
		}
		var hooks []gate.Hook
		for range 1 + r.IntN(5) {
			hooks = append(hooks, generated(r, from))
		}
		convertChecked(t, Conversion{From: from, To: to}, fileName(from), Conversion{To: from}.write(hooks))
		if t.Failed() {
			return
		}
	}
}

// meaning is what a hook does, however it is written; a part of which a warning
// says that it differs is left out.
type meaning struct {
	event                    gate.EventName
	kind                     gate.HookType
	law                      law
	failMode                 gate.FailMode
	line, prompt, model, url string
	headers                  []gate.Header
	timeout                  time.Duration
	tools                    string
}

func meaningOf(h gate.Hook, differs func(about string) bool) meaning {
	line, l := unwrapped(&declared{Hook: h})
	switch {
	case h.Type != gate.CommandHook:
		l = watches
	case h.Script != "":
		line = scriptLine(h.Script)
	case h.Args != nil:
		line = argsLine(h.Command, h.Args)
	}
	m := meaning{h.Event, h.Type, l, h.FailMode, line, h.Prompt, h.Model, h.URL, h.Headers, h.Timeout, ""}
	for _, name := range append((&converter{Conversion: Conversion{Tools: testTools}}).namesOf(h.Dialect), "mcp__a__b", "mcp_a", "my.tool", "myXtool", "other") {
		if h.Event.ForTool() && h.Matcher.Match(name) {
			m.tools += name + " "
		}
	}
	if differs("matcher") {
		m.tools = ""
	}
	if differs("timeout") {
		m.timeout = 0
	}
	if differs("failure") || differs("effect") {
		m.law, m.failMode = watches, ""
	}
	if differs("model") {
		m.model = ""
	}
	if differs("event") {
		m.event = ""
	}
	if differs("reason") && h.Event != gate.Stop {
		m.line = ""
	}
	return m
}

// There and back again is what it was, where no warning has said otherwise.
func TestConvertThereAndBack(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 13))
	back := map[string]int{}
	for range 4000 {
		from, to := gate.Dialects[r.IntN(4)], gate.Dialects[r.IntN(4)]
		if from == to {
			continue
		}
		source := Conversion{To: from}.write([]gate.Hook{generated(r, from)})
		there, first := Conversion{From: from, To: to, Tools: testTools}.Convert(fileName(from), source)
		if there == nil {
			continue
		}
		again, second := Conversion{From: to, To: from, Tools: testTools}.Convert(fileName(to), there)
		if again == nil {
			continue
		}
		differs := func(about string) bool {
			return slices.ContainsFunc(append(slices.Clone(first), second...), func(f gate.Finding) bool {
				return strings.HasPrefix(f.Message, about+":") || strings.HasPrefix(f.Message, about+" \"")
			})
		}
		want, got := reread(t, from, source), reread(t, from, again)
		if len(want) != 1 || len(got) != 1 && !differs("event") {
			t.Fatalf("%d hooks became %d:\n%s\n%s\n%s", len(want), len(got), source, there, again)
		}
		back[string(from)+" "+string(to)]++
		if diff := cmp.Diff(meaningOf(want[0], differs), meaningOf(got[0], differs), cmp.AllowUnexported(meaning{})); diff != "" {
			t.Fatalf("%s by way of %s:\n%s\n%s\n%s\n%s\n%s%s", from, to, diff, source, there, again, textOf(first), textOf(second))
		}
	}
	for _, from := range gate.Dialects {
		for _, to := range gate.Dialects {
			if from != to && back[string(from)+" "+string(to)] < 3 {
				t.Errorf("from %s to %s and back only %d times", from, to, back[string(from)+" "+string(to)])
			}
		}
	}
}

// Whatever a file holds, what is written of it is read without an error.
func FuzzConvert(f *testing.F) {
	r := rand.New(rand.NewPCG(17, 19))
	for i, d := range gate.Dialects {
		f.Add(i, (i+1)%4, string(Conversion{To: d}.write([]gate.Hook{generated(r, d), generated(r, d)})))
	}
	f.Add(3, 2, claudeHook("PreToolUse", `"matcher":"^(Bash|mcp__.*)$",`, `{"type":"command","command":"a=b","args":["${CLAUDE_PROJECT_DIR}"],"if":"Bash","timeout":0.1}`))
	f.Add(2, 0, `{"packs":["block-force-push"],"hooks":[{"event":"PreToolUse","matcher":"a.b*|*|| c","command":"(","blockOnFailure":true}]}`)
	f.Fuzz(func(t *testing.T, from, to int, text string) {
		c := Conversion{From: gate.Dialects[uint(from)%4], To: gate.Dialects[uint(to)%4], Tools: testTools, Partial: true}
		if c.From == c.To {
			return
		}
		document, report := c.Convert(fileName(c.From), []byte(text))
		if document != nil {
			reread(t, c.To, document)
		} else if !gate.HasErrors(report) {
			t.Errorf("nothing is written, for no reason:\n%s", textOf(report))
		}
	})
}
