package config

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// text is a JSON string.
func text(s string) string { return string(appendText(nil, s)) }

// script is a JSON agent whose Stop hook runs a script under failMode block.
func scriptHook(script string) string {
	return stopHook(`"type":"command","failMode":"block","script":` + text(script))
}

func TestAzure14Defaults(t *testing.T) {
	spec, _ := accepted(t, asJSON, stopHook(`"prompt":"p"`))
	h := spec.Hooks[0]
	if h.Type != gate.PromptHook || h.Timeout != 30*time.Second || h.FailMode != gate.FailAllow || h.Model != "ReasoningFast" {
		t.Errorf("hook is %+v", h)
	}
	if h.MaxRejections != 0 || h.Activation != "" {
		t.Errorf("what was not set is set: %+v", h)
	}
	if want := `"hooks":{"Stop":[{"prompt":"p"}]}`; !strings.Contains(string(spec.Document), want) {
		t.Errorf("defaults were written into %s", spec.Document)
	}
	nulls, warnings := accepted(t, asJSON, stopHook(`"prompt":"p","type":null,"timeout":null,"failMode":null,"model":null,"maxRejections":null,"matcher":null`))
	if n := nulls.Hooks[0]; n.Timeout != h.Timeout || n.FailMode != h.FailMode || n.Model != h.Model || n.Type != h.Type || warnings != "" {
		t.Errorf("null is not like absent: %+v, warnings %q", n, warnings)
	}
}

func TestAzure15Timeout(t *testing.T) {
	runBodies(t, []bodyCase{
		{"least", stopHook(`"prompt":"p","timeout":1`), false, ""},
		{"longest without a warning", stopHook(`"prompt":"p","timeout":300`), false, ""},
		{"fault G36: longer", stopHook(`"prompt":"p","timeout":301`), false, "warning: properties.hooks.Stop[0].timeout: timeout of 301 s"},
		{"a whole number with a fraction part", stopHook(`"prompt":"p","timeout":30.0`), false, ""},
		{"zero", stopHook(`"prompt":"p","timeout":0`), true, "timeout is 0, want a whole number of 1 or more (seconds)"},
		{"negative", stopHook(`"prompt":"p","timeout":-5`), true, "timeout is -5"},
		{"fraction", stopHook(`"prompt":"p","timeout":1.5`), true, "timeout is 1.5"},
		{"text", stopHook(`"prompt":"p","timeout":"30"`), true, `timeout is the text "30", want a whole number of 1 or more (seconds) without quotes`},
		{"beyond any number", stopHook(`"prompt":"p","timeout":1e999`), true, "timeout is 1e999"},
		{"fault gx-030: milliseconds", stopHook(`"prompt":"p","timeout":30000`), false, "the unit is seconds, not milliseconds"},
	})
	spec, _ := accepted(t, asJSON, stopHook(`"prompt":"p","timeout":999999999`))
	if got := spec.Hooks[0].Timeout; got != maxTimeout {
		t.Errorf("a very long time-out is %v", got)
	}
}

func TestAzure16MaxRejections(t *testing.T) {
	for n := -1; n <= 27; n++ {
		body := stopHook(`"prompt":"p","maxRejections":` + strconv.Itoa(n))
		spec, warnings, err := ReadSpec(asJSON, []byte(body))
		if legal := n >= 1 && n <= 25; (err == nil) != legal || legal && (spec.Hooks[0].MaxRejections != n || len(warnings) != 0) {
			t.Errorf("maxRejections %d: error %v, warnings %v", n, err, warnings)
		}
	}
	runBodies(t, []bodyCase{
		{"names the bounds", stopHook(`"prompt":"p","maxRejections":26`), true, "maxRejections is 26, want a whole number 1…25"},
		{"command hook", stopHook(`"type":"command","command":"true","maxRejections":3`), false, "maxRejections has no effect here"},
		{"prompt hook on a tool event", agentWith(`{"PostToolUse":[{"prompt":"p","matcher":"*","maxRejections":3}]}`), false, "maxRejections has no effect here"},
	})
}

