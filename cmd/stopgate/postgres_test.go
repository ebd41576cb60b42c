package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"stopgate/config"
	"stopgate/store/postgres/postgrestest"
)

// TestPostgresScripts are scripts with a PostgreSQL: $DATABASE is its URL, with a
// password that the server does not ask for.
func TestPostgresScripts(t *testing.T) {
	postgrestest.Database(t) // or the test is skipped
	params := scripts(t, "postgres")
	prepare := params.Setup
	params.Setup = func(env *testscript.Env) error {
		env.Setenv("DATABASE", strings.Replace(postgrestest.Database(t), "stopgate@", "stopgate:hushhush@", 1))
		env.Setenv("PORT2", freePort(t))
		return prepare(env)
	}
	testscript.Run(t, params)
}

// replica serves on a database until the test ends, and answers its URL.
func replica(t *testing.T, database string) string {
	t.Helper()
	return replicaOn(t, t.TempDir(), database)
}

func replicaOn(t *testing.T, data, database string) string {
	t.Helper()
	return replicaWith(t, data, database, config.Redaction{BuiltIn: config.BuiltInRedactions})
}

func replicaWith(t *testing.T, data, database string, redaction config.Redaction) string {
	t.Helper()
	p := process{ctx: t.Context(), getenv: func(string) string { return "" }}
	cfg, err := loadConfig(p, "", overrides{data: data, sandbox: "off"})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Database = config.Secret(database)
	cfg.Transcripts.Roots, cfg.Redaction = nil, redaction
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv, app, err := newServer(p, cfg, slog.New(slog.DiscardHandler), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := app.close(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

func send(t *testing.T, method, url, contentType, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// soon waits for something that is promised within a second. Machines that are
// slow and busy get five.
func soon(t *testing.T, what string, true func() bool) {
	t.Helper()
	for until := time.Now().Add(5 * time.Second); !true(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not within a second: %s", what)
		}
	}
}

// TestReplicasSeeSpecs: what is put on one replica is in force on the other, and
// what is deleted is not, also when the connection that listens is cut.
func TestReplicasSeeSpecs(t *testing.T) {
	database := postgrestest.Database(t)
	one, two := replica(t, database), replica(t, database)
	const agent = "/api/v2/extendedAgent/agents/builder"
	known := func() bool {
		status, _ := send(t, "POST", two+"/v1/evaluate", "application/json", `{"hook_event_name":"Stop","agent_name":"builder","final_output":"x"}`)
		return status == http.StatusOK
	}
	put := func() {
		t.Helper()
		if status, answer := send(t, "PUT", one+agent, "application/json", `{"name":"builder","type":"ExtendedAgent","properties":{"instructions":"x"}}`); status != http.StatusAccepted {
			t.Fatalf("put: %d %s", status, answer)
		}
	}
	if known() {
		t.Fatal("the agent is known before it is put")
	}
	put()
	soon(t, "a put is in force", known)
	if status, answer := send(t, "DELETE", one+agent, "", ""); status != http.StatusNoContent {
		t.Fatalf("delete: %d %s", status, answer)
	}
	soon(t, "a deletion is in force", func() bool { return !known() })
	postgrestest.Exec(t, database, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'stopgate listener'`)
	put()
	soon(t, "a put after the listeners were cut is in force", known)
}

// TestReplicasReady: /readyz names the store, without its password.
func TestReplicasReady(t *testing.T) {
	url := replica(t, strings.Replace(postgrestest.Database(t), "stopgate@", "stopgate:hushhush@", 1))
	status, answer := send(t, "GET", url+"/readyz", "", "")
	var ready struct {
		Checks map[string]struct{ Reason string }
	}
	if err := json.NewDecoder(bytes.NewReader([]byte(answer))).Decode(&ready); err != nil || status != http.StatusOK {
		t.Fatalf("readyz: %d %s", status, answer)
	}
	if store := ready.Checks["store"].Reason; !strings.HasPrefix(store, "postgres /") || strings.Contains(answer, "hushhush") {
		t.Errorf("readyz: %s", answer)
	}
	sqlite := replica(t, "")
	if _, answer := send(t, "GET", sqlite+"/readyz", "", ""); !strings.Contains(answer, `"reason":"sqlite"`) {
		t.Errorf("readyz with SQLite: %s", answer)
	}
}

// TestAzure38ReplicasShareTheCap: Stops of one session that go to several
// replicas are counted together, up to the default cap of three.
func TestAzure38ReplicasShareTheCap(t *testing.T) {
	database := postgrestest.Database(t)
	urls := []string{replica(t, database), replica(t, database)}
	send(t, "PUT", urls[0]+"/api/v2/extendedAgent/agents/builder", "application/json",
		`{"name":"builder","type":"ExtendedAgent","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"never","failMode":"block"}]}}}`)
	soon(t, "the agent is known everywhere", func() bool {
		status, _ := send(t, "POST", urls[1]+"/v1/evaluate", "application/json", `{"hook_event_name":"Stop","agent_name":"builder","final_output":"x"}`)
		return status == http.StatusOK
	})
	for n := range 4 {
		_, answer := send(t, "POST", urls[n%2]+"/v1/evaluate", "application/json",
			`{"hook_event_name":"Stop","agent_name":"builder","session_id":"s1","final_output":"x"}`)
		var d struct {
			Decision string
			Forced   bool
			Count    int `json:"stop_rejection_count"`
		}
		if err := json.Unmarshal([]byte(answer), &d); err != nil {
			t.Fatal(err)
		}
		if last := n == 3; (d.Decision == "block") == last || d.Forced != last || !last && d.Count != n+1 {
			t.Errorf("stop %d: %s", n+1, answer)
		}
	}
}

// TestReplicasShareTranscripts: a conversation that was sent to one replica, in
// whatever parts, is judged on the other; what one erases is gone from both.
func TestReplicasShareTranscripts(t *testing.T) {
	database := postgrestest.Database(t)
	dirs := []string{t.TempDir(), t.TempDir()}
	urls := []string{replicaOn(t, dirs[0], database), replicaOn(t, dirs[1], database)}
	const path = "/v1/sessions/s1/transcript"
	read := func(n int) string {
		t.Helper()
		status, text := send(t, "GET", urls[n]+path, "", "")
		if status == http.StatusNotFound {
			return ""
		}
		return text
	}
	long := strings.Repeat("a line of some length, of which there are many\n", 20_000) // several pieces
	if status, answer := send(t, "PUT", urls[0]+path, "text/plain", long); status != http.StatusOK {
		t.Fatalf("put: %d %s", status, answer)
	}
	if status, answer := send(t, "POST", urls[1]+path, "text/plain", "the last line\n"); status != http.StatusOK {
		t.Fatalf("append: %d %s", status, answer)
	}
	for n := range urls {
		if read(n) != long+"the last line\n" {
			t.Errorf("replica %d reads another text", n)
		}
	}
	var sending sync.WaitGroup
	for n := range 20 {
		sending.Go(func() {
			if status, answer := send(t, "POST", urls[n%2]+path, "text/plain", fmt.Sprintf("line %d\n", n)); status != http.StatusOK {
				t.Errorf("append %d: %d %s", n, status, answer)
			}
		})
	}
	sending.Wait()
	text := read(0)
	if read(1) != text {
		t.Error("the replicas read different texts")
	}
	for n := range 20 {
		if strings.Count(text, fmt.Sprintf("\nline %d\n", n)) != 1 {
			t.Errorf("line %d is not there once", n)
		}
	}
	if status, answer := send(t, "DELETE", urls[0]+"/v1/sessions/s1", "", ""); status != http.StatusNoContent {
		t.Fatalf("erase: %d %s", status, answer)
	}
	for n := range urls {
		if read(n) != "" {
			t.Errorf("replica %d reads an erased text", n)
		}
		if copies, err := filepath.Glob(filepath.Join(dirs[n], "transcripts", "copies", "*")); err != nil || len(copies) != 0 {
			t.Errorf("replica %d has %v", n, copies)
		}
	}
}
