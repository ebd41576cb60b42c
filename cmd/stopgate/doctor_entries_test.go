package main

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"stopgate/gate"
	"stopgate/wire/install"
)

// rework changes our hook on each of the events in the project's file of a
// host. group is what the hook lies in, and the hook itself where the host has
// no groups; events it cannot find fail the test.
func (w *workplace) rework(host install.Host, change func(group, hook map[string]any), events ...string) {
	w.t.Helper()
	path := host.File(install.Places{Project: w.project}, install.Project)
	var file struct {
		Version int                         `json:"version,omitempty"`
		Hooks   map[string][]map[string]any `json:"hooks"`
	}
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, &file)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	for _, event := range events {
		group := file.Hooks[event][0]
		hook := group
		if inner, ok := group["hooks"].([]any); ok {
			hook = inner[0].(map[string]any)
		}
		change(group, hook)
	}
	if content, err = json.Marshal(file); err != nil {
		w.t.Fatal(err)
	}
	w.write(path, string(content))
}

// trusted is a place where the host is told to trust the project, with its
// entries for an agent.
func trusted(t *testing.T, host install.Host, target install.Target) *workplace {
	w := newWorkplace(t)
	for path, content := range trusts[host.Name] {
		w.write(path, content)
	}
	w.install(host, install.Project, target)
	return w
}

func (s *service) putAgent(name, hooks string) {
	s.t.Helper()
	if status, answer := s.do(http.MethodPut, agents+name, "application/json", []byte(`{"name":"`+name+`","properties":{"hooks":{`+hooks+`}}}`)); status != http.StatusAccepted {
		s.t.Fatalf("%d %s", status, answer)
	}
}

// Each entry is proved by itself: that one of them gates says nothing about
// the next.
func TestDoctorProbesEveryEntry(t *testing.T) {
	s := newService(t)
	s.putAgent("a", `"Stop":[{"type":"prompt","prompt":"p"}],"PreToolUse":[{"type":"prompt","matcher":"Bash","prompt":"p"}],"PostToolUse":[{"type":"prompt","matcher":"Write","prompt":"p"}]`)
	for _, name := range []string{"claude-code", "codex", "gemini-cli", "copilot"} {
		host, _ := install.Find(name)
		target := install.Target{Agent: "a", Server: s.url}
		named := func(of gate.EventName) string {
			event, _ := host.Event(of)
			return event.Host
		}
		red := func(t *testing.T, w *workplace, want string) {
			t.Helper()
			if out, code := w.doctor(name); code != exitFindings || strings.Count(out, "  error ") != 1 || !strings.Contains(out, want) {
				t.Errorf("exit %d, want one error, %q:\n%s", code, want, out)
			}
		}
		t.Run(name+"/healthy", func(t *testing.T) {
			out, code := trusted(t, host, target).doctor(name)
			if code != exitDone {
				t.Errorf("exit %d:\n%s", code, out)
			}
			for event, want := range map[gate.EventName]string{gate.Start: "answered without an objection", gate.UserPromptSubmit: "answered without an objection",
				gate.PreToolUse: "blocked", gate.PostToolUse: "blocked", gate.Stop: "blocked", gate.SubagentStop: "blocked"} {
				if called := named(event); called != "" && !strings.Contains(out, "a probe on "+called+" is "+want) {
					t.Errorf("%s is not %s:\n%s", called, want, out)
				}
			}
		})
		if name != "claude-code" { // whose entries are called, where each command is a process
			continue
		}
		for _, of := range []gate.EventName{gate.Start, gate.UserPromptSubmit, gate.PreToolUse, gate.PostToolUse, gate.SubagentStop} {
			event := named(of)
			if event == "" {
				continue
			}
			t.Run(name+"/no program on "+event, func(t *testing.T) {
				w := trusted(t, host, target)
				w.rework(host, func(_, hook map[string]any) {
					delete(hook, "url")
					hook["type"], hook[commandKey(host)] = "command", "/no/such/stopgate hook --protocol "+name+" --event "+event+" --agent a --server "+s.url
				}, event)
				red(t, w, "a probe on "+event+" is not ")
			})
			if of.ForTool() || of == gate.SubagentStop {
				t.Run(name+"/no entry on "+event, func(t *testing.T) {
					w := trusted(t, host, target)
					removeEvent(w, host, event)
					red(t, w, "no entry on "+event+`: agent "a" has hooks for it`)
				})
			}
			if of.ForTool() {
				t.Run(name+"/no tool passes on "+event, func(t *testing.T) {
					w := trusted(t, host, target)
					w.rework(host, func(group, _ map[string]any) { group["matcher"] = "NoSuchTool" }, event)
					red(t, w, `matcher "NoSuchTool" beside the entry on `+event)
				})
			}
		}
	}
}

