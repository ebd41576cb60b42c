package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
	"stopgate/internal/contract"
)

// axEntry is a hooks.json with one entry.
func axEntry(members string) string { return `{"hooks":[{` + members + `}]}` }

// described are the hooks in a few words each.
func described(hooks []gate.Hook) (all []string) {
	for _, h := range hooks {
		all = append(all, fmt.Sprintf("%s %s %s %q", h.Name, h.Type, h.Event, h.Matcher))
	}
	return all
}

func lines(findings []gate.Finding) (all []string) {
	for _, f := range findings {
		all = append(all, f.String())
	}
	return all
}

func TestAXCode02OneInvalidEntryDropsTheFile(t *testing.T) {
	many := func(item string, n int) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	const good = `{"event":"Stop","command":"true"}`
	for _, tt := range []struct{ name, text, want string }{
		{"the root", `[]`, "1:1: error: AX Code ignores this whole file, because the file is a list, want an object"},
		{"hooks", `{"hooks":{}}`, "1:10: error: hooks: AX Code ignores this whole file, because hooks is an object, want a list"},
		{"hooks null", `{"hooks":null}`, "hooks is null, want a list"},
		{"an entry", "{\"hooks\":[\n " + good + ",\n \"x\"]}", `3:2: error: hooks[1]: AX Code ignores this whole file, because hooks[1] is the text "x", want an object`},
		{"101 entries", `{"hooks":[` + many(good, 101) + `]}`, "hooks has 101 entries, and at most 100 are legal"},
		{"100 entries", `{"hooks":[` + many(good, 100) + `]}`, ""},
		{"packs", `{"packs":"block-force-push"}`, `packs is the text "block-force-push", want a list`},
		{"a pack", `{"packs":["block-force-push",7]}`, "packs[1] is the number 7, want text of 1…500 characters"},
		{"an empty pack", `{"packs":[""]}`, "packs[0] has 0 characters, want 1…500"},
		{"a pack of 501", `{"packs":["` + strings.Repeat("é", 501) + `"]}`, "packs[0] has 501 characters"},
		{"a pack of 500", `{"packs":["` + strings.Repeat("é", 500) + `"]}`, "warning: packs[0]: AX Code ignores the pack"},
		{"101 packs", `{"packs":[` + many(`"a"`, 101) + `]}`, "packs has 101 entries"},
		{"nothing", `{}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) { axReads(t, tt.text, tt.want) })
	}
}

func TestAXCode03Entry(t *testing.T) {
	for _, tt := range []struct{ name, members, want string }{
		{"least", `"event":"PreToolUse","command":"true"`, ""},
		{"no event", `"command":"true"`, "hooks[0] has no event"},
		{"no command", `"event":"Stop"`, "hooks[0] has no command"},
		{"an unknown event", `"event":"BeforeTool","command":"true"`, `hooks[0].event is the text "BeforeTool", want one of PreToolUse`},
		{"the gate's own name is none of theirs", `"event":"Start","command":"true"`, "hooks[0].event is"},
		{"a misspelt event", `"event":"preToolUse","command":"true"`, `did you mean "PreToolUse"?`},
		{"event null", `"event":null,"command":"true"`, "hooks[0].event is null"},
		{"an empty command", `"event":"Stop","command":""`, "hooks[0].command has 0 characters, want 1…100000"},
		{"a command of 100,001", `"event":"Stop","command":"` + strings.Repeat("é", 100_001) + `"`, "hooks[0].command has 100001 characters"},
		{"a command of 100,000", `"event":"Stop","command":"` + strings.Repeat("é", 100_000) + `"`, ""},
		{"a matcher of 501", `"event":"PreToolUse","command":"true","matcher":"` + strings.Repeat("é", 501) + `"`, "hooks[0].matcher has 501 characters"},
		{"a matcher of 500", `"event":"PreToolUse","command":"true","matcher":"` + strings.Repeat("é", 500) + `"`, ""},
		{"an empty matcher", `"event":"Stop","command":"true","matcher":""`, ""},
		{"matcher null", `"event":"Stop","command":"true","matcher":null`, "hooks[0].matcher is null"},
		{"blockOnFailure", `"event":"PreToolUse","command":"true","blockOnFailure":"true"`, `hooks[0].blockOnFailure is the text "true", want true or false`},
		{"protocol", `"event":"PreToolUse","command":"true","protocol":"codex"`, `hooks[0].protocol is the text "codex", want "claude-code"`},
		{"pack", `"event":"PreToolUse","command":"true","pack":1`, "hooks[0].pack is the number 1, want text"},
		{"an unknown key is dropped", `"event":"PreToolUse","command":"true","timeout":5`, `warning: hooks[0].timeout: AX Code drops "timeout", which it does not know`},
		{"a misspelt key is dropped", `"event":"PreToolUse","command":"true","match":"bash"`, `did you mean "matcher"?`},
	} {
		t.Run(tt.name, func(t *testing.T) { axReads(t, axEntry(tt.members), tt.want) })
	}
	t.Run("an unknown key of the file", func(t *testing.T) {
		axReads(t, `{"pack":["block-force-push"]}`, `AX Code drops "pack", which it does not know; did you mean "packs"?`)
	})
	t.Run("an unknown pack", func(t *testing.T) {
		axReads(t, `{"packs":["block-force-pushes"]}`, `AX Code ignores the pack "block-force-pushes", which is none of its own; did you mean "block-force-push"?`)
	})
}

// axReads holds a text to its one finding, empty for none; with an error nothing
// is loaded.
func axReads(t *testing.T, text, want string) {
	t.Helper()
	spec, findings := ReadAttached(gate.AXCode, "a", []byte(text))
	switch {
	case want == "" && len(findings) > 0, want != "" && len(findings) != 1:
		t.Fatalf("findings %q, want %q", lines(findings), want)
	case want != "" && !strings.Contains(findings[0].String(), want):
		t.Errorf("finding %q\nwant    %q", findings[0], want)
	}
	if (spec == nil) != gate.HasErrors(findings) {
		t.Errorf("spec %v beside %q", spec, lines(findings))
	}
	for _, f := range findings {
		if f.Severity == gate.SeverityError && !strings.HasPrefix(f.Message, "AX Code ignores this whole file, because ") {
			t.Errorf("%q does not say what AX Code does", f)
		}
	}
}

func TestAXCode03WhatHasNoEffectIsSaid(t *testing.T) {
	for _, tt := range []struct{ name, members, want string }{
		{"6: a matcher without a tool", `"event":"Stop","command":"true","matcher":"bash"`, "AX Code never runs this hook: Stop has no tool"},
		{"6: star without a tool", `"event":"Stop","command":"true","matcher":"*"`, ""},
		{"5: a regular expression", `"event":"PreToolUse","command":"true","matcher":"^(bash|edit)$"`, "no regular expressions"},
		{"5: letter case", `"event":"PreToolUse","command":"true","matcher":"edit|Bash"`, `matcher "Bash" matches nothing, since AX Code compares names letter by letter, and has no regular expressions: did you mean "bash"?`},
		{"5: slashes", `"event":"PreToolUse","command":"true","matcher":"/bash/"`, `did you mean "bash"?`},
		{"5: a beginning", `"event":"PreToolUse","command":"true","matcher":"Web*"`, ""},
		{"5: a tool of a server", `"event":"PreToolUse","command":"true","matcher":"mcp__X"`, ""},
		{"5: a wildcard of one", `"event":"PreToolUse","command":"true","matcher":"mcp__.*"`, "no regular expressions"},
		{"5: a prefix", `"event":"PreToolUse","command":"true","matcher":"mcp__*"`, ""},
		{"12: blockOnFailure beside protocol", `"event":"PreToolUse","command":"true","protocol":"claude-code","blockOnFailure":true`, "no effect in AX Code beside protocol"},
		{"11: blockOnFailure on Stop", `"event":"Stop","command":"true","blockOnFailure":true`, "no effect in AX Code on Stop"},
		{"17: protocol on Stop", `"event":"Stop","command":"true","protocol":"claude-code"`, "AX Code reads no answer on Stop"},
		{"18: protocol on PostToolUse", `"event":"PostToolUse","command":"true","protocol":"claude-code"`, ""},
		{"11: an answer that is not read", `"event":"PreToolUse","command":"echo no >&2; exit 2"`, `reads no answer without "protocol"`},
	} {
		t.Run(tt.name, func(t *testing.T) { axReads(t, axEntry(tt.members), tt.want) })
	}
}

func TestAXCode03Hook(t *testing.T) {
	spec, findings := ReadAttached(gate.AXCode, "a", []byte(axEntry(`"event":"SessionStart","command":"date","pack":"mine","protocol":"claude-code"`)))
	if spec == nil {
		t.Fatal(lines(findings))
	}
	h := spec.Hooks[0]
	if h.Event != gate.Start || h.Pack != "mine" || h.Command != "date" || !h.ReadsAnswer || h.Dialect != gate.AXCode || h.Level != gate.CustomLevel ||
		h.Timeout != 30*time.Second || h.FailMode != gate.FailAllow || !h.Matcher.Match("") {
		t.Errorf("hook is %+v", h)
	}
	if spec.Kind != gate.Attached(gate.AXCode) || spec.Name != "a" {
		t.Errorf("spec is %s %q", spec.Kind, spec.Name)
	}
}

// A hook that blocks on failure blocks too where it cannot even be started.
func TestAXCode09And11BlockOnFailureFailsClosed(t *testing.T) {
	for _, tt := range []struct {
		name, members string
		want          gate.FailMode
	}{
		{"PreToolUse", `"event":"PreToolUse","command":"c","blockOnFailure":true`, gate.FailBlock},
		{"UserPromptSubmit", `"blockOnFailure":true,"event":"UserPromptSubmit","command":"c"`, gate.FailBlock},
		{"false", `"event":"PreToolUse","command":"c","blockOnFailure":false`, gate.FailAllow},
		{"beside protocol", `"event":"PreToolUse","command":"c","blockOnFailure":true,"protocol":"claude-code"`, gate.FailAllow},
		{"on Stop", `"event":"Stop","command":"c","blockOnFailure":true`, gate.FailAllow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec, _ := ReadAttached(gate.AXCode, "a", []byte(axEntry(tt.members)))
			if got := spec.Hooks[0].FailMode; got != tt.want {
				t.Errorf("failMode %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAXCode04PacksComeFirst(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(contract.Dir(t, "spec/examples/ax-code"), ".ax-code", "hooks.json"))
	if err != nil {
		t.Fatal(err)
	}
	spec, findings := ReadAttached(gate.AXCode, "a", data)
	if len(findings) > 0 {
		t.Errorf("findings %q", lines(findings))
	}
	want := []string{
		`packs[0].format-after-edit rule PostToolUse "edit|write|multiedit|apply_patch"`,
		`packs[1].block-force-push rule PreToolUse "bash"`,
		`packs[2].require-tests-on-stop rule Stop ""`,
		`packs[3].protect-env-files rule PreToolUse "read|edit|write|bash"`,
		`packs[4].log-bash-commands rule PreToolUse "bash"`,
		`hooks[0].PreToolUse command PreToolUse "bash"`,
		`hooks[1].PreToolUse command PreToolUse "bash"`,
	}
	if diff := cmp.Diff(want, described(spec.Hooks)); diff != "" {
		t.Error(diff)
	}
	if string(spec.Document) != string(data) {
		t.Error("the document is not what was given")
	}
	reversed, _ := ReadAttached(gate.AXCode, "a", []byte(`{"hooks":[{"event":"Stop","command":"c"}],"packs":["log-bash-commands"]}`))
	if got := described(reversed.Hooks); len(got) != 2 || !strings.HasPrefix(got[0], "packs[0]") {
		t.Errorf("got %q", got)
	}
}
