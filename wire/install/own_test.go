package install

import (
	"strings"
	"testing"

	"stopgate/gate"
)

// Whatever init writes into a host's file is known for stopgate's own there, for
// whoever reads the file as hooks; and so is what people make of it.
func TestOwn(t *testing.T) {
	command := func(text string, args ...string) gate.Hook {
		return gate.Hook{Type: gate.CommandHook, Command: text, Args: args}
	}
	address := func(text string) gate.Hook { return gate.Hook{Type: gate.HTTPHook, URL: text} }
	for name, hook := range map[string]gate.Hook{
		"a URL":                   address("http://127.0.0.1:8790/v1/hooks/claude-code?agent=self"),
		"behind a prefix":         address("https://gate.example/team/v1/hooks/qwen-code?agent=self#x"),
		"with a slash":            address("http://localhost:8790/v1/hooks/copilot/"),
		"escaped":                 address("http://localhost:8790/v1/hooks/claude%2Dcode?agent=a%2Fv1"),
		"a protocol without init": address("http://localhost:8790/v1/hooks/antigravity?event=pre_tool_execution"),
		"stopgate hook":           command("stopgate hook --protocol claude-code --agent self"),
		"by its path":             command("/opt/stopgate/bin/stopgate-hook --protocol=codex"),
		"quoted":                  command(`"/opt/my tools/stopgate" hook --protocol 'gemini-cli'`),
		"variables and env":       command("STOPGATE_API_KEY=k env -u X A=1 stopgate hook --protocol claude-code"),
		"Windows":                 command(`"C:\Program Files\stopgate\Stopgate-Hook.exe" --protocol claude-code`),
		"Windows, stopgate.exe":   command(`env X=1 'C:\bin\stopgate.exe' hook --protocol claude-code`),
		"another name":            command("/opt/gate hook --protocol ax-code --agent a"),
		"where it is looked for":  command(`"$(command -v stopgate)" hook --protocol claude-code || true`),
		"in a shell":              command(`bash -lc 'cd / && exec stopgate hook --protocol claude-code'`),
		"in words of bash":        command(`[[ -x /x ]] && stopgate-hook --protocol claude-code <<< "$(cat)"`),
		"args":                    command("stopgate", "hook", "--protocol", "claude-code"),
		"args of a shell":         command("sh", "-c", "stopgate-hook --protocol claude-code"),
	} {
		t.Run(name, func(t *testing.T) {
			if !Own(&hook) {
				t.Errorf("%+v is not known for stopgate's own", hook)
			}
		})
	}
	for name, hook := range map[string]gate.Hook{
		"another route":     address("http://127.0.0.1:8790/v1/hooks/audit"),
		"no route":          address("https://hooks.example.com/?next=/v1/hooks/claude-code"),
		"another program":   command("python3 hook.py --protocol claude-code"),
		"a mention":         command(`echo "run stopgate hook --protocol claude-code"`),
		"another command":   command("stopgate validate --protocol claude-code ."),
		"no shell line":     command("stopgate hook ("),
		"a prompt about it": {Type: gate.PromptHook, Prompt: "stopgate hook --protocol claude-code"},
		"shells in shells":  command(strings.Repeat("bash -c \"", 40)),
	} {
		t.Run("not "+name, func(t *testing.T) {
			if Own(&hook) {
				t.Errorf("%+v is taken for stopgate's own", hook)
			}
		})
	}
	for _, h := range All() {
		for _, target := range []Target{{Server: "http://127.0.0.1:8790", Program: "/bin/stopgate"}, {Server: "https://gate.example", Program: "/bin/stopgate", Client: "/bin/stopgate-hook", Keyed: true}} {
			for _, e := range h.Entries(target) {
				hook := command(e.Command)
				if e.HTTP() {
					hook = address(e.URL)
				}
				if !Own(&hook) {
					t.Errorf("%s: %+v, which init writes, is not known for stopgate's own", h.Name, hook)
				}
			}
		}
	}
}
