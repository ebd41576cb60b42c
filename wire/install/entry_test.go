package install

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// Which entries are http: those of events that the host was seen to call a URL
// on, of a server on this machine that wants no key.
func TestEntriesAreHTTPWhereThatWorks(t *testing.T) {
	http := func(host string, target Target) string {
		h, _ := Find(host)
		var events []string
		for _, e := range h.Entries(target) {
			if e.HTTP() {
				events = append(events, e.Event)
			}
		}
		return strings.Join(events, " ")
	}
	remote, keyed, six := target, target, target
	remote.Server, keyed.Keyed, six.Server = "https://gate.example", true, "http://[::1]:8790/"
	for _, c := range []struct {
		name, host string
		target     Target
		want       string
	}{
		{"claude-code has none on SessionStart", "claude-code", target, "UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure Stop SubagentStop"},
		{"qwen-code has them all", "qwen-code", target, "SessionStart UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure Stop SubagentStop"},
		{"IPv6", "qwen-code", six, "SessionStart UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure Stop SubagentStop"},
		{"codex has none", "codex", target, ""},
		{"gemini-cli has none", "gemini-cli", target, ""},
		{"copilot skips this machine", "copilot", target, ""},
		{"a remote server", "claude-code", remote, ""},
		{"a server with a key", "claude-code", keyed, ""},
	} {
		if got := http(c.host, c.target); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// fault gx-003, fault gx-090, fault http-03, fault gx-030: no matcher, the event
// that can be blocked, a literal URL, the host's own unit of time.
func TestEntriesAreWhatHostsRun(t *testing.T) {
	for _, h := range All() {
		added := string(mustAdd(t, h, nil))
		if strings.Contains(added, `"matcher"`) || strings.Contains(added, "$") || strings.Contains(added, "SessionEnd") {
			t.Errorf("%s: %s", h.Name, added)
		}
		entries, problems, err := h.Found([]byte(added))
		if err != nil || len(problems) > 0 || len(h.Missing(entries)) > 0 {
			t.Errorf("%s: %v %v %v", h.Name, err, problems, h.Missing(entries))
		}
		for _, e := range entries {
			want := 60 * time.Second
			if h.layout.flat {
				want = axCodeTime
			}
			if e.Timeout != want || e.Agent != "marker" || e.Server != "http://127.0.0.1:8790" || e.Deadline >= e.Timeout {
				t.Errorf("%s: %+v", h.Name, e)
			}
		}
	}
	gemini, _ := Find("gemini-cli")
	if added := string(mustAdd(t, gemini, nil)); !strings.Contains(added, `"timeout": 60000`) || !strings.Contains(added, `"AfterAgent"`) {
		t.Error(added)
	}
}

// The words of the command are the words that a shell hands on.
func TestCommandIsQuotedForTheShell(t *testing.T) {
	h, _ := Find("copilot")
	const program, client = `/opt/it's a "gate"/$HOME/stop gate`, `/opt/it's a "gate"/$HOME/stopgate-hook`
	target := Target{Agent: "a; touch pwned", Server: "http://h/`id`", Program: program}
	small := target
	small.Client = client
	starts := func(e Entry, start ...string) {
		out, err := exec.Command("sh", "-c", `printf '%s\n' `+e.Command).Output()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Join(append(start, "--protocol", "copilot", "--event", e.Event, "--agent", "a; touch pwned", "--server", "http://h/`id`", ""), "\n")
		if diff := cmp.Diff(want, string(out)); diff != "" {
			t.Errorf("%s\n%s", e.Command, diff)
		}
		read := Entry{Command: e.Command}
		if !read.readCommand(h.is) || !read.Plain || read.Program != start[0] || read.Agent != "a; touch pwned" {
			t.Errorf("not recognised: %s (%q)", e.Command, read.Agent)
		}
	}
	for _, e := range h.Entries(target) {
		starts(e, program, "hook")
	}
	for _, e := range h.Entries(small) {
		starts(e, client)
	}
}

// Entries of ours are known by their shape, whatever program they name.
func TestOursAreKnownByShape(t *testing.T) {
	codex, _ := Find("codex")
	type said struct {
		Ours, Local   bool
		Agent, Server string
	}
	for _, c := range []struct {
		entry Entry
		want  said
	}{
		{Entry{Command: "stopgate hook --protocol codex"}, said{Ours: true, Agent: "default"}},
		{Entry{Command: `"/no/such/sg" hook --agent=a --protocol=codex --server 'http://h:1/'`}, said{Ours: true, Agent: "a", Server: "http://h:1"}},
		{Entry{Command: "cd /x && STOPGATE_API_KEY=k exec stopgate hook --protocol codex -f spec.yaml || true"}, said{Ours: true, Agent: "default", Local: true}},
		{Entry{Command: `"$HOME/bin/stopgate" hook --protocol codex`}, said{Ours: true, Agent: "default"}},
		{Entry{Command: "stopgate-hook --protocol codex --agent a"}, said{Ours: true, Agent: "a"}},
		{Entry{Command: "K=k exec /opt/stopgate-hook --agent hook --protocol=codex --server http://h:1"}, said{Ours: true, Agent: "hook", Server: "http://h:1"}},
		{Entry{Command: "stopgate hook --protocol codex --agent stopgate-hook"}, said{Ours: true, Agent: "stopgate-hook"}},
		{Entry{Command: "stopgate-hook --protocol claude-code"}, said{}},
		{Entry{Command: "my-stopgate-hook --protocol codex"}, said{}},
		{Entry{Command: "stopgate hook --protocol claude-code"}, said{}},
		{Entry{Command: "stopgate hook"}, said{}},
		{Entry{Command: "echo 'stopgate hook --protocol codex'"}, said{}},
		{Entry{Command: "hook --protocol codex"}, said{}},
		{Entry{Command: "stopgate hook --protocol 'codex"}, said{}}, // no shell runs it
		{Entry{URL: "http://127.0.0.1:8790/v1/hooks/codex?agent=a%20b"}, said{Ours: true, Agent: "a b", Server: "http://127.0.0.1:8790"}},
		{Entry{URL: "https://gate/base/v1/hooks/codex"}, said{Ours: true, Agent: "default", Server: "https://gate/base"}},
		{Entry{URL: "http://127.0.0.1:$PORT/v1/hooks/codex?agent=a"}, said{Ours: true, Agent: "a", Server: "http://127.0.0.1:$PORT"}},
		{Entry{URL: "http://127.0.0.1:8790/v1/hooks/claude-code"}, said{}},
		{Entry{URL: "/v1/hooks/codex"}, said{}},
		{Entry{URL: "http://127.0.0.1:8790/v1/hooks/codex/more"}, said{}},
	} {
		e := c.entry
		ours := e.HTTP() && e.readURL(codex.is) || !e.HTTP() && e.readCommand(codex.is)
		got := said{Ours: ours}
		if ours {
			got = said{ours, e.Local, e.Agent, e.Server}
		}
		if got != c.want {
			t.Errorf("%s%s: %+v, want %+v", e.URL, e.Command, got, c.want)
		}
	}
}

// Only one call, of words that are what they look like, is plain.
func TestPlainCommands(t *testing.T) {
	codex, _ := Find("codex")
	for command, want := range map[string]bool{
		"stopgate hook --protocol codex":                   true,
		`'/opt/it'"'"'s/stopgate' hook --protocol codex`:   true,
		"/opt/stopgate-hook --protocol codex":              true,
		"tee stopgate-hook --protocol codex":               false,
		"exec stopgate-hook --protocol codex":              false,
		"stopgate-hook --protocol codex --agent $(id)":     false,
		`/opt/a\ b/stopgate hook --protocol codex`:         false, // a backslash: not worth a shell's rules
		`"/opt/a b/stopgate" hook --protocol codex`:        true,
		"env stopgate hook --protocol codex":               false,
		"A=1 stopgate hook --protocol codex":               false,
		"stopgate hook --protocol codex; true":             false,
		"stopgate hook --protocol codex | cat":             false,
		"stopgate hook --protocol codex >x":                false,
		"stopgate hook --protocol codex --agent $(id)":     false,
		"stopgate hook --protocol codex --agent `id`":      false,
		`stopgate hook --protocol codex --agent "$HOME"`:   false,
		"stopgate hook --protocol codex --agent ~":         false,
		"stopgate hook --protocol codex &":                 false,
		"if true; then stopgate hook --protocol codex; fi": false,
		"(stopgate hook --protocol codex)":                 false,
	} {
		e := Entry{Command: command}
		if !e.readCommand(codex.is) || e.Plain != want {
			t.Errorf("%s: plain %t, want %t", command, e.Plain, want)
		}
	}
}

func TestFilesAreTheHosts(t *testing.T) {
	p := Places{Project: "/p", Home: "/h", Getenv: func(string) string { return "" }}
	elsewhere := p
	elsewhere.Getenv = func(name string) string { return map[string]string{"CODEX_HOME": "/c", "GEMINI_CLI_HOME": "/g"}[name] }
	for _, c := range []struct {
		host   string
		scope  Scope
		places Places
		want   string
	}{
		{"claude-code", Project, p, "/p/.claude/settings.json"},
		{"claude-code", User, p, "/h/.claude/settings.json"},
		{"codex", Project, elsewhere, "/p/.codex/hooks.json"},
		{"codex", User, elsewhere, "/c/hooks.json"},
		{"gemini-cli", User, elsewhere, "/g/.gemini/settings.json"},
		{"qwen-code", User, elsewhere, "/h/.qwen/settings.json"},
		{"copilot", Project, p, "/p/.github/hooks/stopgate.json"},
		{"copilot", User, p, "/h/.copilot/hooks/stopgate.json"},
	} {
		h, _ := Find(c.host)
		if got := h.File(c.places, c.scope); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.host, c.scope, got, c.want)
		}
	}
}

