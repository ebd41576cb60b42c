package prompthooks

import (
	"encoding/json"
	"strings"
	"testing"

	"stopgate/gate"
)

// verdicts are answers that a judge may give on a Stop and what they come to;
// an empty outcome is "not a verdict".
var verdicts = []struct {
	name, text string
	outcome    gate.Outcome
	reason     string
}{
	{"ok", `{"ok":true}`, gate.Allow, ""},
	{"ok with a reason", `{"ok":true,"reason":"fine"}`, gate.Allow, "fine"},
	{"ok with reason null", `{"ok":true,"reason":null}`, gate.Allow, ""},
	{"not ok", `{"ok":false,"reason":"x"}`, gate.Block, "x"},
	{"fault G13: not ok without reason is still a block", `{"ok":false}`, gate.Block, ""},
	{"expanded block", `{"decision":"block","reason":"x"}`, gate.Block, "x"},
	{"expanded allow", `{"decision":"allow"}`, gate.Allow, ""},
	{"fault promptjson-01, G07: approve is allow", `{"decision":"approve","reason":"done"}`, gate.Allow, "done"},
	{"both forms that agree", `{"ok":false,"decision":"block","reason":"x"}`, gate.Block, "x"},
	{"fault promptjson-10: both forms that disagree", `{"ok":true,"decision":"block","reason":"write the notes"}`, "", ""},
	{"fault promptctx-03: ok decides, not the reason", `{"ok":false,"reason":"not under e2e so approve immediately"}`, gate.Block, "not under e2e so approve immediately"},
	{"unknown fields are passed over", `{"ok":true,"confidence":0.7}`, gate.Allow, ""},
	{"white space round it", "\n\t {\"ok\": true} \r\n", gate.Allow, ""},
	{"byte order mark", "\ufeff{\"ok\":true}", gate.Allow, ""},

	{"fault promptjson-02: fence", "```json\n{\"ok\": true, \"reason\": \"met\"}\n```", gate.Allow, "met"},
	{"fault promptjson-04: fence without a newline", "```json{\"ok\": false, \"reason\": \"protected file\"}```", gate.Block, "protected file"},
	{"fault promptjson-06: prose round it", `Here is my decision: {"ok": false, "reason": "3 files uncommitted"} Let me know!`, gate.Block, "3 files uncommitted"},
	{"braces in a reason", `{"ok":false,"reason":"close the } in f() { and \"{\""}`, gate.Block, `close the } in f() { and "{"`},
	{"a fence in a reason", "{\"ok\":false,\"reason\":\"```json\\n{\\\"ok\\\":true}\\n```\"}", gate.Block, "```json\n{\"ok\":true}\n```"},
	{"code in prose before it", `The function f() { return 1 } is fine. {"ok":true}`, gate.Allow, ""},
	{"an open brace after it", `{"ok":true} as in if (x) { return`, gate.Allow, ""},
	{"an object of the data quoted before it", `It ran {"cmd":"make test"} and it passed: {"ok":true}`, gate.Allow, ""},
	{"the same verdict twice", `{"ok":false,"reason":"a"} So: {"ok":false,"reason":"a"}`, gate.Block, "a"},
	{"the same verdict in both forms", `{"ok":false,"reason":"a"} {"decision":"block","reason":"b"}`, gate.Block, "b"},
	{"the last reason that is one", `{"ok":false,"reason":"a"} {"ok":false}`, gate.Block, "a"},

	{"verdicts that disagree", `{"ok":true} no, wait: {"ok":false,"reason":"x"}`, "", ""},
	{"empty", "", "", ""},
	{"white space", " \n ", "", ""},
	{"empty object", `{}`, "", ""},
	{"null", `null`, "", ""},
	{"bare true", `true`, "", ""},
	{"bare string", `"ok"`, "", ""},
	{"number", `1`, "", ""},
	{"empty array", `[]`, "", ""},
	{"array of a verdict", `[{"ok":true}]`, "", ""},
	{"fenced array of a verdict", "```\n[ {\"ok\":true} ]\n```", "", ""},
	{"a verdict later in an array", `[1, {"ok":true}]`, "", ""},
	{"brackets in prose before it", `See a[0] and [1]. {"ok":true}`, gate.Allow, ""},
	{"a verdict inside an object", `{"verdict":{"ok":true}}`, "", ""},
	{"a verdict inside braces that are not JSON", `{ok: false, was: {"ok":true}}`, "", ""},
	{"ok as a string", `{"ok":"true"}`, "", ""},
	{"ok as a number", `{"ok":1}`, "", ""},
	{"ok null", `{"ok":null,"reason":"x"}`, "", ""},
	{"ok in capitals", `{"OK":true}`, "", ""},
	{"ok twice", `{"ok":true,"ok":false}`, "", ""},
	{"only a reason", `{"reason":"fine"}`, "", ""},
	{"unknown decision", `{"decision":"maybe"}`, "", ""},
	{"ask on Stop", `{"decision":"ask"}`, "", ""},
	{"reason that is no text", `{"ok":false,"reason":["x"]}`, "", ""},
	{"fault promptjson-05, G08: prose", "Yes, everything the user asked for is finished.", "", ""},
	{"fault promptjson-08: the bare word approve", "approve", "", ""},
	{"fault G11: a negative in prose", "The response is not supported by the evidence.", "", ""},
	{"a bare word block", "block", "", ""},
	{"cut off in the reason", `{"ok":true,"reason":"the tests pa`, "", ""},
	{"cut off after the value", `{"ok":true`, "", ""},
	{"cut off, with a whole object inside", `{"result":{"ok":true},"rea`, "", ""},
	{"a second one cut off", `{"ok":true} {"ok":fal`, "", ""},
	{"trailing comma", `{"ok":true,}`, "", ""},
	{"single quotes", `{'ok': true}`, "", ""},
	{"HTML", "<html><body>{}</body></html>", "", ""},
	{"too long", `{"ok":true,"reason":"` + strings.Repeat("x", maxAnswerBytes) + `"}`, "", ""},
	{"too many objects", strings.Repeat(`{"ok":true}`, maxObjects+1), "", ""},
	{"too deep", strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000), "", ""},
}

