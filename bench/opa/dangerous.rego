# The question of examples/dangerous-command.yaml, by the same patterns.
package hooks

patterns := [
	{"name": "rm -rf", "pattern": `\brm\s+(-\w+\s+)*-\w*(r\w*f|f\w*r)`},
	{"name": "rm -r -f", "pattern": `\brm\s+(-\w+\s+)*(-r\s+(-\w+\s+)*-f|-f\s+(-\w+\s+)*-r)\b`},
	{"name": "sudo", "pattern": `\bsudo\b`},
	{"name": "chmod 777", "pattern": `\bchmod\s+(-\w+\s+)*0?777\b`},
]

tools := {"Bash", "ExecuteShellCommand", "RunShellCommand", "run_shell_command", "exec_command", "shell"}

found contains p.name if {
	input.tool_name in tools
	some p in patterns
	regex.match(p.pattern, input.tool_input.command)
}

default answer := {"decision": "allow"}

answer := {
	"decision": "block",
	"reason": sprintf("%s is not allowed here. Choose a narrower command.", [concat(", ", found)]),
} if {
	count(found) > 0
}
