//go:build e2e

package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"stopgate/gate"
)

// service is a real `stopgate serve` on a temporary data directory.
type service struct {
	t         *testing.T
	url, data string
	stop      func() // ends it and waits until it has ended; may be called again
}

// serve starts the gate with the specs of a directory. Its HOME is the agent's,
// so that its transcript roots are where the agent keeps its sessions.
func serve(t *testing.T, home, data, specs, modelURL string) *service {
	t.Helper()
	cmd := exec.Command(installed(t, "bin", "stopgate"), "serve", "--listen", "127.0.0.1:0", "--data", data, "--agents", specs)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GEMINI_API_KEY=scripted", "GOOGLE_GEMINI_BASE_URL=" + modelURL + "/judge"}
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, data: data}
	s.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		_ = cmd.Wait()
	})
	t.Cleanup(s.stop)
	s.url = announced(t, log)
	return s
}

// announced reads the gate's log up to the line that says where it listens, and
// goes on reading, so that it never blocks on a full pipe.
func announced(t *testing.T, log io.Reader) string {
	t.Helper()
	found := make(chan string, 1)
	var seen []string
	go func() {
		defer close(found)
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			var line struct{ Msg, URL string }
			_ = json.Unmarshal(lines.Bytes(), &line)
			if line.Msg == "listening" {
				found <- line.URL
				_, _ = io.Copy(io.Discard, log)
				return
			}
			seen = append(seen, lines.Text())
		}
	}()
	select {
	case url, ok := <-found:
		if !ok {
			t.Fatalf("stopgate serve ended: %q", seen)
		}
		return url
	case <-time.After(30 * time.Second):
		t.Fatal("stopgate serve does not listen after 30 s")
	}
	return ""
}

// records are the evaluations so far, oldest first, without doctor's probes.
func (s *service) records() []gate.RecordSummary {
	s.t.Helper()
	var page struct{ Value []gate.RecordSummary }
	s.read("/v1/evaluations?limit=200", &page)
	slices.Reverse(page.Value)
	return slices.DeleteFunc(page.Value, func(r gate.RecordSummary) bool { return r.DryRun })
}

func (s *service) read(path string, into any) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s: %s %v", path, resp.Status, err)
	}
}

// stopgate runs the command line in the project, as its user would, and returns
// what it printed and its exit code.
func (l *lab) stopgate(t *testing.T, args ...string) (printed string, exit int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, installed(t, "bin", "stopgate"), args...)
	cmd.Dir = l.project
	agents := installed(t, "bin", "e2e", "node_modules", ".bin")
	cmd.Env = append(l.environment(l.home, l.model.url), "HOME="+l.home, "PATH="+agents+":"+os.Getenv("PATH"))
	output, err := cmd.CombinedOutput()
	if bad, failed := errors.AsType[*exec.ExitError](err); failed {
		return string(output), bad.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return string(output), 0
}

// specs is a directory with the named files of examples/ and testdata/.
func specs(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, filepath.Base(file)), string(text))
	}
	return dir
}
