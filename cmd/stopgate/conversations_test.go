package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stopgate/config"
	"stopgate/store/postgres/postgrestest"
	"stopgate/transcripts"
)

// spoken are secrets of every built-in kind as a conversation has them, and the part
// that gives each away.
func spoken(t *testing.T) (text string, parts []string) {
	t.Helper()
	key := strings.Repeat("MIIEowIBAAKCAQEA7x4Qm2cdef/+ab"+"Kq0\n", 20)
	secrets := map[string][2]string{
		"private_key":   {"-----BEGIN RSA PRIVATE KEY-----\n" + key + "-----END RSA PRIVATE KEY-----", "KCAQEA7x4Qm2"},
		"url_userinfo":  {"postgres://root:hunter2xhunter2@db/x", "hunter2xhunter2"},
		"jwt":           {"eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N", "dozjgNryP4J3"},
		"bearer":        {"Authorization: Bearer " + "Zq8abcdefABCDEF0123456789", "Zq8abcdef"},
		"aws_key":       {"AKIA" + "IOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"},
		"aws_secret":    {"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY", "wJalrXUtnFEMI"},
		"github_token":  {"ghp_" + strings.Repeat("q7Rt", 9), "q7Rtq7Rt"},
		"gitlab_token":  {"glpat-" + strings.Repeat("v3Wp-", 5), "v3Wp-v3Wp"},
		"slack_token":   {"xoxb-" + "123456789012-123456789012-slackSLACK", "slackSLACK"},
		"api_key":       {"sk-" + "proj-" + strings.Repeat("z9Yx", 8), "z9Yxz9Yx"},
		"stopgate_key":  {"sg_" + strings.Repeat("h3k5xq7w", 8), "xq7wh3k5xq7w"},
		"azure_key":     {"AccountKey=" + strings.Repeat("Jd8+mV3/", 10) + "abcdefg==", "Jd8+mV3/Jd8+"},
		"webhook":       {"https://discord.com/api/webhooks/1234567890/" + strings.Repeat("hOOk4_", 10), "hOOk4_hOOk4_"},
		"signed_url":    {"https://x.example/c?sv=1&sig=" + strings.Repeat("sIg9", 11) + "%3D", "sIg9sIg9sIg9"},
		"token_field":   {"https://x.example/?access_token=tok3n" + "tok3ntok3ntok3n", "tok3ntok3ntok3n"},
		"cookie":        {"Cookie: sid=" + "c0okie5c0okie5; a=b", "c0okie5c0okie5"},
		"api_key_field": {"X-Api-Key: 5f0e" + "2a9bc41d7e63a8f0", "2a9bc41d7e63a8f0"},
		"email":         {"jane.doe@example.com", "jane.doe"},
		"card":          {"4111 1111 1111 1111", "4111 1111"},
		"server_secret": {"the collector's hush-hush-7f3a", "hush-hush-7f3a"},
	}
	for _, kind := range append([]string{"server_secret"}, config.BuiltInRedactions...) {
		if secrets[kind][0] == "" {
			t.Fatalf("there is no secret of the kind %s: write one", kind)
		}
		text += "a secret: " + secrets[kind][0] + " ;\n"
		parts = append(parts, secrets[kind][1])
	}
	return text, parts
}

