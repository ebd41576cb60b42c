package config

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"stopgate/gate"
)

// namesIn lists the directories of a project by its files' paths.
func namesIn(files map[string]string) func(dir string) ([]string, bool) {
	return func(dir string) (names []string, ok bool) {
		for name := range files {
			if path.Dir(name) == dir {
				names = append(names, path.Base(name))
			}
		}
		return names, true
	}
}

// What a hook prints that does not stand in its own text is not seen; a hook of
// which all is seen is converted without a word about its answer.
func TestSeenWhole(t *testing.T) {
	files := map[string]string{
		"pure.py":    "import json, sys\nevent = json.load(sys.stdin)\nif 'sudo' in event['tool_input']['command']:\n    print('no', file=sys.stderr)\n    sys.exit(2)\n",
		"caught.py":  "import re, sys, json\ntry:\n    json.load(sys.stdin)\nexcept json.JSONDecodeError:\n    sys.exit(0)\nif re.compile('x').search('pre_tool_execution'):\n    sys.exit(2)\n",
		"imports.py": "import json\nfrom common import verdict\nverdict()\n",
		"fetches.py": "import json, sys\nimport urllib.request\nprint(urllib.request.urlopen('x').read())\n",
		"starts.py":  "import subprocess\nsubprocess.run(['x'])\n",
		"opens.py":   "print(open('deny.json').read())\n",
		"joins.py":   "print('permission' + 'Decision')\n",
		"require.js": "require('./lib')(process)\n",
		"child.js":   "console.log(require('child_process').execSync('x').toString())\n",
		"lib.rb":     "require 'json'\nputs 1\n",
		"as.py":      "import json as j, common\ncommon.verdict()\n",
		"twice.py":   "import sys; import common\ncommon.verdict()\n",
		"braces.mjs": "import { verdict } from \"./lib.mjs\"\nverdict()\n",
		"effect.mjs": "import \"./lib.mjs\"\n",
		"file.rb":    "puts File.read(\"deny.json\")\n",
		"rel.rb":     "require_relative \"lib\"\n",
		"do.pl":      "do \"./lib.pl\";\n",
		"deny.json":  `{"hookSpecificOutput":{"permissionDecision":"deny"}}`,
		"lib.sh":     "ANSWER='{\"permissionDecision\":\"deny\"}'\ntrap 'curl x' EXIT\n",
		"ok.js":      "process.exit(0)\n", "hooks/ok.py": "import json, sys\n", "hooks/json.py": "print(open('deny.json').read())\n",
		"implicit.py": "print('{\"permission'\n      'Decision\": \"deny\"}')\n",
		"alias.py":    "read = open\nprint(read('deny.json').read())\n",
		"map.py":      "for f in map(open, ['deny.json']): print(f.read())\n",
		"chr.py":      "print(''.join(map(chr, [100, 101])))\n",
		"bytes.py":    "print(str(bytes.fromhex('64656e79'), 'ascii'))\n",
		"camel.py":    "print('permission_decision'.title().replace('_', ''))\n",
		"atob.js":     "console.log(atob('eyJk'))\n",
		"hex.js":      "console.log(Buffer.from('64656e79', 'hex').toString())\n",
		"uri.js":      "console.log(decodeURIComponent('%64eny'))\n",
		"join.js":     "console.log(['permission', 'Decision'].join(''))\n",
		"concat.js":   "console.log('permission'.concat('Decision'))\n",
		"builtin.js":  "process.getBuiltinModule('fs').createReadStream('deny.json').pipe(process.stdout)\n",
		"coding.py":   "# -*- coding: utf-7 -*-\nprint(+AG8-pen('deny.json').read())\n",
		"wide.py":     "print(ｏｐｅｎ('deny.json').read())\n",
		"again":       "curl x",
		"swapped.sh":  "{ curl x 1>&2; } 2>&1\n",
		"plain.sh":    "if grep -q sudo; then echo no >&2; exit 2; fi\n",
		"function.sh": "deny() { echo \"$1\" >&2; exit 2; }\ngrep -q sudo && deny no\n",
	}
	for line, want := range map[string]bool{
		"exit 2": true, "python3 pure.py": true, "python3 caught.py": true, "sh plain.sh": true, "bash function.sh": true,
		`jq -r .tool_input.command | grep -q sudo && exit 2`:       true,
		`jq -n --arg r "$x" '{reason: $r}'`:                        true,
		`sed -n 's/a/b/p' | tr a b | sort | cut -d : -f 1 | wc -l`: false,
		`printf '%s\n' no >&2; exit 2`:                             true,
		`npm test >/dev/null 2>&1 || exit 2`:                       true,
		`npm test >&2 || exit 2`:                                   true,
		`git rev-parse --show-toplevel`:                            false,
		`exit 2 </dev/null`:                                        true,
		"python3 imports.py":                                       false,
		"python3 fetches.py":                                       false,
		"python3 starts.py":                                        false,
		"python3 opens.py":                                         false,
		"python3 joins.py":                                         false,
		"node require.js":                                          false,
		"node child.js":                                            false,
		"ruby lib.rb":                                              false,
		"jq -f deny.jq":                                            false,
		"jq . deny.json":                                           false,
		`sed "" deny.json`:                                         false,
		"sed -f x":                                                 false,
		"tee < deny.json":                                          false,
		"awk -f x":                                                 false,
		`awk 'BEGIN{system("curl x")}'`:                            false,
		"sort deny.json":                                           false,
		"date -f deny.json":                                        false,
		`echo "$(<deny.json)"`:                                     false,
		`read -r x < deny.json; echo "$x"`:                         false,
		`git -c alias.x='!curl x' x`:                               false,
		`curl x 3>&1 1>&2 2>&3`:                                    false,
		`curl x 2>&1 >/dev/null`:                                   false,
		"sh swapped.sh":                                            false,
		`[ -n "$(cat again)" ] && sh again`:                        false,
		`echo '{"hookSpecificOutput":{"permission''Decision":"deny"}}'`: false,
		`echo '{"permissionDecision":"\u0064eny"}'`:                     false,
		"python3 as.py": false, "python3 twice.py": false, "node braces.mjs": false, "node effect.mjs": false,
		"ruby file.rb": false, "ruby rel.rb": false, "perl do.pl": false,
		"sort -f deny.json": false, "sort -d deny.json": false, "sed --quiet p deny.json": false, "sed --silent p deny.json": false,
		"sed 'r deny.json'": false, "sed '1e ./judge'": false, `jq -n 'import "./deny" as $d; $d'`: false, "grep -rh hookSpecific": false,
		`awk 'BEGIN{ARGV[1]="deny.json";ARGC=2} 1'`: false, "sed 's/a/b/e'": false, "sed 's/a/b/w x'": false,
		`trap 'curl x' EXIT`:   false,
		`echo x > "$(curl y)"`: false,
		"python3 - <<'PY'\nfrom common import verdict\nverdict()\nPY": false, "python3 <<'PY'\nprint(open('deny.json').read())\nPY": false, "bash <<'X'\ncurl x\nX": false, "bash -s <<'X'\ncurl x\nX": false, "node - <<'X'\nrequire('./lib')\nX": false, "ruby - <<'X'\nputs File.read('x')\nX": false,
		`. lib.sh >/dev/null; echo "$ANSWER"`: false, `source lib.sh >/dev/null 2>&1; exit 0`: false, `{ a=$(curl x); } >/dev/null; echo "$a"`: false, `{ exec 3>&1; curl x >/dev/fd/3; } 2>/dev/null >&2`: false,
		"NODE_OPTIONS='--require ./deny.js' node ok.js": false, "PYTHONPATH=lib python3 pure.py": false, "export PYTHONPATH=lib; python3 pure.py": false, "BASH_ENV=deny.sh bash -c 'exit 0'": false, `PATH=bin:$PATH; grep -q x`: false, "python3 hooks/ok.py": false,
		"python3 implicit.py": false, "python3 alias.py": false, "python3 map.py": false, "python3 chr.py": false, "python3 bytes.py": false, "python3 camel.py": false, "node atob.js": false, "node hex.js": false, "node uri.js": false, "node join.js": false, "node concat.js": false, "node builtin.js": false, "python3 wide.py": false, "python3 coding.py": false,
		`printf '{"%s%s":"deny"}' permission Decision`: false, `printf '{"permission\104ecision":"deny"}'`: false, `jq -n '"eyJk"|@base64d|fromjson'`: false, `v=DENY; echo "{\"decision\":\"${v,,}\"}"`: false, `printf DENY | tr A-Z a-z`: false,
		"grep --regexp=. deny.json": false, "grep --regexp . deny.json": false, "grep -hr=x . ": false, "wc --files0=x": false, "sort --files0=deny.json": false, "sed --fil=x": false, "awk --include=x 1": false, "awk -i x 1": false,
		// What nobody can know of an answer, in every way of putting it together.
		`echo "{\"hookSpecificOutput\":{\"permissionDecision\":\"${MODE:-allow}\"}}"`:                                                                                       false,
		`node -e 'console.log(JSON.stringify({hookSpecificOutput: {permissionDecision: process.env.MODE || "allow"}}))'`:                                                    false,
		`python3 -c 'import json,sys; d = json.load(sys.stdin); print(json.dumps({"hookSpecificOutput": {"permissionDecision": "allow" if d else d["tool_input"]["x"]}}))'`: false,
		`printf "{\"%s\":\"%s\"}" deci$X bl$Y`: false, `echo "$VERDICT"`: false, `jq -n env.VERDICT`: false, `awk 'BEGIN{print ENVIRON["V"]}'`: false, `awk --include=deny.awk 1`: false,
		`python3 -c 'import json; print(json.dumps({"".join(["permission","Decision"]):"deny"}))'`: false,
		`echo {; echo '"decision":"block"}'`: false, `printf '%s' '{' '"decision":"block"}'`: false, `echo '\173"decision":"block"}'`: false, `echo $'\x7b"decision":"block"}'`: false,
		`echo() { curl x; }; echo no`: false, `curl x >&3`: false, `exec >&2; curl x`: false, `read PATH; true`: false, `for PATH in x; do grep -q x; done`: false, `: "${PATH:=x}"`: false,
		`trap "$X" EXIT >/dev/null`: false, `eval "$X" >/dev/null`: false, `$X >/dev/null`: false, `printf -v PATH x >/dev/null`: false, `grep -e -q deny.json`: false, `curl x >/dev/stdout`: false,
		`echo '{"decision":"block"}' >/dev/null; exit 2`: true, `{ trap "echo '{\"decision\":\"block\"}'" EXIT; } >/dev/null`: false, `cat <<< "$X"`: false,
		"cat <<'E'\n{\"decision\":\"block\"}\nE": false, "cat <<'E'\n{\"decision\":\"approve\"}\nE": true, "cat <<E\n$X\nE": false, `echo "Blocked: $X"; exit 2`: true, `curl x 2>&1 >/dev/null | grep -q no`: true,
		`curl x | tee log >/dev/null`: true, `deny() { echo "$1" >&2; exit 2; }; x=$(jq -r .x); [ -n "$x" ] || deny "no $x"`: true, `curl x >> calls.log`: true, `curl x >> "$LOG"`: false,
		`python3 -c 'sys.stderr.write("please use the other tool, do it"); sys.exit(2)'`: true,
		`python3 -c 'open = open; print("x", open("deny.json"))'`:                        false, `python3 -c 'print("x"[1:])'`: false, `python3 -c 'print("", "{}")'`: false, `python3 -c 'print(*x)'`: false,
		`python3 -c 'f"{x["a" + exec("y") ]}"'`: false, "python3 -c '# coding: rot13\nprint(1)'": false, `python3 -c 'import json; print(json.dumps({"decision": "approve", "reason": f"{why}"}))'`: true,
		`python3 -c 'import json; print(json.dumps({"decision": "block" * 1}))'`: false, `python3 -c 'import json; print(json.dumps({**x}))'`: false,
		`node -e '({log: process} = console); process("x")'`: false, `node -e 'console["log"](1)'`: false, `node -e 'console.log("fine")'`: true, `node -e 'console.error("no"); process.exit(2)'`: true,
		"node -e 'console.log(`${x}`)'": false, `node -p process.env.V`: false, `jq '{decision: .x}'`: false, `jq '{$decision}'`: false, `jq -n '{decision: "block"}'`: false, `jq -n '{decision: "approve"}, input'`: false,
		`jq -n '{reason: "\("x")", decision: "deny"}'`: false, `bash -c "$X"`: false, `coproc curl x`: false, `echo [{]x`: false, `echo {a,b}`: false,
		`python3 -c 'import common'`:           false,
		`python3 -c 'import sys; sys.exit(2)'`: true,
	} {
		t.Run(line, func(t *testing.T) {
			c := converter{Conversion: Conversion{From: gate.ClaudeCode, Script: func(path string) (string, bool) { text, ok := files[path]; return text, ok }, Names: namesIn(files)}}
			text := c.text(&declared{Hook: gate.Hook{Dialect: gate.ClaudeCode, Type: gate.CommandHook, Event: gate.PreToolUse, FailMode: gate.FailAllow, Command: line}})
			silent := !slices.ContainsFunc(answersIn[gate.ClaudeCode][gate.PreToolUse], func(w wording) bool { return w.in(text) != unsaid })
			if silent != want {
				t.Errorf("silent: %v, for %q and %d objects, of:\n%s", silent, text.doubt, len(text.says), text.all)
			}
		})
	}
}

