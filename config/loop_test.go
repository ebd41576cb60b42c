package config

import (
	"encoding/json"
	"strings"
	"testing"
)

// A Stop hook that refuses every round alike has no end of its own
// (spec/azure.md 36; docs/faults.md loop-01).
func TestStopHooksThatLoop(t *testing.T) {
	const certain = "blocks every Stop, whatever the agent answers"
	for _, tt := range []struct {
		name, event, hook string
		want              string // "": nothing is said
	}{
		{"a rule about what no round changes", "Stop", `{"type":"rule","rules":[{"if":"labels.team == 'x'","then":"block","reason":"no"}]}`,
			"rules[0].if: where this holds every Stop is blocked, whatever the agent does: it asks for none of final_output, tools_used, turn; maxRejections limits prompt hooks alone"},
		{"a rule that always holds, behind another", "Stop", `{"type":"rule","rules":[{"if":"final_output == ''","then":"block","reason":"say"},{"if":"true","then":"block","reason":"no"}]}`, "rules[1].if: where"},
		{"a when about what no round changes", "Stop", `{"type":"rule","when":"labels.a == 'b'","rules":[{"if":"true","then":"block","reason":"no"}]}`, "rules[0].if: where"},
		{"a rule about the answer", "Stop", `{"type":"rule","rules":[{"if":"!final_output.contains('done')","then":"block","reason":"no"}]}`, ""},
		{"a rule about the turn, in a loop of its own", "Stop", `{"type":"rule","rules":[{"if":"['a'].exists(x, x == session) && turn < 3","then":"block","reason":"no"}]}`, ""},
		{"a way out before it", "Stop", `{"type":"rule","rules":[{"if":"'Bash' in tools_used","then":"allow"},{"if":"true","then":"block","reason":"test it"}]}`, ""},
		{"a when with a way out", "Stop", `{"type":"rule","when":"turn < 5","rules":[{"if":"true","then":"block","reason":"no"}]}`, ""},
		{"a rule that is never reached", "Stop", `{"type":"rule","rules":[{"if":"true","then":"allow"},{"if":"true","then":"block","reason":"no"}]}`, ""},
		{"a rule in shadow", "Stop", `{"type":"rule","mode":"shadow","rules":[{"if":"true","then":"block","reason":"no"}]}`, ""},
		{"a rule on another event", "PreToolUse", `{"type":"rule","matcher":"x","rules":[{"if":"true","then":"block","reason":"no"}]}`, ""},

		{"a script that exits with 2", "Stop", `{"type":"command","script":"#!/bin/bash\necho 'Run the tests.' >&2\nexit 2\n"}`, "script: script " + certain},
		{"a line that answers", "Stop", `{"type":"command","command":"echo '{\"ok\": false, \"reason\": \"x\"}'"}`, "command: command " + certain},
		{"quoted otherwise", "Stop", `{"type":"command","command":"printf '%s\\n' \"{\\\"decision\\\":\\\"block\\\",\\\"reason\\\":\\\"x\\\"}\" && exit 0"}`, certain},
		{"without a reason, which approves", "Stop", `{"type":"command","command":"exit 2"}`, ""},
		{"an answer that allows", "Stop", `{"type":"command","command":"echo '{\"ok\": true}'"}`, ""},
		{"a failure", "Stop", `{"type":"command","command":"echo x >&2; exit 3"}`, ""},
		{"what looks at something", "Stop", `{"type":"command","command":"grep -q done && exit 0; echo x >&2; exit 2"}`, ""},
		{"what looks at a variable", "Stop", `{"type":"command","command":"echo \"$X\" >&2; exit $CODE"}`, ""},
		{"an end before it", "Stop", `{"type":"command","command":"exit 0; echo x >&2; exit 2"}`, ""},
		{"another language", "Stop", `{"type":"command","script":"#!/usr/bin/env python3\nexit\n"}`, ""},
		{"on another event", "PostToolUse", `{"type":"command","matcher":"x","command":"echo x >&2; exit 2"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := `{"name":"a","properties":{"hooks":{"` + tt.event + `":[` + tt.hook + `]}}}`
			if !json.Valid([]byte(text)) {
				t.Fatal(text)
			}
			_, findings := ReadSpecFile("a.json", []byte(text))
			if said := textOf(findings); tt.want == "" && said != "" || !strings.Contains(said, tt.want) {
				t.Errorf("findings:\n%s\nwant %q", said, tt.want)
			}
		})
	}
}