// keepingRedacted is a server file that has conversations redacted, and a secret in a
// file.
func keepingRedacted(t *testing.T, data string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "stopgate.yaml")
	if err := os.WriteFile(filepath.Join(dir, "otlp"), []byte("Bearer hush-hush-7f3a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	content := fmt.Sprintf("data: %s\nsandbox: {mode: \"off\"}\nredaction: {conversations: redacted}\ntelemetry: {header_files: {Authorization: otlp}}\n", data)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// converse sends a conversation full of secrets in every way there is, and answers how
// many bytes of text/plain the server says it has.
func converse(t *testing.T, base, text string) (bytes int) {
	t.Helper()
	has := 0
	must := func(method, path, contentType, body string) {
		t.Helper()
		status, answer := send(t, method, base+path, contentType, body)
		if status != http.StatusOK {
			t.Fatalf("%s %s: %d %s", method, path, status, answer)
		}
		var size struct{ Bytes int }
		_ = json.Unmarshal([]byte(answer), &size) // some are no sizes
		has = size.Bytes
	}
	quoted, _ := json.Marshal(text)
	message := fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s},{"type":"tool_use","id":"1","name":"Bash","input":{"command":%[1]s}}]}`, quoted)
	arguments, _ := json.Marshal(`{"a":` + string(quoted) + `}`)
	calls := fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":"2","function":{"name":"B","arguments":%s}}]}`, arguments)
	host := fmt.Sprintf(`{"type":"assistant","uuid":"1","message":{"role":"assistant","content":[{"type":"text","text":%s},{"type":"tool_use","id":"3","name":"B","input":{"x-api-key":"5f0e`+`2a9bc41d7e63a8f0"}}]}}`+"\n", quoted)

	must("PUT", "/v1/sessions/text/transcript", "text/plain", text)
	for line := range strings.Lines(text) {
		must("POST", "/v1/sessions/pieces/transcript", "text/plain", line)
	}
	bytes = has
	must("PUT", "/v1/sessions/array/transcript", "application/json", "["+message+","+calls+"]")
	must("PUT", "/v1/sessions/string/transcript", "application/json", string(quoted))
	must("PUT", "/v1/sessions/messages/transcript", "application/x-ndjson", message+"\n"+calls+"\n")
	must("POST", "/v1/sessions/messages/transcript", "application/x-ndjson", message+"\n")
	for at := 0; at < 2*len(host); at = has { // a part that is cut is taken up to its last line
		part := (host + host)[at:]
		must("POST", fmt.Sprintf("/v1/sessions/host/transcript?format=claude-code&at=%d&after=%s", at, tailOf(t, (host + host)[:at])), "application/x-ndjson", part[:min(len(part), len(host)+len(host)/3)])
	}
	for n, inline := range []string{string(quoted), "[" + message + "," + calls + "]"} {
		event := fmt.Sprintf(`{"hook_event_name":"Stop","agent_name":"default","session_id":"inline%d","transcript":%s}`, n, inline)
		must("POST", "/v1/evaluate", "application/json", event)
		must("POST", "/v1/evaluate", "application/json", strings.Replace(event, `"session_id":"inline`, `"unnamed":"`, 1))
	}
	for _, session := range []string{"text", "pieces", "array", "string", "messages", "host", "inline0", "inline1"} {
		if status, answer := send(t, "GET", base+"/v1/sessions/"+session+"/transcript", "", ""); status != http.StatusOK || !strings.Contains(answer, "[redacted:") {
			t.Errorf("%s shows %d %.300s", session, status, answer)
		}
	}
	return bytes
}

func tailOf(t *testing.T, text string) string {
	t.Helper()
	tail, err := transcripts.Tail(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	return tail
}

// Where conversations are kept redacted no secret of one is on the disk, whatever way
// it came, nor in the view of a host's own file while its session goes on; judges and
// all who read it see it redacted.
func TestConversationsAreKeptRedacted(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	text, parts := spoken(t)
	s := newServiceWith(t, data, keepingRedacted(t, data))
	s.answer = func(request string) string {
		if !strings.Contains(request, "functionResponse") {
			return `call:{"name":"ReadFile","args":{}}`
		}
		return `{"ok":true}`
	}
	s.putAgent("a", `"Stop":[{"type":"prompt","prompt":"p"}]`)
	if got := converse(t, s.url, text); got != len(text) {
		t.Errorf("%d bytes of text are there, %d were sent", got, len(text))
	}
	quoted, _ := json.Marshal(text)
	own := filepath.Join(s.transcriptRoot, "own.jsonl")
	if err := os.WriteFile(own, fmt.Appendf(nil, `{"type":"user","uuid":"1","message":{"role":"user","content":%s}}`+"\n", quoted), 0o600); err != nil {
		t.Fatal(err)
	}
	event, _ := json.Marshal(map[string]any{"hook_event_name": "Stop", "session_id": "own", "transcript_path": own, "last_assistant_message": "Done.", "cwd": "/"})
	if status, answer := s.do(http.MethodPost, "/v1/hooks/claude-code?agent=a", "application/json", event); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	asked := strings.Join(s.requests, "\n")
	if !strings.Contains(asked, "functionResponse") || !strings.Contains(asked, "[redacted:private_key]") {
		t.Errorf("the judge did not read the conversation: %.2000s", asked)
	}
	if found := filesWith(t, filepath.Join(data, "transcripts", "tmp"), "[redacted:"); len(found) == 0 {
		t.Error("no view is kept: the test does not see it")
	}
	for _, part := range parts {
		if found := filesWith(t, data, part); len(found) > 0 {
			t.Errorf("%s is in %v", part, found)
		}
	}
	// The host's own file is the host's.
	if b, err := os.ReadFile(own); err != nil || !bytes.Contains(b, []byte(parts[len(parts)-1])) {
		t.Errorf("the host's file has changed: %v", err)
	}
}

// A server that is killed while a conversation comes leaves no secret either.
func TestKilledWhileUploadingRedacted(t *testing.T) {
	text, parts := spoken(t)
	quoted, _ := json.Marshal(text)
	for name, c := range map[string]struct{ path, contentType, piece string }{
		"text":        {"?", "text/plain", text},
		"messages":    {"?", "application/x-ndjson", fmt.Sprintf(`{"role":"user","content":%s}`+"\n", quoted)},
		"host's file": {"?format=claude-code&at=0", "application/x-ndjson", fmt.Sprintf(`{"type":"user","uuid":"1","message":{"role":"user","content":%s}}`+"\n", quoted)},
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			base, kill := serveProcess(t, keepingRedacted(t, data))
			body, out := io.Pipe()
			sent := make(chan error, 1)
			go func() {
				req, err := http.NewRequest(http.MethodPost, base+"/v1/sessions/s/transcript"+c.path, body)
				if err == nil {
					req.Header.Set("Content-Type", c.contentType)
					var resp *http.Response
					if resp, err = http.DefaultClient.Do(req); err == nil {
						resp.Body.Close()
					}
				}
				body.CloseWithError(io.ErrClosedPipe)
				sent <- err
			}()
			spooled := false
			for until := time.Now().Add(30 * time.Second); !spooled && time.Now().Before(until); { // as much as it takes to be written
				if _, err := io.WriteString(out, c.piece); err != nil {
					t.Fatalf("%v, %v", err, <-sent)
				}
				spooled = len(filesWith(t, filepath.Join(data, "transcripts", "tmp"), "[redacted:")) > 0
			}
			kill()
			out.Close()
			if err := <-sent; err == nil || !spooled {
				t.Fatalf("spooled: %t; it was answered with %v", spooled, err)
			}
			for _, part := range parts {
				if found := filesWith(t, data, part); len(found) > 0 {
					t.Errorf("%s is in %v", part, found)
				}
			}
		})
	}
}

