package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/sqlite"
)

// endpoint is a sink that is slow and refuses now and then, sometimes after it has
// taken what it was sent.
type endpoint struct {
	mu    sync.Mutex
	lines []byte
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil { // its sender was killed
		return
	}
	time.Sleep(rand.N(20 * time.Millisecond))
	chance := rand.N(6)
	if chance > 0 {
		e.mu.Lock()
		e.lines = append(e.lines, body...)
		e.mu.Unlock()
	}
	if chance < 2 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (e *endpoint) text() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return bytes.Clone(e.lines)
}

// TestKilledWhileDelivering: a server is killed in the middle of delivery, several
// times; in the end every record that was committed has reached every sink, and a
// session's in their order.
func TestKilledWhileDelivering(t *testing.T) {
	const rounds, sessions = 5, 3
	dir := t.TempDir()
	siem := &endpoint{}
	web := httptest.NewServer(siem)
	t.Cleanup(web.Close)
	file := filepath.Join(dir, "records.ndjson")
	server := fmt.Sprintf("data: %s\nsandbox: {mode: \"off\"}\nexport: {sinks: {siem: {kind: http, url: %q}, archive: {kind: file, path: %q}}}\n",
		filepath.Join(dir, "data"), web.URL, file)
	if err := os.WriteFile(filepath.Join(dir, "stopgate.yaml"), []byte(server), 0o600); err != nil {
		t.Fatal(err)
	}
	acknowledged := map[string]bool{}
	for round := range rounds {
		url, kill := serveProcess(t, filepath.Join(dir, "stopgate.yaml"))
		var asking sync.WaitGroup
		var mu sync.Mutex
		for session := range sessions {
			asking.Go(func() {
				for {
					id, err := decide(url, fmt.Sprint("s", session))
					if err != nil { // it was killed
						return
					}
					mu.Lock()
					acknowledged[id] = true
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Second + rand.N(500*time.Millisecond)) // the outbox is looked into each second
		kill()
		asking.Wait()
		if len(acknowledged) == 0 {
			t.Fatalf("round %d: nothing was decided", round)
		}
	}
	committed := committedIn(t, filepath.Join(dir, "data"))
	for id := range acknowledged {
		if committed[id] == "" {
			t.Errorf("%s was acknowledged and is not stored", id)
		}
	}
	_, kill := serveProcess(t, filepath.Join(dir, "stopgate.yaml"))
	defer kill()
	archive := func() []byte {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, text := range map[string]func() []byte{"siem": siem.text, "archive": archive} {
		var missing int
		for until := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			if missing = missingFrom(t, text(), committed); missing == 0 {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("%s lacks %d of %d records", name, missing, len(committed))
			}
		}
	}
	t.Logf("%d records, %d acknowledged", len(committed), len(acknowledged))
}

// serveProcess starts the real program and waits until it answers. kill kills it
// with SIGKILL.
func serveProcess(t *testing.T, config string) (url string, kill func()) {
	t.Helper()
	address := "127.0.0.1:" + freePort(t)
	cmd := exec.CommandContext(t.Context(), "stopgate", "serve", "--config", config, "--listen", address)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	t.Cleanup(kill)
	url = "http://" + address
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get(url + "/healthz"); err == nil {
			resp.Body.Close()
			return url, kill
		}
		if time.Now().After(until) {
			kill()
			t.Fatalf("it does not answer: %s", &said)
		}
	}
}

// decide asks for one decision.
func decide(url, session string) (id string, err error) {
	resp, err := http.Post(url+"/v1/evaluate", "application/json", strings.NewReader(`{"hook_event_name":"PreToolUse","tool_name":"Bash","agent_name":"default","session_id":"`+session+`"}`))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var d gate.Decision
	if err := json.NewDecoder(resp.Body).Decode(&d); err != nil {
		return "", err
	}
	if d.EvaluationID == "" {
		return "", fmt.Errorf("answer %s", resp.Status)
	}
	return d.EvaluationID, nil
}

// committedIn is what a data directory holds: each record's session.
func committedIn(t *testing.T, data string) map[string]string {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Dir: data, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all := map[string]string{}
	for f := (gate.RecordFilter{Limit: 1000}); ; {
		items, next, err := s.Records(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			all[i.EvaluationID] = i.Session
		}
		if f.Cursor = next; next == "" {
			return all
		}
	}
}

// missingFrom counts the records that lines lack. Each line is whole, and the
// first time that records of a session come they come in order: ids are.
func missingFrom(t *testing.T, lines []byte, committed map[string]string) int {
	t.Helper()
	seen, last := map[string]bool{}, map[string]string{}
	scan := bufio.NewScanner(bytes.NewReader(lines))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var r gate.Record
		if err := json.Unmarshal(scan.Bytes(), &r); err != nil {
			if bytes.HasSuffix(lines, scan.Bytes()) {
				continue // it is being written
			}
			t.Fatalf("line %q: %v", scan.Bytes(), err)
		}
		if seen[r.EvaluationID] {
			continue
		}
		if committed[r.EvaluationID] == "" || r.EvaluationID < last[r.Session] {
			t.Fatalf("%s of %q comes after %s", r.EvaluationID, r.Session, last[r.Session])
		}
		seen[r.EvaluationID], last[r.Session] = true, r.EvaluationID
	}
	return len(committed) - len(seen)
}
