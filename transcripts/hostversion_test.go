package transcripts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/gate"
	"stopgate/internal/contract"
)

// versionIn is the version that the view of a session file names. The host that
// wrote it must be the format's.
func versionIn(t *testing.T, format, file string) string {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, "t.jsonl")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	v := attach(t, openStore(t, Options{Roots: []string{root}}), &gate.Event{TranscriptPath: path, TranscriptFormat: format})
	return versionOf(t, v, format)
}

func versionOf(t *testing.T, v gate.Transcript, want string) string {
	t.Helper()
	host, version := v.(gate.ByHost).WrittenBy()
	if host != want {
		t.Errorf("written by %q, want %q", host, want)
	}
	return version
}

// The captured session of each host names the version that it was captured on
// (EFFECTS), read where it lies and as it was uploaded; Gemini CLI's names none.
func TestCapturedSessionsNameTheirVersion(t *testing.T) {
	sessions := contract.Dir(t, "wire")
	for format, want := range map[string]string{formatClaudeCode: "2.1.328", formatCodex: "0.169.0", formatQwenCode: "0.24.4", formatCopilot: "1.0.102", formatGeminiCLI: ""} {
		t.Run(format, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join(sessions, format, "transcript.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			file := string(content)
			if got := versionIn(t, format, file); got != want {
				t.Errorf("in place: %q, want %q", got, want)
			}
			s := openStore(t, Options{})
			sendParts(t, s, format, file[:1000], file[1000:])
			v := attach(t, s, &gate.Event{TranscriptSession: "s", TranscriptFormat: format})
			if got := versionOf(t, v, format); got != want {
				t.Errorf("uploaded: %q, want %q", got, want)
			}
		})
	}
}

// sendParts uploads a session file as the conversation "s".
func sendParts(t *testing.T, s *Store, format string, parts ...string) {
	t.Helper()
	sent := ""
	for _, part := range parts {
		tail, err := Tail(strings.NewReader(sent), int64(len(sent)))
		if err == nil {
			_, err = s.AppendFile(t.Context(), "s", 0, Part{Format: format, At: int64(len(sent)), After: tail}, strings.NewReader(part))
		}
		if err != nil {
			t.Fatal(err)
		}
		sent += part
	}
}

func TestVersionOfASessionFile(t *testing.T) {
	claude := func(version string) string {
		return claudeLine("user", "u"+version, "null", "", `"hi"`, `,"version":`+version)
	}
	for _, c := range []struct{ name, format, file, want string }{
		{"the last line counts: a newer program goes on", formatClaudeCode, claude(`"1.0"`) + claude(`"2.0"`), "2.0"},
		{"lines without one change nothing", formatClaudeCode, claude(`"1.0"`) + `{"type":"mode"}` + "\n", "1.0"},
		{"what a message says of a version is no version", formatClaudeCode, claudeUser("u", "null", `\"version\":\"9\"`) + claudeLine("user", "v", "u", "", `{"version":"9"}`, ""), ""},
		{"no text", formatClaudeCode, claude("7") + claude("null") + claude("true") + claude(`{"a":"b"}`) + claude(`["1.0"]`), ""},
		{"empty", formatClaudeCode, claude(`""`), ""},
		{"control characters", formatClaudeCode, claude(`"1.0\u001b[2J"`) + claude("\"1.0\x1b[2J\""), ""},
		{"markup", formatClaudeCode, claude(`"<script>"`), ""},
		{"64 bytes", formatClaudeCode, claude(`"` + strings.Repeat("1", 64) + `"`), strings.Repeat("1", 64)},
		{"a megabyte, after a good one", formatClaudeCode, claude(`"1.0"`) + claude(`"`+strings.Repeat("1", 1<<20)+`"`), "1.0"},
		{"a line that is cut off", formatClaudeCode, `{"type":"user","uuid":"u","version":"1.0","mess`, ""},
		{"qwen-code", formatQwenCode, `{"uuid":"u","type":"system","version":"0.1"}` + "\n" + `{"uuid":"v","type":"user","version":"0.2","message":{}}`, "0.2"},
		{"codex, in no other line", formatCodex, `{"type":"session_meta","payload":{"cli_version":"0.1"}}` + "\n" + `{"type":"response_item","payload":{"cli_version":"9"}}`, "0.1"},
		{"codex, named twice", formatCodex, `{"type":"session_meta","payload":{"cli_version":"0.1"}}` + "\n" + `{"type":"session_meta","payload":{"cli_version":"0.2"}}`, "0.2"},
		{"codex, without one", formatCodex, `{"type":"session_meta"}` + "\n" + `{"type":"session_meta","payload":"x"}`, ""},
		{"copilot's version of the file's own form is none", formatCopilot, `{"type":"session.start","data":{"version":1,"copilotVersion":"1.0"}}` + "\n" + `{"type":"user.message","data":{"copilotVersion":"9"}}`, "1.0"},
		{"gemini-cli names none", formatGeminiCLI, `{"id":"1","type":"user","content":"x","version":"9","cli_version":"9"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := versionIn(t, c.format, c.file); got != c.want {
				t.Errorf("%.80q, want %.80q", got, c.want)
			}
		})
	}
}