// shellScript is a script of parts that print, hide and hand on what is in $V and
// elsewhere. Nothing in it does anything to the machine.
func shellScript(r *rand.Rand, depth int) string {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	inner := func() string { return shellScript(r, depth-1) }
	word := func() string {
		return one(`"$V"`, "$V", "no", "'{'", `"{\"decision\":\"approve\"}"`, `'"a":1}'`, `''`, `"x$V"`, `"$(echo "$V")"`, `$'\x7b'`, `"\173"`, "{}", `-n`, `-e`, `'%s'`, `"${V:-{}"`, "[{]*", `"$U"`)
	}
	if depth == 0 {
		switch r.IntN(7) {
		case 0:
			return "true"
		case 1:
			return "printf " + one("'%s\\n'", "'%s'", "'x%s'", "'{%s'", `'\173%s'`, word()) + " " + word() + " " + word()
		case 2:
			return "cat <<< " + word()
		case 3:
			return "cat <<" + one("E", "'E'") + "\n" + one("$V", `{"decision":"approve"}`, "text $V") + "\nE\n"
		case 4:
			return "f " + word()
		}
		return "echo " + word() + " " + word()
	}
	switch r.IntN(15) {
	case 9:
		return ": >(" + inner() + "\n)"
	case 10:
		return "/bin/true() { " + inner() + "\n}\n" + one("/bin/true", "true", "/usr/bin/true")
	case 11:
		return "cat " + one("", "3", "0") + "<<E " + one("", "</dev/null", "0</dev/null", "3<<< x") + "\n" + one("$V", `{"decision":"approve"}`, "text") + "\nE\n"
	case 12:
		return one("sh", "dash", "bash") + " -c " + shellWord(one("{ ", "( ", "((")+inner()+"\n"+one("} &>/dev/null", ") &>/dev/null", "}", "))"))
	case 13:
		return "U='a[$(" + strings.ReplaceAll(inner(), "'", `'\''`) + "\n)]'\n" + one("[[ $U -eq 1 ]]", "(( U ))", `[ -v "$U" ]`, `echo "x$((U))"`, `echo "x${V:$U}"`, `echo "x${!U}"`)
	case 14:
		return "command -v " + one("{", "sh", "f", `"$V"`) + "; " + inner()
	case 0:
		return "{ " + inner() + "\n} " + one(">/dev/null", ">&2", "2>&1", "2>&1 >/dev/null", ">/dev/null 2>&1", "3>&1", ">&3 3>&1", "2>/dev/null", ">/dev/stdout", "1>&2 2>&1")
	case 1:
		return "if " + inner() + "\nthen " + inner() + "\nelse " + inner() + "\nfi"
	case 2:
		return "f() { " + inner() + "\n}\n" + inner()
	case 3:
		return "( " + inner() + "\n) | " + one("cat", "grep -q x", "{ cat; }", "while read -r x; do echo \"$x\"; done")
	case 4:
		return "U=$(" + inner() + "\n)\necho " + word()
	case 5:
		return "bash -c " + shellWord(inner())
	case 6:
		return "trap " + shellWord(inner()) + " EXIT"
	case 7:
		return "for U in " + word() + "; do " + inner() + "\ndone"
	}
	return inner() + "\n" + inner()
}

