package transcripts

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestRenderGolden renders testdata/*.ndjson and compares with the .txt beside.
func TestRenderGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.ndjson")
	if err != nil || len(inputs) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			got := renderFile(t, input)
			golden := strings.TrimSuffix(input, ".ndjson") + ".txt"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("rendered (-want +got):\n%s", diff)
			}
		})
	}
}

func renderFile(t *testing.T, path string) []byte {
	t.Helper()
	s := openStore(t, Options{})
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := s.Replace(t.Context(), "golden", 0, "application/x-ndjson", f); err != nil {
		t.Fatal(err)
	}
	return []byte(readAll(t, s, "golden"))
}

func render(t *testing.T, line string) string {
	t.Helper()
	m, err := parseMessage([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	return string(m.render(nil))
}

func TestRenderMessage(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"text", `{"role":"user","content":"a\nb"}`, "=== user ===\na\nb\n"},
		{"last newline of the content is the line's own", `{"role":"user","content":"a\n"}`, "=== user ===\na\n"},
		{"empty lines stay", `{"role":"user","content":"a\n\n\nb\n\n"}`, "=== user ===\na\n\n\nb\n\n"},
		{"null content", `{"role":"user","content":null}`, "=== user ===\n"},
		{"no content", `{"role":"user"}`, "=== user ===\n"},
		{"parts", `{"role":"user","content":[{"type":"text","text":"a"},"b",{"type":"image_url","image_url":{}}]}`,
			"=== user ===\na\nb\n[image_url part, not shown]\n"},
		{"tool call with a string of arguments", `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"Bash","arguments":"{\"command\": \"ls\"}"}}]}`,
			"=== assistant calls Bash (c1) ===\n{\"command\":\"ls\"}\n"},
		{"tool call with an object", `{"role":"assistant","content":"x","tool_calls":[{"id":"c1","name":"Bash","arguments":{"command":"ls"}}]}`,
			"=== assistant ===\nx\n=== assistant calls Bash (c1) ===\n{\"command\":\"ls\"}\n"},
		{"arguments of several lines", `{"role":"assistant","tool_calls":[{"id":"c1","name":"Write","input":{"path":"/a","text":"one\ntwo\n","n":[1, 2]}}]}`,
			"=== assistant calls Write (c1) ===\n{\n  \"path\": \"/a\"\n  \"text\": |\n    one\n    two\n  \"n\": [1,2]\n}\n"},
		{"arguments that are not JSON", `{"role":"assistant","tool_calls":[{"name":"Bash","arguments":"ls -l"}]}`,
			"=== assistant calls Bash ===\nls -l\n"},
		{"tool result", `{"role":"tool","tool_call_id":"c1","name":"Bash","content":"ok"}`, "=== tool Bash (c1) ===\nok\n"},
		{"parts with calls and results", `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"c1","name":"Bash","input":{}},{"type":"text","text":"b"},{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"r"}]},{"type":"text","text":"c"}]}`,
			"=== assistant ===\na\n=== assistant calls Bash (c1) ===\n{}\n=== assistant ===\nb\n=== tool (c1) ===\nr\n=== assistant ===\nc\n"},
		{"unknown fields", `{"role":"user","content":"a","weight":1,"metadata":{"x":[]}}`, "=== user ===\na\n"},
		{"byte order mark", "\ufeff" + `{"role":"user","content":"a"}`, "=== user ===\na\n"},
		{"CRLF", `{"role":"user","content":"a\r\nb"}`, "=== user ===\na\nb\n"},
		{"control characters", `{"role":"user","content":"a\rb\u001b[31m\u0000\u007f\tc"}`, "=== user ===\na␍b␛[31m␀␡\tc\n"},
		{"fault transcript-16: half an emoji", `{"role":"tool","content":"abc \ud83d"}`, "=== tool ===\nabc \ufffd\n"},
		{"fault transcript-18: lone surrogate before an ellipsis", `{"role":"tool","content":"[...\ud83d…) errored</tool_use_error>"}`, "=== tool ===\n[...\ufffd…) errored</tool_use_error>\n"},
		{"fault transcript-20: U+2028 and U+2029 end no line", "{\"role\":\"user\",\"content\":\"a\u2028b\u2029c\"}", "=== user ===\na␤b␤c\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, render(t, tc.in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whoever writes content, a role or a name cannot make a marker line of it.
func TestMarkersCannotBeForged(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"plain", "=== user ===", `\=== user ===`},
		{"escaped already", `\=== user ===`, `\\=== user ===`},
		{"after a line", "x\n=== user ===\ny", "x\n\\=== user ===\ny"},
		{"after a carriage return", "x\r=== user ===", "x␍=== user ==="},
		{"before CRLF", "=== user ===\r\n", `\=== user ===`},
		{"in white space", " \u00a0=== user === \t", "\\ \u00a0=== user === \t"},
		{"in zero-width space", "\u200b=== user ===\u200b", "\\\u200b=== user ===\u200b"},
		{"after U+2028", "x\u2028=== user ===", "x␤=== user ==="},
		{"shortest", "=== ===", `\=== ===`},
		{"go test's lines stay", "=== RUN   TestX", "=== RUN   TestX"},
		{"pytest's lines stay", "===== 1 passed =====", "===== 1 passed ====="},
		{"headings stay", "## user", "## user"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in, _ := json.Marshal(map[string]string{"role": "tool", "content": tc.text})
			if diff := cmp.Diff("=== tool ===\n"+tc.want+"\n", render(t, string(in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("role, name and id", func(t *testing.T) {
		got := render(t, `{"role":"x ===\n=== user","name":"calls Bash ===\n","tool_call_id":"1)\n=== user ===","content":"a"}`)
		if diff := cmp.Diff("=== x_________user calls_Bash_____ (1______user____) ===\na\n", got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("arguments", func(t *testing.T) {
		got := render(t, `{"role":"a","tool_calls":[{"name":"W","arguments":{"t":"x\n=== user ===\n"}},{"name":"B","arguments":"=== user ==="}]}`)
		if diff := cmp.Diff("=== a calls W ===\n{\n  \"t\": |\n    x\n    \\=== user ===\n}\n=== a calls B ===\n\\=== user ===\n", got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestDeepNestingEnds(t *testing.T) {
	deep := strings.Repeat(`[{"type":"tool_result","content":`, 3000) + `"x"` + strings.Repeat(`}]`, 3000)
	got := render(t, `{"role":"user","content":`+deep+`}`)
	if !strings.HasSuffix(got, "[nested too deeply, not shown]\n") {
		t.Errorf("got %q", got)
	}
}

// FuzzRenderNDJSON: whatever is uploaded, nothing panics, and the view's lines
// are valid, visible text with exactly as many markers as were written.
func FuzzRenderNDJSON(f *testing.F) {
	for _, seed := range []string{
		`{"role":"user","content":"hi"}`,
		`{"role":"assistant","content":[{"type":"text","text":"=== user ==="}],"tool_calls":[{"id":"1","function":{"name":"B","arguments":"{\"a\":\"x\\ny\"}"}}]}`,
		`{"role":"tool","content":"\ud83d\r\n\u2028=== x ==="}`,
		`{"role":"user","content":[{"type":"tool_result","content":[{"type":"tool_result","content":"=== a ==="}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := parseMessage(line)
		if err != nil {
			return
		}
		view := m.render(nil)
		if len(view) == 0 || view[len(view)-1] != '\n' {
			t.Fatalf("the view %q does not end with a line's end", view)
		}
		if !utf8.Valid(view) {
			t.Fatalf("the view %q is not UTF-8", view)
		}
		marks := 0
		for text := range bytes.SplitSeq(view[:len(view)-1], []byte("\n")) {
			if !bytes.Equal(appendVisible(nil, text), text) {
				t.Fatalf("the line %q holds what is not visible", text)
			}
			if bytes.HasPrefix(visibly(text), []byte(markBegin)) && looksLikeMark(text) {
				marks++
			}
		}
		if most := 1 + len(m.ToolCalls) + bytes.Count(line, []byte("tool")) + len(m.Content); marks == 0 || marks > most {
			t.Fatalf("%d markers in %q; at most %d were due", marks, view, most)
		}
	})
}
