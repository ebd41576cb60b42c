package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/wire/install"
)

// TestAXCode24Doctor: a gate in AX Code is proved to gate where it can, on tool
// calls and prompts; that Stop cannot be held is said, by init too.
func TestAXCode24Doctor(t *testing.T) {
	s := newService(t)
	spec := `{"name":"marker","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"p"}],"PreToolUse":[{"type":"prompt","matcher":"Bash","prompt":"p"}]}}}`
	if status, answer := s.do(http.MethodPut, agents+"marker", "application/json", []byte(spec)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	host, _ := install.Find("ax-code")
	for _, c := range []struct {
		name    string
		trusted string
		key     string
		bend    func(w *workplace)
		want    string // in the output
		code    int
	}{
		{name: "healthy", trusted: "1", want: "a probe on PreToolUse is blocked"},
		{name: "Stop is only watched", trusted: "1", want: "AX Code only watches Stop"},
		{name: "a probe on Stop", trusted: "1", want: "a probe on Stop is answered without an objection"},
		{name: "not trusted", trusted: "true", want: "AX Code ignores a project's hooks without AX_CODE_TRUST_PROJECT_CONFIG=1", code: exitFindings},
		{name: "a key that it keeps from hooks", trusted: "1", key: "k", want: "AX Code keeps STOPGATE_API_KEY from hooks", code: exitFindings},
		{name: "its answer is not read", trusted: "1", want: `reads no answer of the entry on PreToolUse`, code: exitFindings,
			bend: func(w *workplace) {
				rewrite(t, host.File(install.Places{Project: w.project}, install.Project), `"protocol": "claude-code"`, `"pack": "x"`)
			}},
		{name: "one invalid entry", trusted: "1", want: "AX Code ignores this whole file, because hooks[0].event", code: exitFindings,
			bend: func(w *workplace) {
				rewrite(t, host.File(install.Places{Project: w.project}, install.Project), `"hooks": [`, `"hooks": [{"event":"BeforeTool","command":"true"},`)
			}},
		{name: "wrong path", trusted: "1", want: "a probe on PreToolUse is not blocked: the command fails", code: exitFindings,
			bend: func(w *workplace) { w.edit(host, "/stopgate hook", "/no/such/stopgate hook") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorkplace(t)
			t.Setenv("AX_CODE_TRUST_PROJECT_CONFIG", c.trusted)
			w.install(host, install.Project, install.Target{Agent: "marker", Server: s.url})
			if c.bend != nil {
				c.bend(w)
			}
			t.Setenv("STOPGATE_API_KEY", c.key)
			out, code := w.doctor("ax-code")
			if code != c.code || !strings.Contains(out, c.want) {
				t.Errorf("exit %d, want %d and %q:\n%s", code, c.code, c.want, out)
			}
		})
	}
	if len(s.requests) > 0 {
		t.Errorf("probes asked the judge %d times", len(s.requests))
	}
}

// rewrite puts one text in the place of another, wherever it stands in a file.
func rewrite(t *testing.T, path, old, new string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(content), old) {
		t.Fatalf("%s: %v, without %q", filepath.Base(path), err, old)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(content), old, new)), 0o600); err != nil {
		t.Fatal(err)
	}
}
