package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// managedAgent plays the Interactions API: an agent that answers, and heeds what
// it is told in a follow-up to that very interaction.
func managedAgent(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Agent, Input, Environment string
			Previous                  string `json:"previous_interaction_id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.URL.Path != "/v1beta/interactions" || r.Header.Get("X-Goog-Api-Key") != "secret" || request.Agent != "calculator" {
			t.Errorf("%s %v: %+v, %v", r.URL, r.Header, request, err)
		}
		id, answer := "i-1", "It is 5."
		switch {
		case request.Previous == "" && request.Environment == "remote" && request.Input == `What is "2" + 3?`:
		case request.Previous == "i-1" && request.Environment == "env-1" && strings.Contains(request.Input, "Task complete"):
			id, answer = "i-2", "It is 5. Task complete."
		default:
			t.Errorf("unexpected: %+v", request)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"id": id, "status": "completed", "environment_id": "env-1", "steps": []any{
			map[string]any{"type": "model_output", "content": []any{map[string]any{"type": "text", "text": "I add. Task complete."}}},
			map[string]any{"type": "code_execution_call", "id": "1"}, map[string]any{"type": "code_execution_result", "id": "1"},
			map[string]any{"type": "model_output", "content": []any{map[string]any{"type": "image"}, map[string]any{"type": "text", "text": answer[:2]}}},
			map[string]any{"type": "thought"}, map[string]any{"type": "model_output"},
			map[string]any{"type": "model_output", "content": []any{map[string]any{"type": "text", "text": answer[2:]}}},
		}})
	}))
	t.Cleanup(s.Close)
	return s
}

// There is no Stop in the Gemini API's environment: who starts an interaction
// asks the gate, and sends the reason as a follow-up (spec/antigravity.md 18).
func TestAntigravity18StopByTheCaller(t *testing.T) {
	s := newService(t)
	marker, err := os.ReadFile("../../examples/marker.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := s.do(http.MethodPut, agents+"marker", "application/yaml", marker); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	gemini := managedAgent(t)
	for _, c := range []struct{ name, program string }{{"interaction.py", "python3"}, {"interaction.mjs", "node"}, {"interaction.sh", "bash"}} {
		t.Run(c.name, func(t *testing.T) {
			program, err := os.ReadFile(filepath.Join(loops, c.name))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(page), string(program)) {
				t.Error("docs/agents.md does not show it as it is")
			}
			for _, needed := range []string{c.program, "curl", "jq"} {
				if _, err := exec.LookPath(needed); err != nil {
					t.Skipf("%s is not installed", needed)
				}
			}
			cmd := exec.CommandContext(t.Context(), c.program, c.name, "calculator", `What is "2" + 3?`)
			cmd.Dir = loops
			cmd.Env = append(os.Environ(), "STOPGATE_SERVER="+s.url, "GOOGLE_GEMINI_BASE_URL="+gemini.URL, "GEMINI_API_KEY=secret")
			out, err := cmd.CombinedOutput()
			if err != nil || string(out) != "It is 5. Task complete.\n" {
				t.Errorf("%v: %s", err, out)
			}
			_, list := s.do(http.MethodGet, "/v1/evaluations?event=Stop&session=env-1&limit=2", "", nil)
			if strings.Count(string(list), `"decision":"block"`) != 1 || strings.Count(string(list), `"decision":"allow"`) != 1 {
				t.Errorf("the last two Stops: %s", list)
			}
		})
	}
}
