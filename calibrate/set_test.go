package calibrate

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReadRun(t *testing.T) {
	const (
		user  = `{"role":"user","content":"Cancel it."}`
		call  = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","name":"cancel","arguments":"{}"}]}`
		tool  = `{"role":"tool","tool_call_id":"c1","content":"done"}`
		final = `{"role":"assistant","content":"It is cancelled.","more":[1]}`
		bye   = `{"role":"user","content":"Bye."}`
	)
	tests := []struct{ name, messages, final, kept string }{
		{"to the last answer", user + "," + call + "," + tool + "," + final, "It is cancelled.", user + "," + call + "," + tool + "," + final},
		{"what came later was not there yet", user + "," + final + "," + bye + "," + tool, "It is cancelled.", user + "," + final},
		{"a last call has its results", user + "," + call + "," + tool + "," + bye, "", user + "," + call + "," + tool},
		{"an earlier answer is none", user + "," + final + "," + call, "", user + "," + final + "," + call},
		{"parts", `{"role":"assistant","content":["One.",{"type":"text","text":"Two."},{"type":"image"}]}`, "One.\nTwo.", `{"role":"assistant","content":["One.",{"type":"text","text":"Two."},{"type":"image"}]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, err := ReadRun([]byte(`{"id":"a","task":7,"label":"fail","messages":[`+test.messages+`]}`), "")
			if err != nil {
				t.Fatal(err)
			}
			if r.ID != "a" || !r.Bad || r.FinalOutput != test.final || string(r.Messages) != "["+test.kept+"]" {
				t.Errorf("%+v\n%s", r, r.Messages)
			}
		})
	}
	t.Run("the system's words come first", func(t *testing.T) {
		r, err := ReadRun([]byte(`{"id":"a","label":"pass","messages":[`+final+`]}`), "Be \"kind\".\n")
		if err != nil || r.Bad {
			t.Fatal(r, err)
		}
		var messages []struct{ Role, Content string }
		if err := json.Unmarshal(r.Messages, &messages); err != nil || len(messages) != 2 || messages[0].Role != "system" || messages[0].Content != "Be \"kind\".\n" {
			t.Errorf("%s %v", r.Messages, err)
		}
	})
}

// A field whose name differs in case is another field, before and after.
func TestReadRunIgnoresOtherFields(t *testing.T) {
	const messages = `"messages":[{"role":"assistant","content":"y"}]`
	for _, line := range []string{
		`{"id":"a","label":"fail",` + messages + `,"Label":"pass","ID":"b","Messages":5}`,
		`{"Label":"pass","ID":7,"Messages":[],"id":"a","label":"fail",` + messages + `}`,
		"\ufeff" + `{"id":"a","label":"fail",` + messages + `}`, // as some editors begin a file
	} {
		if r, err := ReadRun([]byte(line), ""); err != nil || r.ID != "a" || !r.Bad || r.FinalOutput != "y" {
			t.Errorf("%s: %+v %v", line, r, err)
		}
	}
}

func TestReadRunRefuses(t *testing.T) {
	tests := []struct{ line, says string }{
		{``, "not a JSON object"},
		{`[1]`, "not a JSON object"},
		{`{"id":1}`, "id must not be a JSON number"},
		{`{"label":"pass"}`, "id is missing"},
		{`{"ID":"a","label":"pass"}`, "id is missing"},
		{`null`, "id is missing"},
		{`{"id":"a","label":"pass","messages":{}}`, "messages must not be a JSON object"},
		{`{"id":"a\u001b[2J"}`, "without control characters"},
		{`{"id":"a","label":"good"}`, `label is "good"`},
		{`{"id":"a"}`, `label is ""`},
		{`{"id":"a","label":"pass"}`, `none of the role "assistant"`},
		{`{"id":"a","label":"pass","messages":[{"role":"user","content":"x"}]}`, `none of the role "assistant"`},
		{`{"id":"a","label":"pass","messages":["x"]}`, "messages[0] is not an object with a role"},
		{`{"id":"a","label":"pass","messages":[{"role":"assistant","content":5}]}`, "messages[0].content must be a string"},
	}
	for _, test := range tests {
		if _, err := ReadRun([]byte(test.line), ""); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q", test.line, err, test.says)
		}
	}
}

func FuzzReadRun(f *testing.F) {
	f.Add([]byte(`{"id":"a","label":"fail","messages":[{"role":"assistant","content":["x",{"type":"text","text":"y"}]},{"role":"tool"}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := ReadRun(line, "s")
		if err == nil && (r.ID == "" || !json.Valid(r.Messages)) {
			t.Errorf("%+v", r)
		}
	})
}