func TestAzure17FailMode(t *testing.T) {
	for given, want := range map[string]gate.FailMode{"allow": gate.FailAllow, "Allow": gate.FailAllow, "BLOCK": gate.FailBlock, "bLoCk": gate.FailBlock} {
		spec, _ := accepted(t, asJSON, stopHook(`"prompt":"p","failMode":"`+given+`"`))
		if spec.Hooks[0].FailMode != want || !strings.Contains(string(spec.Document), `"failMode":"`+string(want)+`"`) {
			t.Errorf("%s is read as %s and stored as %s", given, spec.Hooks[0].FailMode, spec.Document)
		}
	}
	runBodies(t, []bodyCase{
		{"another word", stopHook(`"prompt":"p","failMode":"deny"`), true, `failMode is "deny", want one of allow, block`},
		{"misspelt", stopHook(`"prompt":"p","failMode":"blok"`), true, `did you mean "block"?`},
		{"a flag", stopHook(`"prompt":"p","failMode":true`), true, "failMode is true, want one of allow, block"},
	})
}

func TestAzure18WhatEachTypeNeeds(t *testing.T) {
	runBodies(t, []bodyCase{
		{"prompt hook without prompt", stopHook(`"type":"prompt"`), true, "prompt is missing"},
		{"prompt hook with a blank prompt", stopHook(`"prompt":" \n"`), true, "prompt is missing"},
		{"script without type", stopHook(`"script":"true"`), true, "needs type: command"},
		{"both", stopHook(`"type":"command","command":"true","script":"true"`), true, "hook has both command and script"},
		{"neither", stopHook(`"type":"command"`), true, "hook has neither command nor script"},
		{"both blank", stopHook(`"type":"command","command":"","script":" "`), true, "hook has neither command nor script"},
		{"one of them empty", stopHook(`"type":"command","command":"","script":"true"`), false, ""},
		{"wrong type is said once", stopHook(`"type":"command","command":["ls"]`), true, "command is a list, want text\n"},
		{"prompt on a command hook", stopHook(`"type":"command","command":"true","prompt":"p"`), false, "prompt has no effect"},
		{"command on a prompt hook", stopHook(`"prompt":"p","command":"true"`), false, "command has no effect"},
		{"fault G14: a prompt hook needs no command", stopHook(`"type":"prompt","prompt":"p"`), false, ""},
		{"NUL", stopHook(`"type":"command","command":"a\u0000b"`), true, "NUL"},
		{"fault gx-035: a matcher group of another system", agentWith(`{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"x"}]}]}`), true, "list each hook itself"},
	})
}

func TestAzure19ScriptSize(t *testing.T) {
	fits := "#" + strings.Repeat("é", 32767) + "x" // 65,536 bytes, 32,769 characters
	runBodies(t, []bodyCase{
		{"65,536 bytes", scriptHook(fits), false, ""},
		{"65,537 bytes", scriptHook(fits + "y"), true, "script is 65537 bytes long, want at most 65536"},
	})
}