// What a script prints in truth is what was said to be all of it, or a line says
// that it is not.
func TestSeenAsPrinted(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	r := rand.New(rand.NewPCG(23, 29))
	certain := 0
	for range 800 {
		script := shellScript(r, 1+r.IntN(3))
		tr := newTextReader(project{})
		tr.add(script, shellText, ".", heard)
		if tr.doubt != "" {
			continue
		}
		certain++
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "f() { :; }\n"+script)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "FUNCNEST=50", `V={"hookSpecificOutput":{"permissionDecision":"deny"}}`}
		cmd.Dir = t.TempDir()
		out, _ := cmd.Output() // whatever its exit code
		text := strings.TrimSpace(string(out))
		if !strings.HasPrefix(text, "{") {
			continue
		}
		docs, err := readDocuments([]byte(text), true, &findings{})
		if err != nil { // no answer either
			continue
		}
		if !slices.ContainsFunc(tr.says, func(n *node) bool { return string(n.ordered()) == string(docs[0].ordered()) }) {
			t.Errorf("printed and not seen: %s\nby:\n%s", text, script)
		}
	}
	if certain < 100 {
		t.Errorf("only %d scripts were certain", certain)
	}
}

// A text with anything unknown in it where an object may begin, or behind where
// one has begun, is never silent.
func FuzzSeenWords(f *testing.F) {
	for _, text := range []string{"", " ", "{", `{"decision":"`, "\n\t", "%s", `\`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "'\x00") {
			return
		}
		quoted := "'" + text + "'"
		for _, line := range []string{"echo %s\"$V\"", "printf %s\"$V\"", "printf '%%s' %s\"$V\"", "printf '%%s' %s \"$V\"", "cat <<< %s\"$V\"", "echo %s; echo \"$V\""} {
			tr := newTextReader(project{})
			tr.add(fmt.Sprintf(line, quoted), shellText, ".", heard)
			if begins := strings.TrimLeft(text, " \t\r\n"); tr.doubt == "" && (begins == "" || begins[0] == '{') {
				t.Errorf("nothing is said of %s", fmt.Sprintf(line, quoted))
			}
		}
	})
}
