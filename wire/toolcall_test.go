package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"stopgate/gate"
)

func TestResultTexts(t *testing.T) {
	for _, c := range []struct{ name, raw, want string }{
		{"absent", ``, ""},
		{"null", `null`, ""},
		{"a string", `"hello\n"`, "hello\n"},
		{"claude-code Bash", `{"stdout":"out\n","stderr":"err","interrupted":false}`, "out\nerr"},
		{"claude-code Bash, only errors", `{"stdout":"","stderr":"err"}`, "err"},
		{"claude-code Read", `{"type":"text","file":{"filePath":"/a","content":"x"}}`, `{"type":"text","file":{"filePath":"/a","content":"x"}}`},
		{"MCP blocks", `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, "a\nb"},
		{"an MCP result", `{"content":[{"type":"text","text":"a"}],"isError":false}`, "a"},
		{"an image stays what it is", `[{"type":"image","data":"AA=="}]`, `{"type":"image","data":"AA=="}`},
		{"gemini-cli", `{"llmContent":"Output: a","returnDisplay":"a"}`, "Output: a"},
		{"gemini-cli parts", `{"llmContent":[{"text":"a"},"b"]}`, "a\nb"},
		{"copilot", `{"resultType":"success","textResultForLlm":"a"}`, "a"},
		{"copilot PascalCase", `{"result_type":"success","text_result_for_llm":"a"}`, "a"},
		{"an object with text among much else", `{"text":"a","secret":"b"}`, `{"text":"a","secret":"b"}`},
		{"a number", `7`, "7"},
		{"no end of arrays", `[[[[[["x"]]]]]]`, `[["x"]]`},
		{"a thousand blocks", "[" + strings.Repeat(`"a",`, 999) + `"a"]`, strings.Repeat("a\n", 999) + "a"},
		{"more than that", "[" + strings.Repeat(`"a",`, 1000) + `"a"]`, "[" + strings.Repeat(`"a",`, 1000) + `"a"]`},
		{"more than that in one of them", "[" + `["b"],[` + strings.Repeat(`"a",`, 1000) + `"a"],["c"]]`, "[" + `["b"],[` + strings.Repeat(`"a",`, 1000) + `"a"],["c"]]`},
		{"more than that over several", "[" + strings.Repeat(`["a","b"],`, 400) + `"c"]`, "[" + strings.Repeat(`["a","b"],`, 400) + `"c"]`},
		{"white space between blocks", "[ \"a\" ,\n\t{\"text\": \"b\"} ]", "a\nb"},
		{"no blocks", `[]`, ""},
		{"a wrapper round null", `{"llmContent":null,"x":1}`, `{"llmContent":null,"x":1}`},
		{"content that is no list", `{"content":"a","b":1}`, `{"content":"a","b":1}`},
	} {
		if got := resultText(json.RawMessage(c.raw)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestToolInputs(t *testing.T) {
	for raw, want := range map[string]string{
		`{"command":"ls"}`:          `{"command":"ls"}`,
		`"{\"command\":\"ls\"}"`:    `{"command":"ls"}`,
		`"{broken"`:                 `"{broken"`,
		`"plain"`:                   `"plain"`,
		`[1]`:                       `[1]`,
		`"{\"a\":1}{\"second\":2}"`: `"{\"a\":1}{\"second\":2}"`,
	} {
		if got := string(toolInput(json.RawMessage(raw))); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
	if got := toolInput(nil); got != nil {
		t.Errorf("absent: %s", got)
	}
}

// DESIGN §7: one policy, written with Claude Code's names, for every host.
func TestToolAliases(t *testing.T) {
	for _, c := range []struct{ host, tool, want string }{
		{"codex", "apply_patch", "Write Edit"}, {"codex", "exec_command", "Bash"}, {"codex", "shell", "Bash"}, {"gemini-cli", "run_shell_command", "Bash"},
		{"qwen-code", "run_shell_command", "Bash"}, {"copilot", "bash", "Bash"}, {"antigravity", "code_execution", "Bash"},
		{"ax-code", "bash", "Bash"}, {"gemini-cli", "write_file", "Write"}, {"gemini-cli", "replace", "Edit"},
		{"copilot", "create", "Write"}, {"copilot", "edit", "Edit"}, {"ax-code", "multiedit", "Edit"},
		{"claude-code", "Bash", ""}, {"codex", "Bash", ""}, {"codex", "mcp__memory__shell", ""}, {"gemini-cli", "shell", ""},
		{"gemini-cli", "Run_Shell_Command", ""}, {"native", "bash", ""}, {"claude-code", "", ""},
	} {
		if got := strings.Join(Aliases(c.host, c.tool), " "); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.host, c.tool, got, c.want)
		}
	}
	for _, tool := range Tools() {
		for host, names := range tool.Hosts {
			if _, ok := Find(host); !ok {
				t.Errorf("%s: no host %q", tool.Name, host)
			}
			for _, name := range names {
				if name == tool.Name || name == "" {
					t.Errorf("%s: %s calls it %q", tool.Name, host, name)
				}
			}
		}
	}
	ev := decode(t, "gemini-cli", `{"hook_event_name":"BeforeAgent","tool_name":"run_shell_command"}`, Options{})
	if ev.ToolAliases != nil || ev.Name != gate.UserPromptSubmit {
		t.Errorf("%+v", ev)
	}
}

func BenchmarkDecodeStop(b *testing.B) {
	p, _ := Find("claude-code")
	payload := []byte(`{"session_id":"s","transcript_path":"/t.jsonl","cwd":"/w","prompt_id":"p","permission_mode":"default","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"done","background_tasks":[]}`)
	for b.Loop() {
		if _, err := p.Decode(payload, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecodeBlocks is a tool call whose result is 8 KB of content blocks, as MCP's are.
func BenchmarkDecodeBlocks(b *testing.B) {
	p, _ := Find("claude-code")
	payload := []byte(`{"session_id":"s","transcript_path":"/t.jsonl","cwd":"/w","permission_mode":"default","hook_event_name":"PostToolUse","tool_name":"mcp__files__read","tool_input":{"path":"main.go"},"tool_use_id":"t","tool_response":[{"type":"text","text":"` +
		strings.Repeat("func main runs the server. ", 300) + `"},{"type":"text","text":"done"}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Decode(payload, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