func TestAzure20Shebang(t *testing.T) {
	const refusal = "is not supported, want #!/bin/bash or #!/usr/bin/env python3, or none for bash"
	runBodies(t, []bodyCase{
		{"bash", scriptHook("#!/bin/bash\ntrue"), false, ""},
		{"python", scriptHook("#!/usr/bin/env python3\nimport sys"), false, ""},
		{"none", scriptHook("true"), false, ""},
		{"sh", scriptHook("#!/bin/sh\ntrue"), true, refusal},
		{"bash with an option", scriptHook("#!/bin/bash -e\ntrue"), true, refusal},
		{"bash by env", scriptHook("#!/usr/bin/env bash\ntrue"), true, refusal},
		{"python by path", scriptHook("#!/usr/bin/python3\n1"), true, refusal},
		{"longer word", scriptHook("#!/bin/bashful\n"), true, refusal},
		{"Windows line ends", scriptHook("#!/bin/bash\r\ntrue\r\n"), true, "Unix line ends"},
		{"Windows line ends without one", scriptHook("true\r\ntrue\r\n"), false, "script has Windows line ends"},
		{"not at the start", scriptHook("\n#!/usr/bin/env python3\nimport sys"), false, "shebang is not at the very start"},
		{"bash that bash cannot read", scriptHook("#!/bin/bash\nif true; then\n  exit 2\n"), false, "script is not valid bash, in its line 2"},
		{"a test that bash reads as a syntax error and allows", scriptHook("if [[ x == y ]; then exit 2; fi"), false, "script is not valid bash"},
		{"all that bash can", scriptHook("set -e\nx=(a b)\n[[ ${x[0]} =~ ^a$ ]] && cat <<< \"$(jq -r .a <(echo '{}'))\"\nfor ((i=0;i<3;i++)); do :; done\ncoproc cat\nexit 0"), false, ""},
		{"a command that bash cannot read", stopHook(`"type":"command","command":"if true; then exit 2"`), false, "Stop[0].command: command is not valid bash, in its line 1"},
		{"a command of several lines that it can", stopHook(`"type":"command","command":"jq -e '.a | length' >/dev/null ||\n{ echo no >&2; exit 2; }"`), false, ""},
		{"more brackets than are read", scriptHook(strings.Repeat("(", maxBrackets+1)), false, ""},
		{"a command beside its file", stopHook(`"type":"command","command":" ./check.sh --all"`), false, "Stop[0].command: command is looked for in the agent's working directory"},
		{"a command above its file", stopHook(`"type":"command","command":"../check.sh"`), false, "never beside this file"},
		{"a command that only names a file there", stopHook(`"type":"command","command":"/opt/check ./x"`), false, ""},
		{"Python without one", scriptHook("import sys, json\n"), false, "looks like Python"},
	})
}

func TestFaultExit05ExitOneDoesNotBlock(t *testing.T) {
	open := func(script string) string { return stopHook(`"type":"command","script":` + text(script)) }
	const want = "exit 2 blocks"
	runBodies(t, []bodyCase{
		{"fault exit-05: bash", open("grep -q x || { echo no >&2; exit 1; }"), false, want},
		{"fault exit-05: python", open("#!/usr/bin/env python3\nimport sys\nsys.exit(1)\n"), false, want},
		{"fault exit-05: a command", stopHook(`"type":"command","command":"grep -q x || exit 1"`), false, "command can exit with 1"},
		{"exit 2", open("grep -q x || { echo no >&2; exit 2; }"), false, ""},
		{"another number", open("exit 13"), false, ""},
		{"under failMode block it blocks", scriptHook("exit 1"), false, ""},
	})
}

func TestAzure21ToolMatcherRequired(t *testing.T) {
	for _, event := range []string{"PostToolUse", "PreToolUse"} {
		want := "Tool matcher is required for " + event + " hooks"
		for _, matcher := range []string{``, `,"matcher":""`, `,"matcher":null`} {
			spec, warnings := accepted(t, asJSON, agentWith(`{"`+event+`":[{"prompt":"p"`+matcher+`}]}`))
			if !strings.Contains(warnings, want) || spec.Hooks[0].Matcher.Match("Bash") {
				t.Errorf("%s%s in an agent: %s", event, matcher, warnings)
			}
			e := refused(t, asJSON, globalHookWith(`"eventType":"`+event+`","hook":{"prompt":"p"`+matcher+`}`))
			if e.Message != want || e.Code != gate.CodeValidation {
				t.Errorf("%s%s as a GlobalHook: %v", event, matcher, e)
			}
		}
	}
	runBodies(t, []bodyCase{
		{"on Stop it is ignored", stopHook(`"prompt":"p","matcher":"Bash"`), false, "matcher has no effect on Stop"},
		{"fault gx-003: * on Stop does not keep the hook from running", stopHook(`"prompt":"p","matcher":"*"`), false, "the hook runs on every Stop"},
	})
}

