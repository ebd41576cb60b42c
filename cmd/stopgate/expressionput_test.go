package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// A condition that is wrong is refused when it is put, at its own place in the body,
// and nothing is stored.
func TestPutTellsWhereAnExpressionIsWrong(t *testing.T) {
	s := newService(t)
	for _, tt := range []struct {
		name, contentType, body, path string
		line, column                  int
		message                       string
	}{
		{"a when that is no condition, in JSON", "application/json",
			"{\"name\":\"typed\",\"properties\":{\"hooks\":{\"Stop\":[\n  {\"prompt\":\"Is it done?\",\"when\":\"turn + 1\"}]}}}",
			"properties.hooks.Stop[0].when", 2, 35, "when: is of type int, want true or false"},
		{"a type error inside it, in YAML", "application/yaml",
			"name: typed\nproperties:\n  hooks:\n    Stop:\n      - prompt: Is it done?\n        when: final_output == \"x\" && turn > \"3\"\n",
			"properties.hooks.Stop[0].when", 6, 43, "when: found no matching overload for '_>_' applied to '(int, string)'"},
		{"a variable of another event, in a rule", "application/yaml",
			"name: typed\nproperties:\n  hooks:\n    Stop:\n      - type: rule\n        rules:\n          - if: tool_name == \"Bash\"\n            then: block\n            reason: no\n",
			"properties.hooks.Stop[0].rules[0].if", 7, 17, "if: tool_name is not known on Stop, only on PreToolUse and PostToolUse"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, body := s.do(http.MethodPut, agents+"typed", tt.contentType, []byte(tt.body))
			var answer struct {
				Error struct {
					Code    string         `json:"code"`
					Details []gate.Finding `json:"details"`
				} `json:"error"`
			}
			if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusBadRequest || answer.Error.Code != "ValidationFailure" || len(answer.Error.Details) == 0 {
				t.Fatalf("%d %v %s", status, err, body)
			}
			is := answer.Error.Details[0]
			want := gate.Finding{Severity: is.Severity, Path: tt.path, Line: tt.line, Column: tt.column, Message: tt.message}
			if diff := cmp.Diff(want, is); diff != "" {
				t.Error(diff)
			}
			if status, _ := s.do(http.MethodGet, agents+"typed", "", nil); status != http.StatusNotFound {
				t.Errorf("it was stored: %d", status)
			}
		})
	}
}