// Hooks that an agent has in other dialects alone gate as its own do, and the
// doctor knows on which events they are asked.
func TestDoctorKnowsAttachedHooks(t *testing.T) {
	s := newService(t)
	attach := func(agent, dialect, hooks string) {
		if status, answer := s.do(http.MethodPut, "/v1/agents/"+agent+"/hooks?dialect="+dialect, "application/json", []byte(hooks)); status != http.StatusAccepted {
			t.Fatalf("%d %s", status, answer)
		}
	}
	const command = `"hooks":[{"type":"command","command":"true"}]`
	attach("c", "claude-code", `{"hooks":{"Stop":[{`+command+`}],"UserPromptSubmit":[{`+command+`}],"PreToolUse":[{"matcher":"Write",`+command+`}],
		"PostToolUseFailure":[{`+command+`}],"SubagentStop":[{`+command+`}]}}`)
	attach("n", "antigravity", `{"g":{"pre_tool_execution":[{"matcher":"code_execution",`+command+`}]}}`)
	attach("x", "ax-code", `{"hooks":[{"event":"Stop","command":"true"},{"event":"PreToolUse","matcher":"bash","command":"true"}]}`)
	host, _ := install.Find("claude-code")
	for _, c := range []struct {
		agent   string
		blocked []gate.EventName
		says    string
	}{
		{"c", []gate.EventName{gate.Stop, gate.UserPromptSubmit, gate.PreToolUse, gate.PostToolUseFailure, gate.SubagentStop}, `agent "c" has 5 hooks, 1 of them on Stop`},
		{"n", []gate.EventName{gate.PreToolUse}, `agent "n" has no Stop hook: it may always stop`},
		{"x", []gate.EventName{gate.Stop, gate.PreToolUse}, `agent "x" has no Stop hook: it may always stop`},
	} {
		t.Run(c.agent, func(t *testing.T) {
			out, code := trusted(t, host, install.Target{Agent: c.agent, Server: s.url}).doctor("claude-code")
			if code != exitDone || !strings.Contains(out, c.says) {
				t.Errorf("exit %d, want %q:\n%s", code, c.says, out)
			}
			for _, of := range gate.EventNames {
				event, ok := host.Event(of)
				if blocked := strings.Contains(out, "a probe on "+event.Host+" is blocked"); ok && blocked != slices.Contains(c.blocked, of) {
					t.Errorf("a probe on %s is blocked: %v\n%s", event.Host, blocked, out)
				}
			}
		})
	}
}

func commandKey(host install.Host) string {
	if host.Name == "copilot" {
		return "bash"
	}
	return "command"
}

// A matcher that lets the hook's tools pass is no error, and the probe goes by it.
func TestDoctorProbesByTheMatcherOfTheEntry(t *testing.T) {
	s := newService(t)
	s.putAgent("a", `"Stop":[{"type":"prompt","prompt":"p"}],"PostToolUse":[{"type":"prompt","matcher":"Bash|Write","prompt":"p"}]`)
	claude, _ := install.Find("claude-code")
	w := trusted(t, claude, install.Target{Agent: "a", Server: s.url})
	w.rework(claude, func(group, _ map[string]any) { group["matcher"] = "Write" }, "PostToolUse")
	if out, code := w.doctor("claude-code"); code != exitDone || !strings.Contains(out, "a probe on PostToolUse is blocked") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	s.putAgent("a", `"Stop":[{"type":"prompt","prompt":"p"}],"PostToolUse":[{"type":"prompt","matcher":"Bash","prompt":"p"}]`)
	if out, code := w.doctor("claude-code"); code != exitFindings || !strings.Contains(out, `matcher "Write" beside the entry on PostToolUse`) {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// An agent whose only hooks are about tools that no list has: the entries are
// run all the same.
func TestDoctorProbesForToolsOfServers(t *testing.T) {
	s := newService(t)
	codex, _ := install.Find("codex")
	for matcher, want := range map[string]string{"mcp__linear__create_issue": "is blocked", "mcp__linear__.*": "is blocked", "mcp__[a-z]{3}__x": "is answered without an objection"} {
		t.Run(matcher, func(t *testing.T) {
			s.putAgent("a", `"PostToolUse":[{"type":"command","matcher":"`+matcher+`","command":"true"}]`)
			w := trusted(t, codex, install.Target{Agent: "a", Server: s.url})
			if out, code := w.doctor("codex"); code != exitDone || !strings.Contains(out, "a probe on PostToolUse "+want) {
				t.Errorf("exit %d:\n%s", code, out)
			}
			w.edit(codex, "/stopgate hook", "/no/such/stopgate hook")
			out, code := w.doctor("codex")
			if code != exitFindings || strings.Count(out, "the command fails") != 6 {
				t.Errorf("exit %d:\n%s", code, out)
			}
		})
	}
}

// An entry whose answer nobody waits for, or that runs on a condition, is none.
func TestDoctorTurnsRedOnWhatBendsAnEntry(t *testing.T) {
	s := newService(t)
	s.putAgent("a", `"Stop":[{"type":"prompt","prompt":"p"}]`)
	claude, _ := install.Find("claude-code")
	for key, value := range map[string]any{"async": true, "if": "Bash(rm *)"} {
		t.Run(key, func(t *testing.T) {
			w := trusted(t, claude, install.Target{Agent: "a", Server: s.url})
			w.rework(claude, func(_, hook map[string]any) { hook[key] = value }, "Stop")
			if out, code := w.doctor("claude-code"); code != exitFindings || !strings.Contains(out, `the entry on Stop sets "`+key+`"`) {
				t.Errorf("exit %d:\n%s", code, out)
			}
		})
	}
}
