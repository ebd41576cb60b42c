package config

import "testing"

// What a hook prints that does not stand in its own text is not seen; a hook of
// which all is seen is converted without a word about its answer.
func TestSeenWhole(t *testing.T) {
	files := map[string]string{
		"pure.py":     "import json, sys\nevent = json.load(sys.stdin)\nif 'sudo' in event['tool_input']['command']:\n    print('no', file=sys.stderr)\n    sys.exit(2)\n",
		"caught.py":   "import re, sys, json\ntry:\n    json.load(sys.stdin)\nexcept json.JSONDecodeError:\n    sys.exit(0)\nif re.compile('x').search('pre_tool_execution'):\n    sys.exit(2)\n",
		"imports.py":  "import json\nfrom common import verdict\nverdict()\n",
		"fetches.py":  "import json, sys\nimport urllib.request\nprint(urllib.request.urlopen('x').read())\n",
		"starts.py":   "import subprocess\nsubprocess.run(['x'])\n",
		"opens.py":    "print(open('deny.json').read())\n",
		"joins.py":    "print('permission' + 'Decision')\n",
		"require.js":  "require('./lib')(process)\n",
		"child.js":    "console.log(require('child_process').execSync('x').toString())\n",
		"lib.rb":      "require 'json'\nputs 1\n",
		"as.py":       "import json as j, common\ncommon.verdict()\n",
		"twice.py":    "import sys; import common\ncommon.verdict()\n",
		"braces.mjs":  "import { verdict } from \"./lib.mjs\"\nverdict()\n",
		"effect.mjs":  "import \"./lib.mjs\"\n",
		"file.rb":     "puts File.read(\"deny.json\")\n",
		"rel.rb":      "require_relative \"lib\"\n",
		"do.pl":       "do \"./lib.pl\";\n",
		"deny.json":   `{"hookSpecificOutput":{"permissionDecision":"deny"}}`,
		"again":       "curl x",
		"swapped.sh":  "{ curl x 1>&2; } 2>&1\n",
		"plain.sh":    "if grep -q sudo; then echo no >&2; exit 2; fi\n",
		"function.sh": "deny() { echo \"$1\" >&2; exit 2; }\ngrep -q sudo && deny no\n",
	}
	for line, want := range map[string]bool{
		"exit 2": true, "python3 pure.py": true, "python3 caught.py": true, "sh plain.sh": true, "bash function.sh": true,
		`jq -r .tool_input.command | grep -q sudo && exit 2`:       true,
		`jq -n --arg r "$x" '{reason: $r}'`:                        true,
		`sed -n 's/a/b/p' | tr a b | sort | cut -d : -f 1 | wc -l`: true,
		`printf '%s\n' no >&2; exit 2`:                             true,
		`npm test >/dev/null 2>&1 || exit 2`:                       true,
		`npm test >&2 || exit 2`:                                   true,
		`git rev-parse --show-toplevel`:                            true,
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
		`echo '{"permission''Decision":"deny"}'`:                   false,
		`echo '{"permissionDecision":"\u0064eny"}'`:                false,
		"python3 as.py":                                            false, "python3 twice.py": false, "node braces.mjs": false, "node effect.mjs": false,
		"ruby file.rb": false, "ruby rel.rb": false, "perl do.pl": false,
		"sort -f deny.json": false, "sort -d deny.json": false, "sed --quiet p deny.json": false, "sed --silent p deny.json": false,
		"sed 'r deny.json'": false, "sed '1e ./judge'": false, `jq -n 'import "./deny" as $d; $d'`: false, "grep -rh hookSpecific": false,
		`awk 'BEGIN{ARGV[1]="deny.json";ARGC=2} 1'`: false, "sed 's/a/b/e'": false, "sed 's/a/b/w x'": false,
		`trap 'curl x' EXIT`:                   false,
		`echo x > "$(curl y)"`:                 false,
		`python3 -c 'import common'`:           false,
		`python3 -c 'import sys; sys.exit(2)'`: true,
	} {
		t.Run(line, func(t *testing.T) {
			r := textReader{script: func(path string) (string, bool) { text, ok := files[path]; return text, ok }, read: map[string]bool{}, whole: true}
			r.add(line, "shell")
			if r.whole != want {
				t.Errorf("whole is %v of:\n%s", r.whole, r.text.String())
			}
		})
	}
}
