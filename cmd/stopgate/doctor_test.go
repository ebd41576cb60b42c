package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/wire/install"
)

// workplace is a home and a project, the test's own, in which hosts' files are
// written and looked at.
type workplace struct {
	t             *testing.T
	home, project string
}

func newWorkplace(t *testing.T) *workplace {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &workplace{t: t, home: filepath.Join(root, "home"), project: filepath.Join(root, "it's a project")}
	for _, dir := range []string{w.home, w.project} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range install.All() { // no real one is asked for its version
		w.write("<home>/bin/"+h.Executable, "#!/bin/sh\necho "+h.Contract.To+"\n")
		if err := os.Chmod(filepath.Join(w.home, "bin", h.Executable), 0o755); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", w.home)
	t.Setenv("PATH", filepath.Join(w.home, "bin")+":"+os.Getenv("PATH"))
	for _, name := range []string{"STOPGATE_SERVER", "STOPGATE_API_KEY", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "XDG_STATE_HOME",
		"CLAUDE_PROJECT_DIR", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "GEMINI_CLI_TRUST_WORKSPACE", "QWEN_HOME", "QWEN_CODE_SAFE_MODE", "QWEN_CODE_SIMPLE", "COPILOT_HOME"} {
		t.Setenv(name, "")
	}
	t.Chdir(w.project)
	return w
}

// install writes a host's entries as `stopgate init` does, for the program that
// the tests find on PATH.
func (w *workplace) install(host install.Host, scope install.Scope, target install.Target) {
	w.t.Helper()
	program, err := exec.LookPath("stopgate")
	if err != nil {
		w.t.Fatal(err)
	}
	target.Program = program
	path := host.File(install.Places{Project: w.project, Home: w.home, Getenv: os.Getenv}, scope)
	before, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	content, err := host.Add(before, host.Entries(target))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(path, string(content))
}

// doctor runs `stopgate doctor` and gives its output and exit code.
func (w *workplace) doctor(args ...string) (string, int) {
	w.t.Helper()
	var out bytes.Buffer
	code := run(process{ctx: w.t.Context(), stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: os.Getenv}, append([]string{"doctor"}, args...))
	return out.String(), code
}

func (w *workplace) write(path, content string) {
	w.t.Helper()
	path = strings.NewReplacer("<home>", w.home, "<project>", w.project).Replace(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(content, "<project>", w.project)), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// edit replaces text in the project's file of a host; it must be there.
func (w *workplace) edit(host install.Host, old, replacement string) {
	w.t.Helper()
	path := host.File(install.Places{Project: w.project}, install.Project)
	content, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(content), old) {
		w.t.Fatalf("%q is not in %s: %v", old, content, err)
	}
	w.write(path, strings.ReplaceAll(string(content), old, replacement))
}

// trusts are what the user has told each host, beside the hooks.
var trusts = map[string]map[string]string{
	"claude-code": {},
	"codex": {"<home>/.codex/config.toml": "[projects.\"<project>\"]\ntrust_level = \"trusted\"\n" +
		"[hooks.state.\"<project>/.codex/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:0\"\n"},
	"gemini-cli": {"<home>/.gemini/trustedFolders.json": `{"<project>": "TRUST_FOLDER"}`},
	"qwen-code":  {},
	"copilot":    {"<home>/.copilot/config.json": `{"trusted_folders": ["<project>"]}`},
}

// fault agents-01, fault gx-071, fault gx-091: a gate that looks installed is
// proved to gate, and every break of it turns the doctor red, for each host.
func TestDoctorTurnsRed(t *testing.T) {
	s := newService(t)
	spec := `{"name":"marker","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"p"}],"PreToolUse":[{"type":"prompt","matcher":"Bash","prompt":"p"}]}}}`
	if status, answer := s.do(http.MethodPut, agents+"marker", "application/json", []byte(spec)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	stranger := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(stranger.Close)
	stop := map[string]string{"gemini-cli": "AfterAgent", "copilot": "agentStop"}
	for _, host := range install.All() {
		event := stop[host.Name]
		if event == "" {
			event = "Stop"
		}
		for _, c := range []struct {
			name string
			// target is of the entries, where it is not the agent and the server.
			target install.Target
			bend   func(w *workplace)
			want   string // in the output; empty: all is well
		}{
			{name: "healthy"},
			{name: "healthy by command", target: install.Target{Keyed: true}},
			{name: "wrong path", target: install.Target{Keyed: true}, want: "a probe on " + event + " is not blocked: the command fails",
				bend: func(w *workplace) { w.edit(host, "/stopgate hook", "/no/such/stopgate hook") }},
			{name: "wrong port", target: install.Target{Server: stranger.URL}, want: "something that is no stopgate answers there"},
			{name: "server down", target: install.Target{Server: "http://127.0.0.1:" + freePort(t)}, want: "no server at http://127.0.0.1:"},
			{name: "wrong agent", target: install.Target{Agent: "nobody"}, want: `no agent "nobody" is known`},
			{name: "entry removed", want: "no entry on " + event, bend: func(w *workplace) { removeEvent(w, host, event) }},
			{name: "event misspelt", want: `asks no gate on "` + event + `s"`, bend: func(w *workplace) { w.edit(host, `"`+event+`"`, `"`+event+`s"`) }},
			{name: "file broken", want: ": mend the file", bend: func(w *workplace) { w.edit(host, `"hooks"`, `hooks`) }},
			{name: "hooks switched off", want: "sets ", bend: func(w *workplace) { switchOff(w, host) }},
		} {
			t.Run(host.Name+"/"+c.name, func(t *testing.T) {
				w := newWorkplace(t)
				for path, content := range trusts[host.Name] {
					w.write(path, content)
				}
				w.install(host, install.Project, install.Target{Agent: cmp.Or(c.target.Agent, "marker"), Server: cmp.Or(c.target.Server, s.url), Keyed: c.target.Keyed})
				want := exitDone
				if c.bend != nil {
					c.bend(w)
				}
				if c.want != "" {
					want = exitFindings
				}
				out, code := w.doctor(host.Name)
				if code != want || !strings.Contains(strings.ReplaceAll(out, "\n           → ", ": "), c.want) {
					t.Errorf("exit %d, want %d and %q:\n%s", code, want, c.want, out)
				}
				if c.want == "" && (strings.Contains(out, "warning") || !strings.Contains(out, "a probe on "+event+" is blocked") || !strings.Contains(out, "The gate gates.")) {
					t.Errorf("%s", out)
				}
			})
		}
	}
	t.Run("the probes are dry runs", func(t *testing.T) {
		_, list := s.do(http.MethodGet, "/v1/evaluations?agent=marker", "", nil)
		var got struct{ Value []gate.RecordSummary }
		if err := json.Unmarshal(list, &got); err != nil || len(s.requests) > 0 {
			t.Errorf("%v: the judge was asked %d times", err, len(s.requests))
		}
	})
}

func removeEvent(w *workplace, host install.Host, event string) {
	path := host.File(install.Places{Project: w.project}, install.Project)
	var file map[string]any
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, &file)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	delete(file["hooks"].(map[string]any), event)
	content, err = json.Marshal(file)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(path, string(content))
}

func switchOff(w *workplace, host install.Host) {
	switch host.Name {
	case "claude-code":
		w.write("<project>/.claude/settings.local.json", `{"disableAllHooks": true}`)
	case "codex":
		w.write("<home>/.codex/config.toml", trusts["codex"]["<home>/.codex/config.toml"]+"[features]\nhooks = false\n")
	case "gemini-cli":
		w.edit(host, `"hooks"`, `"hooksConfig": {"enabled": false}, "hooks"`)
	case "qwen-code":
		w.write("<home>/.qwen/settings.json", `{"disableAllHooks": true} // for now`)
	case "copilot":
		w.edit(host, `"version"`, `"disableAllHooks": true, "version"`)
	}
}

// The probe reads an answer as the host does, whatever gives it.
func TestDoctorReadsAnswersAsHostsDo(t *testing.T) {
	s := newService(t)
	if status, answer := s.do(http.MethodPut, agents+"marker", "application/json", []byte(`{"name":"marker","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"p"}]}}}`)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	const hook = "stopgate hook --protocol codex --agent marker --server "
	for _, c := range []struct{ name, command, want string }{
		{"as it is", hook + s.url, ""},
		{"in the project, as codex without a variable that names it", `test "${PWD##*/}" = "it's a project" && test -z "$CLAUDE_PROJECT_DIR" && ` + hook + s.url, ""},
		{"text before the answer", "echo judging; " + hook + s.url, "it is not JSON alone"},
		{"another exit code", hook + s.url + "; exit 2", "the command fails: exit status 2"},
		{"exit 2 alone", "echo no >&2; exit 2 # " + hook, ""}, // not ours: nothing is run
		{"it says nothing", hook + s.url + " >/dev/null", "it says nothing"},
		{"a block that is always the same", hook + s.url + ` >/dev/null; echo '{"decision":"block","reason":"no"}'`, "no block as the host takes one"},
		{"it never ends, nor does its child", hook + s.url + "; sleep 60 & sleep 60", "no answer within 2s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorkplace(t)
			w.write("<home>/.codex/config.toml", trusts["codex"]["<home>/.codex/config.toml"])
			timeout := 60
			if strings.Contains(c.want, "2s") {
				timeout = 2
			}
			content, err := json.Marshal(map[string]any{"hooks": map[string]any{
				"Stop":             []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": c.command, "timeout": timeout}}}},
				"UserPromptSubmit": []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": hook + s.url}}}}}})
			if err != nil {
				t.Fatal(err)
			}
			w.write("<project>/.codex/hooks.json", string(content))
			out, code := w.doctor("codex", "--trust-project")
			if c.name == "exit 2 alone" {
				if code != exitFindings || !strings.Contains(out, "no entry on Stop") {
					t.Errorf("exit %d: %s", code, out)
				}
				return
			}
			if (code == exitDone) != (c.want == "") || !strings.Contains(out, c.want) {
				t.Errorf("exit %d, want %q:\n%s", code, c.want, out)
			}
		})
	}
}

// A project's files are its authors' word: without being told to trust them the
// doctor runs nothing of theirs, and takes the key nowhere.
func TestDoctorDistrustsTheProject(t *testing.T) {
	for _, command := range []string{
		"touch pwned; stopgate hook --protocol codex",
		"stopgate hook --protocol codex $(touch pwned)",
		"stopgate hook --protocol codex > pwned",
		"BASH_ENV=./stopgate stopgate hook --protocol codex",
		"./stopgate hook --protocol codex",
		`"<project>/stopgate" hook --protocol codex`,
		"./other hook --protocol codex",
		"sh hook --protocol codex",
		"eval ./stopgate hook --protocol codex",
		"stopgate hook --protocol codex &",
		"! stopgate hook --protocol codex",
	} {
		t.Run(command, func(t *testing.T) {
			w := newWorkplace(t)
			for _, name := range []string{"stopgate", "other", "hook"} {
				w.write("<project>/"+name, "#!/bin/sh\ntouch pwned\n")
				if err := os.Chmod(filepath.Join(w.project, name), 0o755); err != nil { //nolint:gosec // it is a program
					t.Fatal(err)
				}
			}
			content, err := json.Marshal(map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": strings.ReplaceAll(command, "<project>", w.project)}}}}}})
			if err != nil {
				t.Fatal(err)
			}
			w.write("<project>/.codex/hooks.json", string(content))
			out, code := w.doctor("codex", "--server", "http://127.0.0.1:"+freePort(t))
			if code != exitFindings || !strings.Contains(out, "not probed") || !strings.Contains(out, "--trust-project") {
				t.Errorf("exit %d: %s", code, out)
			}
			if _, err := os.Stat("pwned"); err == nil {
				t.Error("the project's command was run")
			}
		})
	}
	t.Run("the key stays here", func(t *testing.T) {
		var mu sync.Mutex
		keys := map[string]bool{}
		proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			keys[r.URL.Host+" "+r.Header.Get("Authorization")] = true
		}))
		t.Cleanup(proxy.Close)
		w := newWorkplace(t)
		codex, _ := install.Find("codex")
		w.install(codex, install.Project, install.Target{Server: "http://foreign.example"})
		for _, args := range [][]string{{"doctor", "codex"}, {"doctor", "codex", "--server", "http://known.example"}} {
			cmd := exec.CommandContext(t.Context(), "stopgate", args...) // of its own, since Go reads the proxy's variables once
			cmd.Env = append(os.Environ(), "HTTP_PROXY="+proxy.URL, "STOPGATE_API_KEY=secret")
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "STOPGATE_API_KEY is not sent") {
				t.Errorf("%v: %s", err, out)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if want := map[string]bool{"foreign.example ": true, "known.example Bearer secret": true}; !maps.Equal(keys, want) {
			t.Errorf("%v", keys)
		}
	})
}

// What is no error is said and ends with 0: a version that was not tried, both
// files asking. A file of somebody else's that is broken is not ours to report.
func TestDoctorWarns(t *testing.T) {
	s := newService(t)
	if status, _ := s.do(http.MethodPut, "/api/v2/extendedAgent/hooks/h", "application/json", []byte(`{"name":"h","type":"GlobalHook","properties":{"eventType":"Stop","activationMode":"always","hook":{"type":"prompt","prompt":"p"}}}`)); status != http.StatusAccepted {
		t.Fatal(status)
	}
	w := newWorkplace(t)
	w.write("<home>/bin/qwen", "#!/bin/sh\necho 99.1.0\n")
	w.write("<home>/.gemini/settings.json", "{")
	host, _ := install.Find("qwen-code")
	w.install(host, install.Project, install.Target{Server: s.url})
	w.install(host, install.User, install.Target{Server: s.url})
	out, code := w.doctor()
	for _, want := range []string{"Qwen Code 99.1.0 was not tried", "both the user's and the project's hooks ask the gate", `agent "default" has 1 hooks, 1 of them on Stop`, "The gate gates, unless a warning applies."} {
		if code != exitDone || !strings.Contains(out, want) {
			t.Errorf("exit %d, want %q:\n%s", code, want, out)
		}
	}
	if strings.Contains(out, "gemini") {
		t.Errorf("%s", out)
	}
	w.write("<project>/.gemini/settings.json", `{"hooks": stopgate`)
	if out, code := w.doctor(); code != exitFindings || !strings.Contains(out, "gemini-cli") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// What a command leaves in the background ends with the probe.
func TestDoctorLeavesNothingRunning(t *testing.T) {
	w := newWorkplace(t)
	w.write("<project>/.codex/hooks.json", `{"hooks": {"Stop": [{"hooks": [{"type": "command",
		"command": "sleep 600 >/dev/null 2>&1 & echo $! > child; stopgate hook --protocol codex --server http://127.0.0.1:`+freePort(t)+`"}]}]}}`)
	if out, code := w.doctor("codex", "--trust-project"); code != exitFindings {
		t.Errorf("exit %d: %s", code, out)
	}
	pid, err := os.ReadFile("child")
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if syscall.Kill(child, 0) != nil || zombie(child) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	_ = syscall.Kill(child, syscall.SIGKILL)
	t.Error("the command's child still runs")
}

// zombie reports whether a process has ended and nobody has asked how.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// fault http-02: a proxy that the environment names takes calls to this machine
// too, in hosts if not in Go.
func TestDoctorCallsByTheProxyOfTheEnvironment(t *testing.T) {
	s := newService(t)
	if status, _ := s.do(http.MethodPut, agents+"marker", "application/json", []byte(`{"name":"marker","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"p"}]}}}`)); status != http.StatusAccepted {
		t.Fatal(status)
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusProxyAuthRequired)
	}))
	t.Cleanup(proxy.Close)
	w := newWorkplace(t)
	host, _ := install.Find("claude-code")
	w.install(host, install.Project, install.Target{Agent: "marker", Server: s.url})
	t.Setenv("HTTP_PROXY", proxy.URL)
	out, code := w.doctor("claude-code")
	if code != exitFindings || !strings.Contains(out, "407") || !strings.Contains(out, "set NO_PROXY=127.0.0.1") {
		t.Errorf("exit %d: %s", code, out)
	}
	t.Setenv("NO_PROXY", "localhost,127.0.0.0/8")
	if out, code := w.doctor("claude-code"); code != exitDone {
		t.Errorf("exit %d: %s", code, out)
	}
}

// A server without a model does not gate an agent that has nothing but prompt
// hooks; one with another Stop hook it does.
func TestDoctorKnowsWhatAMissingModelMeans(t *testing.T) {
	s := newService(t)
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	modelless := serveOnce(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			proxy.ServeHTTP(rw, r)
			return
		}
		_, _ = rw.Write([]byte(`{"status":"ready","version":"v","checks":{"store":{"ok":true},"sandbox":{"ok":true},"models":{"ok":false,"reason":"no model is configured"}}}`))
	})
	w := newWorkplace(t)
	host, _ := install.Find("claude-code")
	w.install(host, install.Project, install.Target{Server: modelless, Agent: "a"})
	for hooks, want := range map[string]int{
		`{"type":"prompt","prompt":"p"}`:                                       exitFindings,
		`{"type":"prompt","prompt":"p"},{"type":"command","command":"exit 2"}`: exitDone,
	} {
		if status, answer := s.do(http.MethodPut, agents+"a", "application/json", []byte(`{"name":"a","properties":{"hooks":{"Stop":[`+hooks+`]}}}`)); status != http.StatusAccepted {
			t.Fatalf("%d %s", status, answer)
		}
		if out, code := w.doctor(); code != want || !strings.Contains(out, "no model is configured; its prompt hooks end by their failMode") {
			t.Errorf("%s: exit %d, want %d:\n%s", hooks, code, want, out)
		}
	}
}
