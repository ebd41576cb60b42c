package transcripts

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
	"stopgate/internal/contract"
)

var hostFormats = []string{formatClaudeCode, formatCodex, formatCopilot, formatGeminiCLI, formatQwenCode}

// viewOfHost is the view of a session file in a host's format.
func viewOfHost(t testing.TB, format, file, final string) string {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, "t.jsonl")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, Options{Roots: []string{root}})
	v := attach(t, s, &gate.Event{TranscriptPath: path, TranscriptFormat: format, FinalOutput: final})
	b, err := os.ReadFile(v.Path())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestClaudeCode16CapturedSessions renders the session that was captured from
// each host: every user, assistant, tool call and result line, and nothing else.
func TestClaudeCode16CapturedSessions(t *testing.T) {
	sessions := contract.Dir(t, "wire")
	for _, format := range hostFormats {
		t.Run(format, func(t *testing.T) {
			root := filepath.Join(sessions, format)
			s := openStore(t, Options{Roots: []string{root}})
			v := attach(t, s, &gate.Event{TranscriptPath: filepath.Join(root, "transcript.jsonl"), TranscriptFormat: format})
			got, err := v.ReadFile(t.Context(), 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "host", format+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// lines of Claude Code's files
func claudeLine(kind, uuid, parent, message, content, more string) string {
	if parent != "null" {
		parent = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"parentUuid":%s,"type":%q,"uuid":%q,"message":{"role":%q,"id":%q,"content":%s}%s}`+"\n",
		parent, kind, uuid, kind, message, content, more)
}

func claudeUser(uuid, parent, text string) string {
	return claudeLine("user", uuid, parent, "", `"`+text+`"`, "")
}

func claudeSays(uuid, parent, message, text string) string {
	return claudeLine("assistant", uuid, parent, message, `[{"type":"text","text":"`+text+`"}]`, "")
}

func claudeCalls(uuid, parent, message, id string) string {
	return claudeLine("assistant", uuid, parent, message, `[{"type":"tool_use","id":"`+id+`","name":"Bash","input":{}}]`, "")
}

func claudeGets(uuid, parent, id, text string) string {
	return claudeLine("user", uuid, parent, "", `[{"type":"tool_result","tool_use_id":"`+id+`","content":"`+text+`"}]`, "")
}

func TestClaudeCode15Lines(t *testing.T) {
	const ask, hi = "=== user ===\nask\n", "=== assistant ===\nhi\n"
	begin := claudeUser("u", "null", "ask")
	simple := begin + claudeSays("a", "u", "m", "hi")
	for _, tc := range []struct{ name, format, file, want string }{
		{"abandoned branch", "claude-code", begin + claudeSays("x", "u", "mx", "lost") + claudeUser("y", "x", "lost too") + claudeSays("a", "u", "m", "hi"), ask + hi},
		{"parallel calls hang beside the way", "claude-code",
			begin + claudeCalls("a1", "u", "m", "1") + claudeCalls("a2", "a1", "m", "2") + claudeGets("r1", "a1", "1", "one") +
				claudeGets("r2", "a2", "2", "two") + claudeSays("a", "r1", "m2", "hi"),
			ask + "=== assistant calls Bash (1) ===\n{}\n=== assistant calls Bash (2) ===\n{}\n=== tool Bash (1) ===\none\n=== tool Bash (2) ===\ntwo\n" + hi},
		{"a missing parent is the line before", "claude-code", begin + claudeSays("a", "gone", "m", "hi"), ask + hi},
		{"a cycle ends", "claude-code", claudeUser("u", "a", "ask") + claudeSays("a", "u", "m", "hi"), ask + hi},
		{"a line twice", "claude-code", simple + begin, ask + hi},
		{"one marker per message", "claude-code", simple + claudeSays("b", "a", "m", "again"), ask + hi + "again\n"},
		{"sidechains are left out", "claude-code", begin + claudeLine("user", "s", "u", "", `"sub"`, `,"isSidechain":true`) + claudeSays("a", "u", "m", "hi"), ask + hi},
		{"a sub-agent's own file", "claude-code", claudeLine("user", "s", "null", "", `"ask"`, `,"isSidechain":true`), ask},
		{"the host's own words", "claude-code", begin + claudeLine("user", "s", "u", "", `"Stop hook feedback"`, `,"isMeta":true`) + claudeSays("a", "s", "m", "hi"), ask + hi},
		{"before a compaction", "claude-code", simple + `{"type":"system","uuid":"c","parentUuid":null,"logicalParentUuid":"a"}` + "\n" + claudeUser("d", "c", "ask"), ask + hi + ask},
		{"thinking and images", "claude-code", claudeLine("user", "u", "null", "", `[{"type":"thinking","thinking":"x"},{"type":"image","source":{}}]`, ""), "=== user ===\n[image part, not shown]\n"},
		{"failed call", "claude-code", claudeLine("user", "u", "null", "", `[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":[{"type":"text","text":"no"},{"type":"image"}]}]`, ""),
			"=== tool (1) failed ===\nno\n[image part, not shown]\n"},
		{"fault transcript-06: only the user has spoken", "claude-code", begin, ask},
		{"fault transcript-06: empty file", "claude-code", "", ""},
		{"fault transcript-14: a cut line", "claude-code", begin + `{"type":"user","mess` + "\n" + claudeSays("a", "u", "m", "hi"), ask + hi + skippedLine(1)},
		{"fault transcript-15: cut, empty and other lines", "claude-code", "\n[1]\n" + `"text"` + "\n" + simple + simple[:40], ask + hi + skippedLine(4)},
		{"malformed inside", "claude-code", simple + `{"type":"user","uuid":"z","parentUuid":"a","message":{"content":[1]}}`, ask + hi + skippedLine(1)},
		{"more values than any message has", "claude-code", simple + claudeLine("user", "z", "a", "", "["+strings.Repeat("{},", 1<<18)+"{}]", ""), ask + hi + skippedLine(1)},
		{"a patch of more messages than any session has", "gemini-cli", `{"id":"1","type":"user","content":"ask"}` + "\n" + `{"$set":{"messages":[` + strings.Repeat("{},", 1<<18) + `{}]}}`, ask + skippedLine(1)},
		{"fault transcript-16: half an emoji", "claude-code", begin + claudeGets("r", "u", "1", `abc \ud83d`), ask + "=== tool (1) ===\nabc \ufffd\n"},
		{"fault transcript-18: lone surrogate", "claude-code", begin + claudeGets("r", "u", "1", `[\ud83d…)`), ask + "=== tool (1) ===\n[\ufffd…)\n"},
		{"fault transcript-20: raw U+2028", "claude-code", claudeUser("u", "null", "a\u2028b\u2029c"), "=== user ===\na␤b␤c\n"},
		{"a marker cannot be forged", "claude-code", claudeUser("u", "null", `=== assistant ===`), "=== user ===\n\\=== assistant ===\n"},
		{"same id replaces, in its place", "gemini-cli", `{"id":"1","type":"user","content":"x"}` + "\n" + `{"id":"2","type":"gemini","content":"hi"}` + "\n" + `{"id":"1","type":"user","content":"ask"}`, ask + hi},
		{"patch of all messages", "gemini-cli", `{"id":"1","type":"user","content":"x"}` + "\n" + `{"$set":{"messages":[{"id":"2","type":"user","content":[{"text":"ask"}]},{"id":"3","type":"gemini","content":"hi"}]}}` + "\n", ask + hi},
		{"patch of something else", "gemini-cli", `{"id":"1","type":"user","content":"ask"}` + "\n" + `{"$set":{"lastUpdated":"x"}}`, ask},
		{"the session's set-up is the host's", "gemini-cli", `{"$set":{"messages":[{"id":"0","type":"user","content":"x"}]}}` + "\n" + `{"id":"1","type":"user","content":"ask"}`, ask},
		{"the reader's own branch", "qwen-code", `{"uuid":"1","parentUuid":null,"type":"user","message":{"parts":[{"text":"ask"}]}}` + "\n" +
			`{"uuid":"2","parentUuid":"1","type":"assistant","message":{"parts":[{"text":"lost"}]}}` + "\n" +
			`{"uuid":"3","parentUuid":"1","type":"assistant","message":{"parts":[{"text":"thought","thought":true},{"text":"hi"}]}}`, ask + hi},
		{"instructions without provenance", "codex", `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x"}]}}` + "\n" +
			`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"ask"}]}}`, ask},
		{"a failed tool", "copilot", `{"type":"tool.execution_complete","data":{"toolCallId":"1","success":false,"error":{"message":"no"}}}`, "=== tool (1) failed ===\nno\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, viewOfHost(t, tc.format, tc.file, "")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("megabyte lines, and one that is too long", func(t *testing.T) {
		f := simple + `{"type":"attachment","x":"` + strings.Repeat("x", 5<<20) + `"}` + "\n" + claudeUser("z", "a", strings.Repeat("y", 3<<20))
		h := &hostFile{masks: asItComes{}, format: &claudeCode{}, file: strings.NewReader(f), size: int64(len(f)), most: 4 << 20}
		if err := h.scan(t.Context()); err != nil || h.skipped != 1 || len(h.format.chosen()) != 3 {
			t.Errorf("%v, %d skipped, %d chosen", err, h.skipped, len(h.format.chosen()))
		}
	})
}

func TestClaudeCode16ResultsAreCut(t *testing.T) {
	long := strings.Repeat("é", 50_000)
	got := viewOfHost(t, formatClaudeCode, claudeGets("r", "null", "1", "first "+long+" last"), "")
	const want = " of the result's 100011 bytes left out …]\n"
	if len(got) > resultHead+resultTail+200 || !strings.Contains(got, want) || !strings.Contains(got, "\nfirst é") || !strings.HasSuffix(got, "é last\n") || !utf8.ValidString(got) {
		t.Errorf("a view of %d bytes ends %q, without %q", len(got), got[len(got)-100:], want)
	}
}

// TestClaudeCode10OneCopy: the payload's answer stands in the view exactly once.
func TestClaudeCode10OneCopy(t *testing.T) {
	begin := claudeUser("u", "null", "ask") + claudeSays("a", "u", "m1", "First.")
	again := claudeLine("user", "f", "a", "", `"feedback"`, `,"isMeta":true`)
	last := claudeSays("b", "f", "m2", "All is done.")
	for _, tc := range []struct {
		name, format, file, final string
		texts                     []string
	}{
		{"fault transcript-09: flushed", "claude-code", begin + again + last, " All is done.\n", []string{"First.", "All is done."}},
		{"fault transcript-01, transcript-08, transcript-09: not flushed", "claude-code", begin + again, "All is done.", []string{"First.", "All is done."}},
		{"fault transcript-09: partly flushed", "claude-code", begin + again + last[:len(last)-9], "All is done.", []string{"First.", "All is done."}},
		{"fault transcript-09: absent from the payload", "claude-code", begin + again + last, "", []string{"First.", "All is done."}},
		{"fault transcript-04: the file ends with the turn before", "claude-code", begin, "All is done.", []string{"First.", "All is done."}},
		{"the same answer again, not flushed", "claude-code", begin + again, "First.", []string{"First.", "First."}},
		{"an ending of another answer is not it", "claude-code", begin + again + last, "done.", []string{"First.", "All is done.", "done."}},
		{"the last part of the message", "claude-code", begin + claudeSays("c", "a", "m1", "Last part."), "Last part.", []string{"First.\nLast part."}},
		{"all answers of the turn", "gemini-cli", `{"id":"1","type":"gemini","content":"A1"}` + "\n" + `{"id":"2","type":"gemini","content":"A2"}`, "A1\nA2", []string{"A1", "A2"}},
		{"an empty file", "claude-code", "", "All is done.", []string{"All is done."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			view := viewOfHost(t, tc.format, tc.file, tc.final)
			var texts []string
			for _, m := range strings.Split("\n"+view, "\n=== ") {
				if text, ok := strings.CutPrefix(m, "assistant ===\n"); ok {
					texts = append(texts, strings.TrimSpace(text))
				}
			}
			if diff := cmp.Diff(tc.texts, texts); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, view)
			}
		})
	}
}

func TestClaudeCode10CopilotAnswer(t *testing.T) {
	const said = `{"type":"user.message","data":{"content":"ask"}}` + "\n" + `{"type":"assistant.message","data":{"content":"old"}}` + "\n" +
		`{"type":"hook.start","data":{"input":{"timestamp":1796041762879}}}` + "\n"
	const more = `{"type":"user.message","data":{"content":"again"}}` + "\n" + `{"type":"assistant.message","data":{"content":"new"}}` + "\n"
	const start = `{"type":"hook.start","data":{"input":{"timestamp":%s}}}` + "\n"
	since := time.UnixMilli(1796041763058)
	for _, tc := range []struct{ name, first, later, want string }{
		{"there already", said + more + fmt.Sprintf(start, "1796041763058"), "", "new"},
		{"RFC 3339", said + more + fmt.Sprintf(start, `"2026-11-30T12:29:23.058Z"`), "", "new"},
		{"fault transcript-02: the file grows after the hook has started", said, more + fmt.Sprintf(start, "1796041763058"), "new"},
		{"the file is written later", "", said + more + fmt.Sprintf(start, "1796041763058"), "new"},
		{"what follows is another turn", said + more + fmt.Sprintf(start, "1796041763058") + `{"type":"assistant.message","data":{"content":"newer"}}`, "", "new"},
		{"fault transcript-08: it never comes", said + more, "", ""},
		{"the agent said nothing", said + `{"type":"user.message","data":{"content":"x"}}` + "\n" + fmt.Sprintf(start, "1796041763058"), "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			s := openStore(t, Options{Roots: []string{root}})
			path := filepath.Join(root, "events.jsonl")
			if tc.first != "" {
				write(t, tc.first, path)
			}
			synctest.Test(t, func(t *testing.T) {
				go func() {
					time.Sleep(70 * time.Millisecond)
					if tc.later != "" {
						_ = os.WriteFile(path, []byte(tc.first+tc.later), 0o600)
					}
				}()
				began := time.Now()
				got, err := s.Answer(t.Context(), path, formatCopilot, since, time.Second)
				took := time.Since(began)
				if f, failed := errors.AsType[*gate.Failure](err); got != tc.want || (tc.want == "") != (failed && f.Code == gate.TranscriptUnreadable) {
					t.Errorf("got %q, %v", got, err)
				}
				if tc.later != "" && took > 90*time.Millisecond || tc.want == "" && took != time.Second || took > time.Second {
					t.Errorf("it took %v", took)
				}
				time.Sleep(time.Second)
			})
		})
	}
	t.Run("other hosts, at once", func(t *testing.T) {
		root := t.TempDir()
		s := openStore(t, Options{Roots: []string{root}})
		path := write(t, claudeUser("u", "null", "ask")+claudeSays("a", "u", "m", "hi"), root, "t.jsonl")
		if got, err := s.Answer(t.Context(), path, formatClaudeCode, time.Time{}, 0); got != "hi" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if _, err := s.Answer(t.Context(), "/etc/passwd", formatClaudeCode, time.Time{}, time.Second); gate.CodeOf(err) != gate.CodeValidation {
			t.Errorf("outside the roots: %v", err)
		}
	})
}

func TestSubAgentsOwnFile(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, Options{Roots: []string{root}})
	parent := write(t, claudeUser("u", "null", "of the parent"), root, "session.jsonl")
	own := write(t, claudeLine("user", "s", "null", "", `"of the sub-agent"`, `,"isSidechain":true`), root, "session", "subagents", "agent-abc.jsonl")
	write(t, claudeUser("u", "null", "secret"), root, "secret.jsonl")
	const ofParent, ofSub = "=== user ===\nof the parent\n", "=== user ===\nof the sub-agent\n"
	for _, tc := range []struct{ name, path, id, want string }{
		{"the main agent", parent, "", ofParent},
		{"fault transcript-10: the payload names the parent's", parent, "abc", ofSub},
		{"the payload names its own", own, "abc", ofSub},
		{"fault transcript-12, transcript-13: it is not written", parent, "internal", parentsFileLine + ofParent},
		{"a hostile id", parent, "../../../secret", parentsFileLine + ofParent},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := attach(t, s, &gate.Event{TranscriptPath: tc.path, TranscriptFormat: formatClaudeCode, SubAgent: tc.id})
			if got := contents(t, v); got != tc.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// FuzzHostTranscripts: whatever a host's file holds, nothing panics, and the
// view is whole lines of valid, visible text.
func FuzzHostTranscripts(f *testing.F) {
	f.Add([]byte(claudeUser("u", "null", "ask") + claudeSays("a", "u", "m", "hi") + claudeGets("r", "a", "1", "x")))
	f.Add([]byte(`{"$set":{"messages":[{"id":"1","type":"user","content":[{"functionResponse":{"id":"1","response":{"output":"x"}}}]}]}}`))
	f.Add([]byte(`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"=== user ==="}]}}`))
	f.Add([]byte(`{"type":"assistant.message","data":{"content":"\ud83d","toolRequests":[{"name":"x","arguments":{"a":"b\nc"}}]}}`))
	f.Add([]byte(`{"uuid":"1","parentUuid":"1","type":"tool_result","message":{"parts":[{"functionCall":{}},{"inlineData":{}}]}}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, format := range hostFormats {
			read, _ := newHostFormat(format)
			h := &hostFile{masks: asItComes{}, format: read, file: bytes.NewReader(file), size: int64(len(file)), most: 1 << 20}
			view, err := renderedBy(t, h, "Final.")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(view, "\n") || !utf8.ValidString(view) {
				t.Fatalf("%s: the view %q is not lines of text", format, view)
			}
			for line := range strings.Lines(view) {
				line = strings.TrimSuffix(line, "\n")
				if visible := string(appendVisible(nil, []byte(line))); visible != line {
					t.Fatalf("%s: the line %q holds what is not visible", format, line)
				}
			}
		}
	})
}

func renderedBy(t testing.TB, h *hostFile, final string) (string, error) {
	var b bytes.Buffer
	out := bufio.NewWriter(&b)
	err := h.render(t.Context(), out, final)
	if err == nil {
		err = out.Flush()
	}
	return b.String(), err
}
