package wire

// Tool is one line of the alias table: what hosts call the tool that Claude
// Code calls Name. A matcher is tried on the host's own name and on Name
// (DESIGN §7).
type Tool struct {
	Name string
	// Hosts are the tool's own names by protocol, where they differ from Name.
	Hosts map[string][]string
}

// Tools is the alias table, to be read only. Names are exact; a host's tools
// that are not in it (MCP tools above all) have no alias.
func Tools() []Tool { return tools }

var tools = []Tool{
	{"Bash", map[string][]string{
		"codex":         {"exec_command", "shell", "shell_command", "local_shell", "unified_exec"},
		"gemini-cli":    {"run_shell_command"},
		"qwen-code":     {"run_shell_command"},
		copilotName:     {"bash", "powershell", "shell"},
		antigravityName: {"code_execution"},
		"ax-code":       {"bash"},
	}},
	{"Read", map[string][]string{
		"codex":         {"read_file"},
		"gemini-cli":    {"read_file", "read_many_files"},
		"qwen-code":     {"read_file", "read_many_files"},
		copilotName:     {"view"},
		antigravityName: {"read_file"},
		"ax-code":       {"read"},
	}},
	{"Write", map[string][]string{
		"codex":         {"apply_patch"},
		"gemini-cli":    {"write_file"},
		"qwen-code":     {"write_file"},
		copilotName:     {"create", "apply_patch"},
		antigravityName: {"write_file"},
		"ax-code":       {"write", "apply_patch"},
	}},
	{"Edit", map[string][]string{
		"claude-code": {"MultiEdit"},
		"codex":       {"apply_patch"},
		"gemini-cli":  {"replace"},
		"qwen-code":   {"edit", "replace"},
		copilotName:   {"edit", "str_replace", "str_replace_editor", "apply_patch"},
		"ax-code":     {"edit", "multiedit", "apply_patch"},
	}},
	{"Glob", map[string][]string{
		"gemini-cli":    {"glob", "list_directory"},
		"qwen-code":     {"glob", "list_directory"},
		copilotName:     {"glob"},
		antigravityName: {"list_files"},
		"ax-code":       {"glob", "list"},
	}},
	{"Grep", map[string][]string{
		"gemini-cli": {"grep_search", "search_file_content"},
		"qwen-code":  {"grep_search", "search_file_content"},
		copilotName:  {"grep", "rg"},
		"ax-code":    {"grep"},
	}},
	{"WebFetch", map[string][]string{
		"gemini-cli": {"web_fetch"},
		"qwen-code":  {"web_fetch"},
		copilotName:  {"web_fetch"},
		"ax-code":    {"webfetch"},
	}},
	{"WebSearch", map[string][]string{
		"codex":      {"web_search"},
		"gemini-cli": {"google_web_search"},
		"qwen-code":  {"web_search"},
		copilotName:  {"web_search"},
		"ax-code":    {"websearch"},
	}},
	{"Task", map[string][]string{
		"claude-code": {"Agent"},
		"codex":       {"spawn_agent"},
		"qwen-code":   {"task", "agent"},
		copilotName:   {"task"},
		"ax-code":     {"task"},
	}},
	{"TodoWrite", map[string][]string{
		"codex":      {"update_plan"},
		"gemini-cli": {"write_todos"},
		"qwen-code":  {"todo_write"},
		"ax-code":    {"todowrite"},
	}},
}

// Aliases are the canonical names of a host's tool. There can be two: a patch
// both writes and edits.
func Aliases(protocol, tool string) []string {
	var names []string
	for _, t := range tools {
		for _, own := range t.Hosts[protocol] {
			if own == tool {
				names = append(names, t.Name)
			}
		}
	}
	return names
}

// KnownTools are the names that a matcher can meet in events of a host: the
// host's own and their aliases. There are others, MCP tools above all, and a
// host's rarer ones.
func KnownTools(protocol string) []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Hosts[protocol]...)
		names = append(names, t.Name)
	}
	return append(names, otherTools[protocol]...)
}

// OwnTools are the names by which a host itself calls its tools, as its payloads
// have them. Hosts that speak as Claude Code does use its names beside theirs.
func OwnTools(protocol string) []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Hosts[protocol]...)
		if len(t.Hosts[protocol]) == 0 || protocol == "claude-code" || protocol == "codex" || protocol == copilotName {
			names = append(names, t.Name)
		}
	}
	return append(names, otherTools[protocol]...)
}

// otherTools are documented tools of hosts that no other host has.
var otherTools = map[string][]string{
	"claude-code":   {"NotebookEdit", "BashOutput", "KillShell", "ExitPlanMode", "AskUserQuestion", "Skill", "ToolSearch", "LS", "NotebookRead"},
	"gemini-cli":    {"ask_user", "activate_skill", "get_internal_docs", "enter_plan_mode", "exit_plan_mode", "update_topic", "save_memory"},
	"qwen-code":     {"ask_user_question", "skill", "exit_plan_mode", "save_memory", "monitor", "notebook_edit"},
	copilotName:     {"ask_user"},
	antigravityName: {"delete_file"},
}
