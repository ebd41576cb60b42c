package install

import (
	"strings"
	"testing"

	"stopgate/gate"
)

// Whatever init writes into a host's file is known for stopgate's own there, for
// whoever reads the file as hooks; and so is what people make of it that does nothing
// else.
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
		"if it is there":          command(`[ -x /opt/stopgate ] || exit 0; exec /opt/stopgate hook --protocol claude-code`),
		"if it is found":          command(`command -v stopgate >/dev/null 2>&1 || exit 0; stopgate hook --protocol claude-code 2>/dev/null`),
		"by which":                command(`which stopgate &>/dev/null && stopgate hook --protocol claude-code || true`),
		"by if":                   command("if ! command -v stopgate >/dev/null; then exit 0; else\nSTOPGATE_SERVER=http://x stopgate hook --protocol codex\nfi"),
		"in the project":          command(`cd "$(git rev-parse --show-toplevel)" && { stopgate hook --protocol claude-code --agent "$AGENT"; }`),
		"exported":                command("export STOPGATE_SERVER=http://x A; (exec stopgate hook --protocol claude-code)"),
		"a variable's program":    command(`"${STOPGATE:-stopgate}" hook --protocol claude-code 2>>"$HOME/gate.log" # asks`),
		"two of them":             command("stopgate hook --protocol claude-code || stopgate-hook --protocol claude-code"),
		"args of env":             command("/usr/bin/env", "-u", "A", "B=c", "stopgate", "hook", "--protocol=claude-code"),
		"a gate by its flags":     command("./my-gate hook --protocol claude-code --agent=a --deadline 20 --unattended -f x.yaml"),
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

		// It asks, and does something that is its owner's: left out, that would be lost.
		"what comes after":          command("stopgate hook --protocol claude-code; ./real-check.sh"),
		"what comes before":         command("./check.sh && stopgate hook --protocol claude-code"),
		"never asked":               command("false && stopgate hook --protocol claude-code"),
		"what reads its answer":     command("stopgate hook --protocol claude-code | ./check.sh"),
		"what it reads":             command("./change.sh | stopgate hook --protocol claude-code"),
		"where it fails":            command("stopgate hook --protocol claude-code || exit 2"),
		"where it is not there":     command("command -v stopgate || exit 2; stopgate hook --protocol claude-code"),
		"beside it":                 command("./check.sh & stopgate hook --protocol claude-code"),
		"beside itself":             command("stopgate hook --protocol claude-code &"),
		"in an argument":            command(`stopgate hook --protocol claude-code --agent "$(./check.sh)"`),
		"in an argument, backwards": command("stopgate hook --protocol claude-code --agent `./check.sh`"),
		"in a variable":             command(`A=$(./check.sh) stopgate hook --protocol claude-code`),
		"in a redirection":          command("stopgate hook --protocol claude-code 2> >(./check.sh)"),
		"in arithmetic":             command(`stopgate hook --protocol claude-code --deadline $((a[$(./check.sh)]))`),
		"in a test":                 command(`[ -n "$(./check.sh)" ] && stopgate hook --protocol claude-code`),
		"in a here-document":        command("stopgate hook --protocol claude-code <<E\n$(./check.sh)\nE"),
		"to a file":                 command("stopgate hook --protocol claude-code > answer.json"),
		"from a file":               command("stopgate hook --protocol claude-code < other.json"),
		"turned round":              command("! stopgate hook --protocol claude-code"),
		"in a shell, and more":      command(`sh -c 'stopgate hook --protocol claude-code; ./check.sh'`),
		"a script of a shell":       command("bash ./check.sh stopgate hook --protocol claude-code"),
		"a script named hook":       command("python3 hook --protocol claude-code"),
		"a program that starts it":  command("./check.sh stopgate hook --protocol claude-code"),
		"another flag":              command("./my-gate hook --protocol claude-code --and-check ./x"),
		"env with a line":           command("env -S './check.sh' stopgate hook --protocol claude-code"),
		"a library of its own":      command("LD_PRELOAD=./check.so stopgate hook --protocol claude-code"),
		"a start-up file":           command("BASH_ENV=./check.sh bash -c 'stopgate hook --protocol claude-code'"),
		"env with such a file":      command("env", "BASH_ENV=./check.sh", "bash", "-c", "stopgate hook --protocol claude-code"),
		"a function of that name":   command("stopgate() { ./check.sh; }; stopgate hook --protocol claude-code"),
		"a trap":                    command("trap ./check.sh EXIT; stopgate hook --protocol claude-code"),
		"a file that is read":       command(". ./env.sh; stopgate hook --protocol claude-code"),
		"in a loop":                 command("while ./check.sh; do stopgate hook --protocol claude-code; done"),
		"args of a program":         command("./check.sh", "stopgate", "hook", "--protocol", "claude-code"),
		"no gate at all":            command("command -v stopgate || exit 0"),
		"in a test's variable":      command(`[ -v 'a[$(./check.sh)]' ] || stopgate hook --protocol claude-code`),
		"in a test's number":        command(`[[ 'a[$(./check.sh)]' -eq 0 ]] && stopgate hook --protocol claude-code`),
		"a prompt's expansion":      command("stopgate hook --protocol claude-code --agent ${X@P}"),
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