func TestAzure22MatcherIsRE2(t *testing.T) {
	post := func(pattern string) string {
		return agentWith(`{"PostToolUse":[{"prompt":"p","matcher":` + text(pattern) + `}]}`)
	}
	runBodies(t, []bodyCase{
		{"names", post("Bash|ExecuteShellCommand"), false, ""},
		{"expression", post("^Run.*$"), false, ""},
		{"unclosed", post("a("), true, "is not a valid RE2 pattern"},
		{"look-ahead", post("(?=a)b"), true, "RE2 has no look-ahead"},
		{"look-behind", post("(?<!a)b"), true, "look-behind"},
		{"back-reference", post(`(a)\1`), true, "back-references"},
		{"wrong type", agentWith(`{"PostToolUse":[{"prompt":"p","matcher":["Bash"]}]}`), true, "matcher is a list, want text"},
		{"long", post(strings.Repeat("a", 4096)), false, ""},
		{"too long", post(strings.Repeat("a", 4097)), true, "matcher is 4097 bytes long, want at most 4096"},
		{"comma", post("Bash, Edit"), false, "join several by |"},
		{"spaces", post("Bash | Edit"), false, "join several by |"},
	})
	e := refused(t, asYAML, "api_version: azuresre.ai/v2\nkind: ExtendedAgent\nmetadata:\n  name: a\nspec:\n  hooks:\n    PostToolUse:\n    - prompt: p\n      matcher: a(\n")
	if d := e.Details[0]; d.Line != 9 || d.Column != 16 || d.Path != "spec.hooks.PostToolUse[0].matcher" {
		t.Errorf("finding is %+v", d)
	}
}

func TestAzure23WordsNobodyKnows(t *testing.T) {
	runBodies(t, []bodyCase{
		{"hooks a list", agentWith(`[]`), true, "hooks is a list, want an object"},
		{"event an object", agentWith(`{"Stop":{"prompt":"p"}}`), true, "Stop is an object, want a list"},
		{"hook a text", agentWith(`{"Stop":["p"]}`), true, `properties.hooks.Stop[0]: hook Stop[0] is the text "p", want an object`},
		{"hook null", agentWith(`{"Stop":[null]}`), true, "hook Stop[0] is null, want an object"},
		{"no hooks at all", agentWith(`{"Stop":[],"PostToolUse":null}`), false, ""},
		{"another system's event", agentWith(`{"SessionStart":[]}`), true, `hooks has no event "SessionStart", want one of Start, Stop, PreToolUse, PostToolUse; did you mean "Start"?`},
		{"event", agentWith(`{"PostToolUsed":[]}`), true, `hooks has no event "PostToolUsed", want one of Start, Stop, PreToolUse, PostToolUse; did you mean "PostToolUse"?`},
		{"event in another case", agentWith(`{"stop":[]}`), true, `did you mean "Stop"?`},
		{"event of ours that no azure hook can have", agentWith(`{"SubagentStop":[]}`), true, "want one of Start"},
		{"fault gx-004: a switch among the events", agentWith(`{"enabled":true,"Stop":[]}`), true, `no event "enabled"`},
		{"field misspelt", stopHook(`"prompt":"p","timout":5`), false, `"timout" is unknown and has no effect; it is kept; did you mean "timeout"?`},
		{"field in snake case", stopHook(`"prompt":"p","fail_mode":"block"`), false, `did you mean "failMode"?`},
		{"field like nothing", stopHook(`"prompt":"p","colour":"red"`), false, "it is kept\n"},
		{"property misspelt", `{"name":"a","properties":{"instruction":"x"}}`, false, `did you mean "instructions"?`},
		{"no advice to repeat a field", stopHook(`"prompt":"p","timeout":5,"timeouts":6`), false, "it is kept\n"},
	})
}

func TestFaultPromptjson08PromptAsksForAnotherAnswer(t *testing.T) {
	for prompt, warned := range map[string]bool{
		"Judge it. Respond with approve or block.":                                    true,
		"Return only the bare word 'block' or 'approve'.":                             true,
		"Is it done? Answer yes or no.":                                               true,
		"Output: **PASS** when all is well":                                           true,
		"Reply with {\"ok\": true} or {\"ok\": false}. Do not answer yes.":            false,
		"Does the answer say which checks were run? $ARGUMENTS":                       false,
		"Check if the response ends with \"Task complete.\"":                          false,
		"Say which files were changed":                                                false,
		"Return blocks of JSON as {\"decision\": \"approve\"} or say block otherwise": false,
	} {
		_, warnings := accepted(t, asJSON, stopHook(`"prompt":`+text(prompt)))
		if got := strings.Contains(warnings, "which is no verdict"); got != warned {
			t.Errorf("fault promptjson-08: %q warned is %v", prompt, got)
		}
	}
}

