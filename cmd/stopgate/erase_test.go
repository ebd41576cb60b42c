package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"stopgate/store/postgres/postgrestest"
)

// secret is what is written by every route and must be gone.
const secret = "marker-of-what-is-erased-7f3a"

// writeEverywhere sends the secret by every route that takes a session's data.
// The session's own name has it too.
func writeEverywhere(t *testing.T, ask func(method, path, contentType, body string, headers ...string) int) {
	t.Helper()
	must := func(want int, method, path, contentType, body string, headers ...string) {
		t.Helper()
		if got := ask(method, path, contentType, body, headers...); got != want {
			t.Fatalf("%s %s: %d, want %d", method, path, got, want)
		}
	}
	const session = "s-" + secret
	const stop = `{"hook_event_name":"Stop","agent_name":"default","session_id":"` + session + `","final_output":"` + secret + `"`
	must(202, "PUT", "/api/v2/extendedAgent/hooks/onDemand", "application/json", `{"name":"onDemand","type":"GlobalHook","properties":{"eventType":"Stop",
		"activationMode":"onDemand","hook":{"type":"prompt","prompt":"say no"}}}`)
	must(202, "PUT", "/api/v2/extendedAgent/hooks/always", "application/json", `{"name":"always","type":"GlobalHook","properties":{"eventType":"Stop",
		"activationMode":"always","hook":{"type":"prompt","prompt":"judge $ARGUMENTS","failMode":"Block"}}}`)
	must(200, "PUT", "/v1/sessions/"+session+"/transcript", "text/plain", "said: "+secret+"\n")
	must(200, "POST", "/v1/sessions/"+session+"/transcript", "application/x-ndjson", `{"role":"user","content":"`+secret+`"}`)
	must(200, "POST", "/v1/sessions/part-"+secret+"/transcript?format=claude-code&at=0", "application/x-ndjson",
		`{"type":"user","uuid":"1","message":{"role":"user","content":"`+secret+`"}}`+"\n")
	must(200, "POST", "/api/v1/threads/"+session+"/hooks/onDemand/activate", "application/json", `{}`)
	must(200, "POST", "/v1/evaluate", "application/json", stop+`}`, "Idempotency-Key: "+secret)
	must(200, "POST", "/v1/evaluate", "application/json", stop+`,"transcript":[{"role":"user","content":"`+secret+`"}]}`)
	must(200, "POST", "/v1/hooks/claude-code", "application/json", `{"hook_event_name":"PreToolUse","session_id":"`+session+`","tool_name":"Bash","tool_input":{"command":"`+secret+`"},"cwd":"/"}`)
	must(200, "POST", "/v1/dry-run", "application/json", stop+`,"spec":{"name":"default","properties":{"hooks":{}}}}`)
	must(200, "GET", "/v1/sessions/"+session, "", "")
}

func eraseAll(t *testing.T, ask func(method, path, contentType, body string, headers ...string) int) {
	t.Helper()
	for _, session := range []string{"s-" + secret, "part-" + secret} {
		if got := ask("DELETE", "/v1/sessions/"+session, "", ""); got != 204 {
			t.Fatalf("erase: %d", got)
		}
		if got := ask("GET", "/v1/sessions/"+session, "", ""); got != 404 {
			t.Errorf("after it: %d", got)
		}
	}
}

// filesWith are the files below a directory that have a secret in them, or in
// their name.
func filesWith(t *testing.T, dir, secret string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(secret)) || strings.Contains(path, secret) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestEraseLeavesNothingOnDisk, while the server runs: neither in the database,
// nor in its log, nor in the transcripts.
func TestEraseLeavesNothingOnDisk(t *testing.T) {
	data, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "stopgate.yaml")
	down := httptest.NewServer(http.NotFoundHandler()) // a sink that never takes anything
	defer down.Close()
	if err := os.WriteFile(file, fmt.Appendf(nil, "export: {sinks: {siem: {kind: http, url: %q}}}\n", down.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServiceWith(t, data, file)
	s.answer = func(string) string { return `{"ok":false,"reason":"` + secret + `"}` }
	ask := func(method, path, contentType, body string, headers ...string) int {
		return askStatus(t, s.url, method, path, contentType, body, headers...)
	}
	writeEverywhere(t, ask)
	if found := filesWith(t, data, secret); len(found) < 3 { // database or its log, and two transcripts
		t.Fatalf("before it is erased it is in %v alone: the test finds nothing", found)
	}
	eraseAll(t, ask)
	if found := filesWith(t, data, secret); len(found) > 0 {
		t.Errorf("it is still in %v", found)
	}
}

func askStatus(t *testing.T, base, method, path, contentType, body string, headers ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode/100 != 2 {
		t.Logf("%s %s: %s", method, path, answer)
	}
	return resp.StatusCode
}

// TestEraseLeavesNothingInAnyTable of PostgreSQL, nor on the disk of the replica
// that erased.
func TestEraseLeavesNothingInAnyTable(t *testing.T) {
	database, data := postgrestest.Database(t), t.TempDir()
	url := replicaOn(t, data, database)
	ask := func(method, path, contentType, body string, headers ...string) int {
		return askStatus(t, url, method, path, contentType, body, headers...)
	}
	postgrestest.Exec(t, database, `INSERT INTO stopgate.sinks (name, seen) VALUES ('siem', 9e15::bigint)`)
	writeEverywhere(t, ask)
	if found := tablesWith(t, database, secret); len(found) < 5 {
		t.Fatalf("before it is erased it is in %v alone: the test finds nothing", found)
	}
	eraseAll(t, ask)
	if found := tablesWith(t, database, secret); len(found) > 0 {
		t.Errorf("it is still in %v", found)
	}
	if found := filesWith(t, data, secret); len(found) > 0 {
		t.Errorf("it is still in %v", found)
	}
}

// tablesWith are the tables that have a secret in a row.
func tablesWith(t *testing.T, database, secret string) (found []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), `SELECT table_name FROM information_schema.tables WHERE table_schema = 'stopgate'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		var n int
		// A row as text has its bytes in hex.
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM `+pgx.Identifier{"stopgate", table}.Sanitize()+` AS t WHERE strpos(t::text, $1) > 0 OR strpos(t::text, $2) > 0`,
			secret, hex.EncodeToString([]byte(secret))).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			found = append(found, table)
		}
	}
	return found
}
