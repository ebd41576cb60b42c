package main

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBackupOfARunningService: what deploy/backup.sh copies while a server decides is a
// data directory that another server goes on with, counts and conversations
// included.
func TestBackupOfARunningService(t *testing.T) {
	for _, program := range []string{"bash", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	data, target := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	s := newServiceOn(t, data)
	const spec = `{"name":"a","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"x"}]}}}`
	if status, answer := s.do(http.MethodPut, agents+"a", "application/json", []byte(spec)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	s.answer = func(string) string { return `{"ok":false,"reason":"no"}` }
	const stop = `{"hook_event_name":"Stop","agent_name":"a","session_id":"s"}`
	s.evaluate(stop)
	if status, answer := s.do(http.MethodPut, "/v1/sessions/s/transcript", "text/plain", []byte("user: hello\n")); status >= 300 {
		t.Fatalf("%d %s", status, answer)
	}
	script := filepath.Join("..", "..", "deploy", "backup.sh")
	backup := func() ([]byte, error) {
		return exec.CommandContext(t.Context(), "bash", script, data, target).CombinedOutput()
	}
	if out, err := backup(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.evaluate(stop) // is not in the copy
	if out, err := backup(); err == nil {
		t.Errorf("a second backup went over the first: %s", out)
	}
	restored := newServiceOn(t, target)
	restored.answer = s.answer
	if d := restored.evaluate(stop); d.StopRejectionCount != 2 {
		t.Errorf("the restored service has %d rejections after its first, want 2", d.StopRejectionCount)
	}
	if _, text := restored.do(http.MethodGet, "/v1/sessions/s/transcript", "", nil); !strings.Contains(string(text), "hello") {
		t.Errorf("conversation %q", text)
	}
}