// A mode is a hook's, or an agent's for all its own (docs/shadow.md).
func TestMode(t *testing.T) {
	const agent = `{"name":"a","properties":{%s"hooks":{"Stop":[{"type":"command","command":"true"%s}]}}}`
	const global = `{"name":"g","type":"GlobalHook","properties":{"eventType":"Stop","hook":{"type":"command","command":"true"%[2]s}%.0[1]s}}`
	for _, c := range []struct {
		name, form, ofAgent, ofHook string
		shadow, agents              bool
		finding                     string
	}{
		{"none", agent, ``, ``, false, false, ""},
		{"a hook's", agent, ``, `,"mode":"shadow"`, true, false, ""},
		{"an agent-level hook's", global, ``, `,"mode":"shadow"`, true, false, ""},
		{"said outright", agent, `"mode":"enforce",`, `,"mode":"enforce"`, false, false, ""},
		{"an agent's", agent, `"mode":"shadow",`, ``, true, true, ""},
		{"an agent's against its hook's", agent, `"mode":"shadow",`, `,"mode":"enforce"`, true, true, "mode enforce has no effect here"},
		{"another word", agent, ``, `,"mode":"monitor"`, false, false, `mode is "monitor", want one of enforce, shadow`},
		{"another word of an agent", agent, `"mode":"off",`, ``, false, false, `mode is "off", want one of enforce, shadow`},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, warnings, err := ReadSpec("application/json", fmt.Appendf(nil, c.form, c.ofAgent, c.ofHook))
			if got := fmt.Sprint(warnings, err); c.finding != "" && !strings.Contains(got, c.finding) || c.finding == "" && strings.Contains(got, "mode") {
				t.Errorf("findings %s, want %q", got, c.finding)
			}
			if spec != nil && (spec.Hooks[0].Shadow != c.shadow || spec.Shadow != c.agents) {
				t.Errorf("hook %t, agent %t", spec.Hooks[0].Shadow, spec.Shadow)
			}
		})
	}
}

func TestJudgingFields(t *testing.T) {
	for _, c := range []struct{ name, fields, finding string }{
		{"all of them", `"threshold":0.8,"evidence":"required","votes":3,"models":["Reasoning","gemini/x"]`, ""},
		{"a threshold of nothing", `"threshold":0`, "threshold is 0, want a number above 0 and up to 1"},
		{"a threshold in percent", `"threshold":80`, "threshold is 80, want a number above 0 and up to 1"},
		{"a threshold in words", `"threshold":"high"`, "threshold is"},
		{"another word", `"evidence":"always"`, "evidence is"},
		{"an even panel", `"votes":4`, "votes is 4, want an odd number"},
		{"no judge", `"votes":0`, "votes is 0"},
		{"more models than votes", `"models":["a","b"]`, "models has 2 names for 1 votes"},
		{"too many models", `"votes":9,"models":["a","b","c","d"]`, "models has 4 names, want at most 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := `{"name":"a","properties":{"hooks":{"Stop":[{"prompt":"?",` + c.fields + `}]}}}`
			spec, _, err := ReadSpec("application/json", []byte(body))
			switch {
			case c.finding == "" && err != nil:
				t.Fatal(err)
			case c.finding == "":
				if h := spec.Hooks[0]; h.Threshold != 0.8 || !h.EvidenceRequired || h.Votes != 3 || len(h.Models) != 2 {
					t.Errorf("%+v", h)
				}
			case err == nil || !strings.Contains(err.Error(), c.finding):
				t.Errorf("%v, want %q", err, c.finding)
			}
		})
	}
	_, warnings, err := ReadSpec("application/json", []byte(`{"name":"a","properties":{"hooks":{"Stop":[{"type":"command","command":"true","votes":3}]}}}`))
	if err != nil || len(warnings) == 0 || !strings.Contains(warnings[0].Message, "votes has no effect on a command hook") {
		t.Errorf("%v %v", warnings, err)
	}
}