func TestAzure31And32ReadVerdict(t *testing.T) {
	for _, c := range verdicts {
		t.Run(c.name, func(t *testing.T) {
			v, err := ReadVerdict(gate.Stop, c.text)
			if err != nil {
				v.Outcome = ""
			}
			if v.Outcome != c.outcome || v.Reason != c.reason {
				t.Errorf("got %q, reason %q (%v); want %q, reason %q", v.Outcome, v.Reason, err, c.outcome, c.reason)
			}
		})
	}
}

func TestReadVerdictAsk(t *testing.T) {
	for _, text := range []string{`{"decision":"ask","reason":"who"}`,
		`{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"who"}}`} {
		v, err := ReadVerdict(gate.PreToolUse, text)
		if err != nil || v.Outcome != gate.Ask || v.Reason != "who" {
			t.Errorf("%s: got %+v, %v", text, v, err)
		}
	}
}

// FuzzReadVerdict holds what must be true of any text: no panic, no outcome
// but these, a verdict only where the text states one, and the same one when
// prose stands round it.
func FuzzReadVerdict(f *testing.F) {
	for _, c := range verdicts {
		if len(c.text) < 4096 {
			f.Add(c.text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := ReadVerdict(gate.Stop, text)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without a text")
			}
			return
		}
		if v.Outcome != gate.Allow && v.Outcome != gate.Block {
			t.Fatalf("outcome %q on Stop", v.Outcome)
		}
		bare := []byte(strings.TrimSpace(text))
		if !strings.Contains(text, "{") || json.Valid(bare) && !gate.DecisionIn(bare) {
			t.Fatalf("verdict %+v from a text that states none", v)
		}
		again, err := ReadVerdict(gate.Stop, "My verdict:\n"+text+"\nThat is all.")
		if err != nil || again.Outcome != v.Outcome || again.Reason != v.Reason {
			t.Fatalf("alone %+v, within prose %+v (%v)", v, again, err)
		}
	})
}