// Nor is one in any table of PostgreSQL, nor in a replica's copy.
func TestConversationsAreKeptRedactedInPostgres(t *testing.T) {
	database := postgrestest.Database(t)
	text, parts := spoken(t)
	one, two := t.TempDir(), t.TempDir()
	redaction := config.Redaction{BuiltIn: config.BuiltInRedactions, Conversations: true,
		Patterns: []config.RedactionPattern{{Name: "hush", Expr: "hush-hush-[0-9a-f]+"}}}
	first, second := replicaWith(t, one, database, redaction), replicaWith(t, two, database, redaction)
	if got := converse(t, first, text); got != len(text) {
		t.Errorf("%d bytes of text are there, %d were sent", got, len(text))
	}
	if status, answer := send(t, "GET", second+"/v1/sessions/messages/transcript", "", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, answer)
	}
	if found := tablesWith(t, database, "[redacted:"); len(found) < 2 {
		t.Errorf("marks are in %v alone: the test finds nothing", found)
	}
	for _, part := range parts {
		found := append(tablesWith(t, database, part), filesWith(t, one, part)...)
		if found = append(found, filesWith(t, two, part)...); len(found) > 0 {
			t.Errorf("%s is in %v", part, found)
		}
	}
}

// Where the original is kept, it is: the tests above would find it.
func TestConversationsAreKeptAsTheyCame(t *testing.T) {
	data := t.TempDir()
	text, parts := spoken(t)
	s := newServiceOn(t, data)
	if status, answer := s.do(http.MethodPut, "/v1/sessions/s/transcript", "text/plain", []byte(text)); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	for _, part := range parts {
		if len(filesWith(t, data, part)) != 1 {
			t.Errorf("%s is not found", part)
		}
	}
}

// Secrets of files that the server file names are known; a file that is not there yet
// is the matter of who needs it.
func TestSecretsOfFilesAreKnown(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"otlp": "Bearer of-the-collector\n", "siem": "of-the-sink", "tls.key": "of-the\nkey-itself\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config.Server{Auth: config.Auth{TLS: &config.TLS{Key: filepath.Join(dir, "tls.key")}},
		HTTPHooks: config.HTTPHooks{Proxy: &url.URL{Scheme: "http", User: url.UserPassword("u", "of-the-proxy"), Host: "proxy:1"}},
		Telemetry: config.Telemetry{HeaderFiles: map[string]string{"Authorization": filepath.Join(dir, "otlp"), "X-Gone": filepath.Join(dir, "gone")}},
		Export:    []config.Sink{{Headers: map[string]config.Secret{"X-Token": "of-the-header"}, HeaderFiles: map[string]string{"X-Key": filepath.Join(dir, "siem")}}}}
	r, err := redactorOf(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"of-the-collector", "of-the-sink", "of-the\nkey-itself", "of-the-proxy", "of-the-header"} {
		if got := r.Text("x " + secret + " y"); got != "x [redacted:server_secret] y" {
			t.Errorf("%q became %q", secret, got)
		}
	}
}
