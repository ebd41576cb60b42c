package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/redact"
	"stopgate/store/postgres"
	"stopgate/store/sqlite"
	"stopgate/store/storetest"
)

// The server file's names are the package's, which cannot see each other.
func TestBuiltInRedactions(t *testing.T) {
	if !slices.Equal(config.BuiltInRedactions, redact.BuiltIn()) {
		t.Errorf("config has %q, redact %q", config.BuiltInRedactions, redact.BuiltIn())
	}
}

// Whatever else a store can do passes through the redactor: a new method of one
// fails here, unless only commands use it, on the store itself.
func TestStoresKeepTheirMethods(t *testing.T) {
	r, err := redact.New(redact.BuiltIn(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		store redact.Store
		own   []string
	}{{&sqlite.Store{}, []string{"Dump"}}, {&postgres.Store{}, []string{"Import"}}} {
		behind := reflect.TypeOf(r.Store(c.store))
		for m := range reflect.TypeOf(c.store).Methods() {
			if _, there := behind.MethodByName(m.Name); !there && !slices.Contains(c.own, m.Name) {
				t.Errorf("%T: %s does not pass through the redactor", c.store, m.Name)
			}
		}
	}
}

// A store behind a redactor keeps the law of stores.
func TestRedactedStore(t *testing.T) {
	r, err := redact.New(redact.BuiltIn(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Run(t, func(t testing.TB) gate.Store {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Dir: t.TempDir(), Durability: sqlite.Process, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		return r.Store(s)
	})
}

// Secrets in every place that an agent, a judge or a script can put one: the agent
// is told what its hook said, the judge sees what there is, and neither the data
// directory's database nor any list or record has one of them.
func TestNoSecretIsStoredOrShown(t *testing.T) {
	secrets := []string{"ghp_" + strings.Repeat("q7Rt", 9), "jane.doe@example.com", "4111111111111111", "AKIA" + "IOSFODNN7EXAMPLE", "hunter2hunter2",
		"sk-" + "proj-" + strings.Repeat("z9Yx", 8), "BLUEBIRD-4711"}
	text := "token " + secrets[0] + " of " + secrets[1] + ", card " + secrets[2] + ", id " + secrets[3] + ", postgres://root:" + secrets[4] + "@db/x, " + secrets[5] + ", " + secrets[6]
	const own = "redaction: {patterns: {bird: \"BLUEBIRD-[0-9]+\"}%s}\n"
	for name, hidden := range map[string]string{"": "", "and from the judge": ", redact_model_input: true"} {
		t.Run(name, func(t *testing.T) {
			data, file := t.TempDir(), filepath.Join(t.TempDir(), "stopgate.yaml")
			if err := os.WriteFile(file, fmt.Appendf(nil, own, hidden), 0o600); err != nil {
				t.Fatal(err)
			}
			s := newServiceWith(t, data, file)
			s.answer = func(string) string {
				b, _ := json.Marshal(map[string]any{"ok": false, "reason": "take out " + text})
				return string(b)
			}
			s.putAgent("a", `"Stop":[{"type":"prompt","prompt":"p"}]`)
			event, _ := json.Marshal(map[string]any{"hook_event_name": "Stop", "agent_name": "a", "session_id": "s", "final_output": text,
				"other": map[string]any{secrets[1]: text, "pan": 4111111111111111}, "transcript": "user: " + text})
			status, answer := s.do(http.MethodPost, "/v1/evaluate", "application/json", event)
			var told struct {
				Decision, Reason string
				ID               string `json:"evaluation_id"`
			}
			if err := json.Unmarshal(answer, &told); err != nil || status != http.StatusOK || told.Decision != "block" || told.Reason != "take out "+text {
				t.Fatalf("%d %s %v", status, answer, err)
			}
			asked := strings.Join(s.requests, "\n")
			if strings.Contains(asked, secrets[0]) == (hidden != "") || !strings.Contains(asked, "[redacted:") == (hidden != "") {
				t.Errorf("the judge was asked %s", asked)
			}
			// The same again, with the reason as the prompt that it comes back as: the ledger
			// knows its own words without having them.
			prompt, _ := json.Marshal(map[string]any{"hook_event_name": "UserPromptSubmit", "agent_name": "a", "session_id": "s", "prompt": told.Reason})
			if status, answer := s.do(http.MethodPost, "/v1/evaluate", "application/json", prompt); status != http.StatusOK || !strings.Contains(string(answer), `"stop_rejection_count":1`) {
				t.Errorf("%d %s", status, answer)
			}
			shown := map[string][]byte{}
			for _, path := range []string{"/v1/evaluations/" + told.ID, "/v1/evaluations", "/v1/sessions/s", "/v1/sessions/s/transcript"} {
				if status, shown[path] = s.do(http.MethodGet, path, "", nil); status != http.StatusOK {
					t.Fatalf("GET %s: %d", path, status)
				}
			}
			if record := shown["/v1/evaluations/"+told.ID]; !json.Valid(record) || strings.Count(string(record), "[redacted:github_token]") < 4 || !strings.Contains(string(record), `"[redacted:card]"`) {
				t.Errorf("record %s", record)
			}
			for _, file := range []string{"stopgate.db", "stopgate.db-wal"} {
				b, err := os.ReadFile(filepath.Join(data, file))
				if err != nil {
					t.Fatal(err)
				}
				shown[file] = b
			}
			if !strings.Contains(string(shown["stopgate.db-wal"])+string(shown["stopgate.db"]), "[redacted:bird]") {
				t.Error("the database does not have the record: the test shows nothing")
			}
			for where, content := range shown {
				for _, secret := range secrets {
					if strings.Contains(string(content), secret) {
						t.Errorf("%s has %s", where, secret)
					}
				}
			}
		})
	}
}
