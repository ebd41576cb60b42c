package config

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"stopgate/gate"
)

// What looks harmless and prints an answer that is not seen. Each of these was, or
// could have been, converted without a word about its answer.
func TestSeenHarmlessAndIsNot(t *testing.T) {
	const deny = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}`
	files := map[string]string{
		"deny.json":     deny,
		"ok.sh":         "#!/bin/bash\nexit 0\n",
		"hook.sh":       "exit 0\n",
		"ok.py":         "import sys\nsys.exit(0)\n",
		"json/ok.py":    "import json, sys\njson.load(sys.stdin)\n",
		"quoted.py":     "'''\nprint(open('deny.json').read())\n'''\n",
		"both.sh":       "#!/bin/sh\ncurl x &>/dev/null\nexit 0\n",
		"nested.sh":     "#!/bin/sh\n((curl x))\nexit 0\n",
		"zsh.sh":        "#!/bin/zsh\n< deny.json\n",
		"json/_json.py": "print(1)\n", "json/traceback.py": "print(1)\n",
	}
	files["loads.py"] = "import json, sys\njson.load(sys.stdin)\n"
	for kind, lines := range map[string][]string{
		"a function by a program's path": {
			`/bin/grep() { curl x; }; /bin/grep -q y`, `/usr/bin/true() { cat deny.json; }; /usr/bin/true`,
			"function /bin/cat { curl x; }; /bin/cat <<E\nx\nE",
		},
		"a function by a program's name": {`grep() { curl x; }; grep -q y`, `[() { curl x; }; [ -n y ]`, `exit() { curl x; }; exit 2`, `printf() { cat deny.json; }; printf x`},
		"another standard input than the here-document": {
			"cat <<E < deny.json\nhi\nE", "cat 3<<E\nhi\nE", "bash 3<<'E'\nexit 2\nE", "bash <<'E' < x\nexit 2\nE", "cat 4<<< hi",
		},
		"a process in the words": {`: >(cat deny.json)`, `true > >(cat deny.json)`, `grep -q x >(curl y)`, `x=>(curl y)`},
		"a command in a number": {
			`x='a[$(cat deny.json >/proc/$$/fd/1)]'; [[ $x -eq 1 ]]`, `x='a[$(curl x >/dev/stdout)]'; (( x ))`, `let 'a[$(curl x >/dev/stdout)]'`,
			`x='a[$(curl x >/proc/self/fd/2)]'; exit $((x))`, `[ -v 'a[$(curl x >/dev/stdout)]' ]`, `test -v 'a[$(curl x)]'`, `[[ -v 'a[$(curl x)]' ]]`, `: "${x:$y}"`, `: "${a[$y]}"`,
		},
		"a word of the shell's that is printed": {`command -v {; echo '"decision":"block"}'`, `x={; command -v "$x"; echo '"decision":"block"}'`, `type {; echo '"decision":"block"}'`},
		"a function of a trap's":                {`trap '/bin/true() { curl x; }; /bin/true' EXIT`, `trap 'grep() { curl x; }; grep -q x' EXIT`, `trap 'grep() { curl x; }' EXIT; grep -q y`},
		"a prompt's text":                       {`x='$(curl y)'; echo "x${x@P}"`, `PS4='$(curl x)'; set -x; true`},
		"an interpreter's options": {
			"python3 -x quoted.py", "bash -s ok.sh <<'E'\ncurl x\nE", "sh -s ok.sh", "bash -i ok.sh", "node -p 1", "node -v ok.sh", "node -i", "python3 -i ok.py", "bash -l ok.sh",
			"python3 -e 'x'", "bash -e -s ok.sh", "sh +s ok.sh", "bash -v -s", "node -x ok.sh", "perl -n -e 1", "bash --init-file deny.sh ok.sh", "bash -O expand_aliases ok.sh", "python3 -S -s -",
		},
		"what another shell reads otherwise": {
			"sh both.sh", "both.sh", "sh -c 'curl x &>/dev/null'", "dash -c 'curl x &> /dev/null'", "nested.sh", "zsh zsh.sh", "./zsh.sh", "zsh -c '< deny.json'", "zsh -c 'curl x >&1 >/dev/null'",
			"sh -c '[[ a || curl x ]]'", "sh -c 'curl x >& y'", "sh -c 'f() { exit 2; }; function f { exit 0; }; f'", "sh -c 'curl x |& cat >/dev/null'",
		},
		"a file that is written first": {
			"echo 'cat deny.json' > ok.sh; sh ok.sh", "curl -o ok.sh x >/dev/null 2>&1; sh ok.sh", "echo 'print(1)' > json.py; python3 loads.py", "./make >/dev/null; . ok.sh >/dev/null; ./ok.sh",
			"sh hook.sh; npm test >/dev/null", "f() { echo x >> ok.sh; }; ./ok.sh; f", "{ echo x; } >| ok.sh && bash ok.sh", "mkdir -p x; touch y; curl x >/dev/null && python3 ok.py",
		},
		"a word that is several":      {`echo {'"a"':1,'"b"':2}`, `echo {,'{"decision":"block"}'}`, `echo ~`, `printf '%s' {'"a"':1,'"b"':2}`},
		"a project that is another's": {`CLAUDE_PROJECT_DIR=/evil; "$CLAUDE_PROJECT_DIR"/ok.sh`, `PWD=/evil; $PWD/ok.sh`, `for CLAUDE_PROJECT_DIR in /evil; do $CLAUDE_PROJECT_DIR/ok.sh; done`, `read -r PWD; $PWD/ok.sh`},
		"a module beside the script":  {"python3 json/ok.py"},
		"an answer of a helper's in Python": {
			`python3 -c 'import json
def f(x): return "{\"decision\":\"block\"}"
json.dumps = f
print(json.dumps({"decision": "approve"}))'`,
			`python3 -c 'import json
def f(x): return "y"
json.dumps, x = f, 1
print(json.dumps({"decision": "approve"}))'`,
			`python3 -c 'import json
def f(x): return "y"
for json.dumps in [f]: pass
print(json.dumps({"decision": "approve"}))'`,
			`python3 -c 'import json
def json(x): return x
def f(x): return "y"
json.dumps = f
print(json.dumps({"decision": "approve"}))'`,
			`python3 -c 'import re as json
print(json.dumps({"decision": "approve"}))'`,
			`python3 -c 'import json
def say(text): print(text)
say("{\"decision\":\"block\"}")'`,
			`python3 -c 'import json
def answer(word): return {"decision": word}
print(json.dumps(answer("block")))'`,
			`python3 -c 'import json
answer = {"decision": "approve"}
answer["decision"] = "block"
print(json.dumps(answer))'`,
			`python3 -c 'print("%s" % "{}")'`, `python3 -c 'print("{}".format(1))'`, `python3 -c 'print("x" if 0 else "{}")'`, `python3 -c 'print("" or "{}")'`,
		},
		"an answer of a helper's in JavaScript": {
			`node -e 'console.log("%s", "{\"decision\":\"block\"}")'`, `node -e 'console.log("%j", {decision: "block"})'`, `node -e 'console.log("x %O", {ok: false})'`,
			`node -e 'JSON.stringify = console.error'`, `node -e 'console.log(JSON.stringify({toJSON: 1}))'`, `node -e 'console.error = console.log; console.error("{}")'`,
			`node -e '/* */ console.log("x")'`, `node -e 'let f = () => console.log(1)'`,
		},
		"an answer of a helper's in shell": {
			`say() { echo "$1"; }; say '{"decision":"block"}'`, `say() { printf '%s' "$@"; }; say '{"decision":"block"}'`, `k=decision; echo "{\"$k\":\"block\"}"`,
			`answer() { jq -n --arg d "$1" '{decision: $d}'; }; answer block`, `f() { cat; }; f <<< '{"decision":"block"}'`, `f() { bash; }; f <<< 'curl x'`,
		},
	} {
		for _, line := range lines {
			c := converter{Conversion: Conversion{From: gate.ClaudeCode, Names: namesIn(files), Script: func(path string) (string, bool) {
				text, ok := files[strings.TrimPrefix(path, "./")]
				return text, ok
			}}}
			text := c.text(&declared{Hook: gate.Hook{Dialect: gate.ClaudeCode, Type: gate.CommandHook, Event: gate.PreToolUse, FailMode: gate.FailAllow, Command: line}})
			if !slices.ContainsFunc(answersIn[gate.ClaudeCode][gate.PreToolUse], func(w wording) bool { return w.in(text) != unsaid }) {
				t.Errorf("%s: nothing is said of\n%s", kind, line)
			}
		}
	}
}

// Whatever Python takes in for the modules that a script may name, and for an error
// that nobody catches, is looked for beside the script.
func TestPythonModulesAreLookedFor(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	out, err := exec.CommandContext(t.Context(), "python3", "-c", `import sys
before = set(sys.modules)
import json, re, traceback
json.loads(json.dumps({"a": 1})); re.compile("x").sub("y", "z")
try: json.loads("x")
except json.JSONDecodeError: traceback.format_exc()
print(" ".join(sorted(set(sys.modules) - before)))`).Output()
	taken := strings.Fields(string(out))
	if err != nil || len(taken) < 3 {
		t.Fatal(err, taken)
	}
	for _, module := range taken {
		top, _, _ := strings.Cut(module, ".")
		for _, name := range []string{top + ".py", top, top + ".so"} {
			if !(project{names: func(string) ([]string, bool) { return []string{"gate.py", name}, true }}).shadowed(".") {
				t.Errorf("%s may stand for %s, and is not looked for", name, module)
			}
		}
	}
	if (project{names: func(string) ([]string, bool) {
		return []string{"gate.py", "check_bash.sh", "__pycache__", "__init__.py"}, true
	}}).shadowed(".") {
		t.Error("a project's own names are taken for modules of Python's")
	}
}
