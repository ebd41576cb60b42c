package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/internal/contract"
	"stopgate/wire/contracts"
)

// hostRecord is what a record and a list say of the host.
type hostRecord struct {
	ID      string  `json:"evaluation_id"`
	Version *string `json:"host_version"`
	Untried *string `json:"host_untried"`
}

func (r hostRecord) says() (version, untried string) {
	if r.Version != nil {
		version = *r.Version
	}
	if r.Untried != nil {
		untried = *r.Untried
	}
	return version, untried
}

// newest is what the newest record of a session says, in the list and whole.
func (s *service) newest(session string) (version, untried string) {
	s.t.Helper()
	var page struct{ Value []hostRecord }
	_, list := s.do(http.MethodGet, "/v1/evaluations?limit=1&session="+session, "", nil)
	if err := json.Unmarshal(list, &page); err != nil || len(page.Value) != 1 {
		s.t.Fatalf("%v %s", err, list)
	}
	var whole hostRecord
	_, record := s.do(http.MethodGet, "/v1/evaluations/"+page.Value[0].ID, "", nil)
	if err := json.Unmarshal(record, &whole); err != nil {
		s.t.Fatal(err)
	}
	version, untried = page.Value[0].says()
	if v, u := whole.says(); v != version || u != untried {
		s.t.Errorf("the list says %q %q, the record %q %q", version, untried, v, u)
	}
	return version, untried
}

// The record names the version in the session file of each host, read where it
// lies or sent from another machine, and says what doctor says of one that
// nobody tried.
func TestRecordsNameTheHostsVersion(t *testing.T) {
	captured := contract.Dir(t, "wire")
	s := newService(t)
	if status, answer := s.do(http.MethodPut, agents+"a", "application/json", []byte(`{"name":"a","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"p"}]}}}`)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	for host, event := range map[string]string{"claude-code": "Stop", "codex": "Stop", "qwen-code": "Stop", "copilot": "Stop", "gemini-cli": "AfterAgent"} {
		c, _, _ := contracts.For(host, "")
		content, err := os.ReadFile(filepath.Join(captured, host, "transcript.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range []string{c.To, "99.1.0"} {
			t.Run(host+" "+version, func(t *testing.T) {
				session := host + version
				path := filepath.Join(s.transcriptRoot, session+".jsonl")
				write(t, path, strings.ReplaceAll(string(content), c.To, version))
				wantVersion, wantUntried := version, c.Says(version)
				if host == "gemini-cli" { // nothing names it
					wantVersion, wantUntried = "", ""
				}
				check := func(how, session string) {
					t.Helper()
					if got, untried := s.newest(session); got != wantVersion || untried != wantUntried {
						t.Errorf("%s: version %q, want %q; untried %q, want %q", how, got, wantVersion, untried, wantUntried)
					}
				}
				ask := func(session string, more ...string) {
					payload, err := json.Marshal(map[string]string{"hook_event_name": event, "session_id": session, "last_assistant_message": "Done.", "transcript_path": path})
					if err != nil {
						t.Fatal(err)
					}
					hookRun{args: append([]string{"--protocol", host, "--agent", "a", "--server", s.url}, more...), payload: payload,
						env: map[string]string{"XDG_STATE_HOME": t.TempDir()}}.run(t)
				}
				ask(session)
				check("in place", session)
				ask("sent-"+session, "--transcript", "send")
				check("sent", "sent-"+session)
			})
		}
	}
}

// Copilot's http hooks name it in their User-Agent, also where no hook is asked.
func TestRecordTakesTheVersionOfAUserAgent(t *testing.T) {
	s := newService(t)
	for agent, want := range map[string]string{"copilot/1.0.102 (linux x64)": "1.0.102", "copilot/99.1.0 (linux x64)": "99.1.0", "copilot/<script>": ""} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/hooks/copilot", strings.NewReader(`{"hook_event_name":"PreToolUse","session_id":"u","tool_name":"bash"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("User-Agent", agent)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		version, untried := s.newest("u")
		if version != want || (untried != "") != (want == "99.1.0") {
			t.Errorf("%s: %q, %q", agent, version, untried)
		}
	}
}