// For which tools a host runs an entry, by its own law of matchers.
func TestRuns(t *testing.T) {
	for _, c := range []struct {
		host, matcher, tool string
		want                bool
	}{
		{"claude-code", "", "Bash", true},
		{"claude-code", "*", "Bash", true},
		{"claude-code", "NoSuchTool", "Bash", false},
		{"claude-code", "Write | Bash", "Bash", true},
		{"claude-code", "Write,Bash", "Bash", true},
		{"claude-code", "Bas", "Bash", false}, // names are whole
		{"claude-code", "mcp__memory", "mcp__memory__read", false},
		{"claude-code", "mcp__memory__.*", "mcp__memory__read", true},
		{"claude-code", "Ba.", "Bash", true}, // a pattern is searched for
		{"claude-code", "(?!x)", "Bash", false},
		{"gemini-cli", "write", "write_file", true},
		{"gemini-cli", "Write", "write_file", false},
		{"codex", "^Bash$", "Bash", true},
		{"copilot", "ba", "bash", false},
		{"copilot", "ba.*|view", "bash", true},
	} {
		h, _ := Find(c.host)
		if got := h.Runs(Entry{Matcher: c.matcher}, c.tool); got != c.want {
			t.Errorf("%s, matcher %q, %s: %t", c.host, c.matcher, c.tool, got)
		}
	}
}

// No objection is what the host's contract says, and not a word more.
func TestUnobjected(t *testing.T) {
	claude, _ := Find("claude-code")
	gemini, _ := Find("gemini-cli")
	for _, c := range []struct {
		host   Host
		answer string
		want   bool
	}{
		{claude, "", true},
		{claude, "\n", true},
		{claude, "{}", false},
		{claude, "hello", false},
		{gemini, "{}", true},
		{gemini, " {}\n", true},
		{gemini, "", false},
		{gemini, "{} {}", false},
		{gemini, `{"decision":"allow"}`, false},
		{gemini, "hello {}", false},
	} {
		event, _ := c.host.Event(gate.UserPromptSubmit)
		if err := Unobjected(event, []byte(c.answer)); (err == nil) != c.want {
			t.Errorf("%s: %q: %v", c.host.Name, c.answer, err)
		}
	}
}

// What is wrong with an entry where it stands.
func TestFoundJudges(t *testing.T) {
	const url = "http://127.0.0.1:8790/v1/hooks/"
	for _, c := range []struct{ name, host, content, want string }{
		{"a misspelt event", "claude-code", `{"hooks":{"Stopp":[{"hooks":[{"type":"http","url":"` + url + `claude-code"}]}]}}`, `error 1: Claude Code asks no gate on "Stopp"`},
		{"gx-090: an event that blocks nothing", "gemini-cli", `{"hooks":{"SessionEnd":[{"hooks":[{"type":"command","command":"stopgate hook --protocol gemini-cli"}]}]}}`, `error 1: Gemini CLI asks no gate on "SessionEnd"`},
		{"http where the host calls none", "claude-code", `{"hooks":{"SessionStart":[{"hooks":[{"type":"http","url":"` + url + `claude-code"}]}]}}`, `error 1: Claude Code never calls an http hook on SessionStart`},
		{"http in codex", "codex", "{\"hooks\":\n{\"Stop\":[\n{\"hooks\":[{\"type\":\"http\",\"url\":\"" + url + `codex"}]}]}}`, `error 3: Codex never calls an http hook on Stop`},
		{"http-03: a variable in the URL", "claude-code", `{"hooks":{"Stop":[{"hooks":[{"type":"http","url":"${GATE}/v1/hooks/claude-code"}]}]}}`, `error 1: variables in a URL are not expanded`},
		{"gx-003: a matcher on Stop", "gemini-cli", `{"hooks":{"AfterAgent":[{"matcher":"*","hooks":[{"type":"command","command":"stopgate hook --protocol gemini-cli"}]}]}}`, `warning 1: AfterAgent has no tool, and matcher "*"`},
		{"gx-030: seconds for milliseconds", "gemini-cli", `{"hooks":{"AfterAgent":[{"hooks":[{"type":"command","command":"stopgate hook --protocol gemini-cli","timeout":60}]}]}}`, `error 1: Gemini CLI gives the hook 60ms: the number is in milliseconds there`},
		{"gx-030: qwen-code reads small numbers as seconds", "qwen-code", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"stopgate hook --protocol qwen-code","timeout":60}]}]}}`, ``},
		{"a timeout below the deadline", "codex", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"stopgate hook --protocol codex","timeout":25}]}]}}`, `warning 1: Codex gives the hook 25s, the gate answers within 25s`},
		{"a deadline of its own", "codex", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"stopgate hook --protocol codex --deadline 10","timeout":25}]}]}}`, ``},
		{"twice", "copilot", `{"hooks":{"agentStop":[{"bash":"stopgate hook --protocol copilot"},{"command":"stopgate hook --protocol copilot"}]}}`, `warning 1: the gate is asked twice on agentStop`},
		{"gx-004: a switch among the events", "gemini-cli", `{"hooks":{"enabled":true}}`, `warning 1: "enabled" under "hooks" is no list of hooks`},
		{"gx-004: a list that is none of hooks", "gemini-cli", `{"hooks":{"disabled":["x"]}}`, `warning 1: "disabled" under "hooks" is no list of hooks`},
		{"in the background", "claude-code", `{"hooks":{"Stop":[{"hooks":[{"type":"http","url":"` + url + `claude-code","async":true}]}]}}`, `error 1: the entry on Stop sets "async"`},
		{"on a condition", "claude-code", `{"hooks":{"Stop":[{"hooks":[{"type":"http","url":"` + url + `claude-code","if":"Bash(rm *)"}]}]}}`, `error 1: the entry on Stop sets "if"`},
		{"without a shell", "claude-code", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"stopgate hook --protocol claude-code","args":[]}]}]}}`, `error 1: the entry on Stop sets "args"`},
		{"not in the background", "claude-code", `{"hooks":{"Stop":[{"hooks":[{"type":"http","url":"` + url + `claude-code","async":false,"if":"","args":null}]}]}}`, ``},
		{"a number no clock has", "codex", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"stopgate hook --protocol codex","timeout":1e300}]}]}}`, ``},
		{"nothing of ours", "codex", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"./x"}]},{},{"hooks":2}]}}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := Find(c.host)
			_, problems, err := h.Found([]byte(c.content))
			if err != nil {
				t.Fatal(err)
			}
			if got := texts(problems); c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			for _, p := range problems {
				if p.Do == "" {
					t.Errorf("%s: says not what to do", p.Text)
				}
			}
		})
	}
}

func TestMissingEntries(t *testing.T) {
	h, _ := Find("gemini-cli")
	want := "error 0: no entry on AfterAgent: nothing asks the gate when the agent wants to stop\n" +
		"warning 0: no entry on BeforeAgent: the gate does not hear when the user speaks, so the counts of rejections are not reset\n"
	if got := texts(h.Missing(nil)); got != want {
		t.Error(got)
	}
	if got := h.Missing([]Entry{{Event: "AfterAgent"}, {Event: "BeforeAgent"}}); len(got) > 0 {
		t.Error(got)
	}
	copilot, _ := Find("copilot")
	if got := copilot.Missing([]Entry{{Event: "Stop"}, {Event: "UserPromptSubmit"}}); len(got) > 0 { // the other form counts
		t.Error(got)
	}
}

// An answer blocks if it is the contract's, with the mark in its reason, and
// nothing else.
func TestBlocks(t *testing.T) {
	h, _ := Find("codex")
	stop, _ := h.Event(gate.Stop)
	pre, _ := h.Event(gate.PreToolUse)
	start, _ := h.Event(gate.Start)
	for _, c := range []struct{ name, event, answer, want string }{
		{"block", "Stop", `{"decision":"block","reason":"a mark-1 b"}`, ""},
		{"with blanks", "Stop", "\n {\"decision\":\"block\",\"reason\":\"mark-1\"}\n", ""},
		{"nothing", "Stop", ``, "no objection"},
		{"no objection", "Stop", `{}`, "no block"},
		{"without the mark", "Stop", `{"decision":"block","reason":"other"}`, "no block"},
		{"no reason", "Stop", `{"decision":"block"}`, "no block"},
		{"a reason that is no text", "Stop", `{"decision":"block","reason":["mark-1"]}`, "no block"},
		{"allowed", "Stop", `{"decision":"allow","reason":"mark-1"}`, "no block"},
		{"one key too many", "Stop", `{"decision":"block","reason":"mark-1","ok":false}`, "no block"},
		{"text before", "Stop", `judged: {"decision":"block","reason":"mark-1"}`, "not JSON alone"},
		{"text behind", "Stop", `{"decision":"block","reason":"mark-1"} done`, "not JSON alone"},
		{"a list", "Stop", `[{"decision":"block","reason":"mark-1"}]`, "no block"},
		{"a tool's", "PreToolUse", `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"mark-1"}}`, ""},
		{"a tool's, of another event", "PreToolUse", `{"hookSpecificOutput":{"hookEventName":"PostToolUse","permissionDecision":"deny","permissionDecisionReason":"mark-1"}}`, "no block"},
		{"of an event that cannot", "SessionStart", `{"decision":"block","reason":"mark-1"}`, "cannot block"},
	} {
		event := stop
		switch c.event {
		case "PreToolUse":
			event = pre
		case "SessionStart":
			event = start
		}
		err := Blocks(event, []byte(c.answer), "mark-1")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// What --remove may take away when it is empty is what init made.
func TestFolders(t *testing.T) {
	for _, c := range []struct {
		host  string
		scope Scope
		env   map[string]string
		want  string
	}{
		{"claude-code", Project, nil, "/p/.claude"},
		{"copilot", Project, nil, "/p/.github/hooks /p/.github"},
		{"codex", User, nil, "/home/.codex"},
		{"copilot", User, nil, "/home/.copilot/hooks /home/.copilot"},
		{"codex", User, map[string]string{"CODEX_HOME": "/kept"}, ""},
		{"copilot", User, map[string]string{"COPILOT_HOME": "/kept"}, "/kept/hooks"},
		{"gemini-cli", User, map[string]string{"GEMINI_CLI_HOME": "/other"}, ""},
	} {
		h, _ := Find(c.host)
		p := Places{Project: "/p", Home: "/home", Getenv: func(name string) string { return c.env[name] }}
		if got := strings.Join(h.Folders(p, c.scope), " "); got != c.want {
			t.Errorf("%s, %s, %v: %q, want %q", c.host, c.scope, c.env, got, c.want)
		}
	}
}

func texts(problems []Problem) string {
	var b strings.Builder
	for _, p := range problems {
		b.WriteString(string(p.Severity) + " " + string(rune('0'+p.Line)) + ": " + p.Text + "\n")
	}
	return b.String()
}
