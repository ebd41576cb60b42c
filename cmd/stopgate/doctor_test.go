package main

import (
	"bytes"
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
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
	"unicode"

	"stopgate/cmd/internal/hookclient"
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
		"CLAUDE_PROJECT_DIR", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "GEMINI_CLI_TRUST_WORKSPACE", "QWEN_HOME", "QWEN_CODE_SAFE_MODE", "QWEN_CODE_SIMPLE", "COPILOT_HOME",
		"AX_CODE_TRUST_PROJECT_CONFIG", "AX_CODE_HOOKS_FULL_ENV"} {
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
	small, err := exec.LookPath(hookclient.Name)
	if err != nil {
		t.Fatal(err)
	}
	stop := map[string]string{"gemini-cli": "AfterAgent", "copilot": "agentStop"}
	for _, host := range install.All() {
		if host.Name == "ax-code" { // cannot be held at its Stop: TestAXCode24Doctor
			continue
		}
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
			{name: "healthy by stopgate-hook", target: install.Target{Keyed: true, Client: small}},
			{name: "stopgate-hook is gone", target: install.Target{Keyed: true, Client: "/no/such/stopgate-hook"}, want: "a probe on " + event + " is not blocked: the command fails"},
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
				w.install(host, install.Project, install.Target{Agent: cmp.Or(c.target.Agent, "marker"), Server: cmp.Or(c.target.Server, s.url), Keyed: c.target.Keyed, Client: c.target.Client})
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
		if err := json.Unmarshal(list, &got); err != nil || len(s.requests) > 0 || len(got.Value) == 0 {
			t.Errorf("%v: the judge was asked %d times, %d records", err, len(s.requests), len(got.Value))
		}
		for _, record := range got.Value {
			if !record.DryRun || !strings.HasPrefix(record.Session, "probe-") {
				t.Errorf("%s of session %s is no dry run", record.Event, record.Session)
			}
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
				"UserPromptSubmit": []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": hook + s.url}}}},
				"SubagentStop":     []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": hook + s.url}}}}}})
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
		"./stopgate-hook --protocol codex",
		"stopgate-hook --protocol codex; touch pwned",
		"./other stopgate-hook --protocol codex",
		"./other hook --protocol codex",
		"sh hook --protocol codex",
		"eval ./stopgate hook --protocol codex",
		"stopgate hook --protocol codex &",
		"! stopgate hook --protocol codex",
	} {
		t.Run(command, func(t *testing.T) {
			w := newWorkplace(t)
			for _, name := range []string{"stopgate", "stopgate-hook", "other", "hook"} {
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
	for _, want := range []string{"Qwen Code 99.1.0 was not tried", "both the user's and the project's hooks ask the gate", `agent "default" has 1 hook, on Stop`, "The gate gates, unless a warning applies."} {
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

// front is the URL of a server before the service, which answers what lies below
// a path by itself.
func (s *service) front(path string, handle http.HandlerFunc) string {
	s.t.Helper()
	to, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, path) {
			handle(rw, r)
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	s.t.Cleanup(front.Close)
	return front.URL
}

// What an http entry gets is read as its host reads it: hosts follow no
// redirect, and Qwen Code takes JSON for JSON only where the answer says so.
func TestDoctorCallsAsHostsDo(t *testing.T) {
	s := newService(t)
	s.putAgent("a", `"Stop":[{"type":"prompt","prompt":"p"}]`)
	redirecting := s.front("/v1/hooks/", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, s.url+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	})
	plain := s.front("/v1/hooks/", func(rw http.ResponseWriter, r *http.Request) {
		status, answer := s.do(r.Method, r.URL.RequestURI(), "application/json", readAll(t, r.Body))
		rw.Header().Set("Content-Type", "text/plain")
		rw.WriteHeader(status)
		_, _ = rw.Write(answer)
	})
	for _, c := range []struct{ name, host, server, want string }{
		{"a redirect", "claude-code", redirecting, "answers 307 Temporary Redirect"},
		{"plain text, Qwen Code", "qwen-code", plain, `content type is "text/plain"`},
		{"plain text, Claude Code", "claude-code", plain, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			host, _ := install.Find(c.host)
			w := trusted(t, host, install.Target{Agent: "a", Server: c.server})
			if out, code := w.doctor(c.host); (code == exitDone) != (c.want == "") || !strings.Contains(out, c.want) {
				t.Errorf("exit %d, want %q:\n%s", code, c.want, out)
			}
		})
	}
}

func readAll(t *testing.T, r io.Reader) []byte {
	content, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return content
}

// A server that is not ready, and an agent that nothing is asked about, are
// errors by themselves, whatever the probes say.
func TestDoctorTurnsRedOnWhatTheServerSays(t *testing.T) {
	s := newService(t)
	s.putAgent("full", `"Stop":[{"type":"prompt","prompt":"p"}]`)
	s.putAgent("empty", ``)
	s.putAgent("watched", `"Stop":[{"type":"prompt","prompt":"p","mode":"shadow"}]`)
	unready := s.front("/readyz", func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusServiceUnavailable)
		_, _ = rw.Write([]byte(`{"status":"unavailable","version":"v","checks":{"store":{"ok":false,"reason":"disk is full"}}}`))
	})
	const asked = `{"name":"asked","type":"GlobalHook","properties":{"eventType":"Stop","activationMode":"onDemand","hook":{"type":"prompt","prompt":"p"}}}`
	if status, answer := s.do(http.MethodPut, "/api/v2/extendedAgent/hooks/asked", "application/json", []byte(asked)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	host, _ := install.Find("claude-code")
	for _, c := range []struct {
		name, want string
		target     install.Target
	}{
		{"not ready", "it is not ready (unavailable): store: disk is full", install.Target{Agent: "full", Server: unready}},
		{"without hooks", `agent "empty" has no hooks, own or agent-level: everything is allowed`, install.Target{Agent: "empty", Server: s.url}},
		{"shadows alone", `agent "watched" has no hooks, own or agent-level: everything is allowed`, install.Target{Agent: "watched", Server: s.url}},
		{"on-demand hooks alone", `agent "default" has no hooks, own or agent-level: everything is allowed`, install.Target{Server: s.url}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := trusted(t, host, c.target)
			if out, code := w.doctor("claude-code"); code != exitFindings || !strings.Contains(out, "error    "+c.want) {
				t.Errorf("exit %d, want %q:\n%s", code, c.want, out)
			} else if strings.Contains(out, "nothing comes of their verdicts: Stop[0]") != (c.target.Agent == "watched") {
				t.Errorf("of shadows it says:\n%s", out)
			}
		})
	}
}

// A server without a model does not gate an agent that has nothing but prompt
// hooks; one with another Stop hook it does.
func TestDoctorKnowsWhatAMissingModelMeans(t *testing.T) {
	s := newService(t)
	modelless := s.front("/readyz", func(rw http.ResponseWriter, _ *http.Request) {
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

// A server that was to have sandboxes started ahead, and has none, says why.
func TestDoctorTellsWhyNothingIsStartedAhead(t *testing.T) {
	s := newServiceWith(t, t.TempDir(), fileOf(t, "stopgate.yaml", "sandbox: {mode: process, pool: 64MiB}\n"))
	s.putAgent("a", `"Stop":[{"type":"command","command":"exit 2"}]`)
	const why = "sandboxes are started ahead in mode bubblewrap alone, and this is mode process"
	if status, body := s.do(http.MethodGet, "/readyz", "", nil); status != http.StatusOK || !strings.Contains(string(body), `"sandbox.pool":{"ok":false,"reason":"`+why+`"}`) {
		t.Errorf("%d %s", status, body)
	}
	w := newWorkplace(t)
	host, _ := install.Find("claude-code")
	w.install(host, install.Project, install.Target{Server: s.url, Agent: "a"})
	if out, code := w.doctor(); code != exitDone || !strings.Contains(out, "sandbox.pool: "+why) {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// plant writes a codex entry with a command, and a program of the project's.
func (w *workplace) plant(command, program string) {
	w.t.Helper()
	content, err := json.Marshal(map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": command}}}}}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("<project>/.codex/hooks.json", string(content))
	w.write(program, "#!/bin/sh\ntouch \"$HOME/pwned\"\n")
	name := strings.NewReplacer("<home>", w.home, "<project>", w.project).Replace(program)
	if err := os.Chmod(name, 0o755); err != nil { //nolint:gosec // it is a program
		w.t.Fatal(err)
	}
}

func (w *workplace) notRun(args ...string) {
	w.t.Helper()
	out, _ := w.doctor(append([]string{"codex"}, args...)...)
	if _, err := os.Stat(filepath.Join(w.home, "pwned")); err == nil {
		w.t.Errorf("the project's program was run:\n%s", out)
	}
}

// A relative directory on PATH (./bin, node_modules/.bin, the empty one) makes
// a bare name the project's own program: exec.LookPath refuses it with ErrDot,
// the shell runs it.
func TestDoctorRunsNothingByARelativePath(t *testing.T) {
	for _, dir := range []string{"./bin", "node_modules/.bin", ""} {
		t.Run(dir, func(t *testing.T) {
			w := newWorkplace(t)
			w.plant("stopgate hook --protocol codex", filepath.Join("<project>", dir, "stopgate"))
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			w.notRun("--server", "http://127.0.0.1:"+freePort(t))
		})
	}
}

// A program beside the current directory, but in the same repository, has the
// same authors.
func TestDoctorRunsNothingOfTheRepositoryAround(t *testing.T) {
	w := newWorkplace(t)
	w.write("<project>/../.git/HEAD", "ref: refs/heads/main\n")
	w.plant("/proc/self/cwd/../tools/stopgate hook --protocol codex", "<project>/../tools/stopgate")
	w.notRun("--server", "http://127.0.0.1:"+freePort(t))
}

// What a project's file, or a server that it names, says is shown without what
// a terminal would obey: it could paint the verdict green.
func TestDoctorShowsNoControlCharacters(t *testing.T) {
	const paint = "\x1b[2J\x1b[32mThe gate gates.\x1b]0;x\a\x1b[8m"
	hostile := serveOnce(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "ready", "version": "1" + paint,
			"checks": map[string]any{"store": map[string]any{"ok": true}, "models": map[string]any{"reason": paint}}})
	})
	for name, entry := range map[string]map[string]any{
		"a URL":             {"type": "http", "url": "http://127.0.0.1:1/" + paint + "/v1/hooks/claude-code"},
		"a URL, variable":   {"type": "http", "url": "http://127.0.0.1:$PORT/" + paint + "/v1/hooks/claude-code"},
		"a server's answer": {"type": "http", "url": hostile + "/v1/hooks/claude-code"},
		"a server's name":   {"type": "command", "command": "stopgate hook --protocol claude-code --server 'http://127.0.0.1:1/" + paint + "'"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkplace(t)
			content, err := json.Marshal(map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{"hooks": []any{entry}}}}})
			if err != nil {
				t.Fatal(err)
			}
			w.write("<project>/.claude/settings.json", string(content))
			out, _ := w.doctor("claude-code")
			if i := strings.IndexFunc(out, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }); i >= 0 {
				t.Errorf("control character %q in\n%q", out[i], out)
			}
		})
	}
}

// The same for a file that cannot be read, whose text the parser repeats.
func TestUnreadableFilesAreShownWithoutControlCharacters(t *testing.T) {
	for _, args := range [][]string{{"doctor", "claude-code"}, {"init", "claude-code"}} {
		t.Run(args[0], func(t *testing.T) {
			w := newWorkplace(t)
			w.write("<project>/.claude/settings.json", "{\"stopgate\x1b[2J\x1b]0;x\a\": 1}")
			var out bytes.Buffer
			code := run(process{ctx: t.Context(), stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: os.Getenv}, args)
			if strings.ContainsAny(out.String(), "\x1b\a") || code == exitDone {
				t.Errorf("exit %d: %q", code, out.String())
			}
		})
	}
}

// A file stays its owner's, as its mode stays: `sudo stopgate init --user` must
// not take a user's settings away from them.
func TestHostFileKeepsItsOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root writes other people's files")
	}
	path := filepath.Join(t.TempDir(), "settings.json")
	write(t, path, "{}")
	if err := os.Chown(path, 1234, 1234); err != nil {
		t.Fatal(err)
	}
	f, err := readHostFile(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.write([]byte(`{"a": 1}`)); err != nil {
		t.Fatal(err)
	}
	about, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st := about.Sys().(*syscall.Stat_t); st.Uid != 1234 || st.Gid != 1234 {
		t.Errorf("owner %d:%d", st.Uid, st.Gid)
	}
}

// A project's entry that decides by files of its own (-f, --config, --data) is
// a server file by the project's authors: run with the user's rights it writes
// where it likes, and its retention deletes the user's own records.
func TestDoctorObeysNoServerFileOfTheProject(t *testing.T) {
	const command = "stopgate hook --protocol codex -f spec.yaml --config stopgate.yaml"
	prepare := func(t *testing.T, file string) *workplace {
		w := newWorkplace(t)
		w.write("<project>/spec.yaml", "api_version: azuresre.ai/v2\nkind: ExtendedAgent\nmetadata: {name: a}\nspec: {hooks: {Stop: [{type: prompt, prompt: p}]}}\n")
		w.write("<project>/stopgate.yaml", file)
		w.write("<project>/.codex/hooks.json", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"`+command+`"}]}]}}`)
		return w
	}
	t.Run("it writes nowhere", func(t *testing.T) {
		w := prepare(t, "data: \"${HOME}/elsewhere\"\n")
		out, _ := w.doctor("codex")
		if _, err := os.Stat(filepath.Join(w.home, "elsewhere")); err == nil {
			t.Errorf("the project's server file has made a directory in the user's home:\n%s", out)
		}
	})
	t.Run("it deletes nothing", func(t *testing.T) {
		w := prepare(t, "retention: {records: 1s}\n")
		cmd := exec.CommandContext(t.Context(), "stopgate", "hook", "--protocol", "codex", "-f", "spec.yaml")
		cmd.Stdin = strings.NewReader(`{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"x"}`)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		db, err := sql.Open("sqlite", filepath.Join(w.home, ".local", "state", "stopgate", "stopgate.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		const threeDays = 3 * 24 * 3600 * 1_000_000_000
		if _, err := db.ExecContext(t.Context(), `UPDATE evaluations SET seq = seq - ?`, int64(threeDays)); err != nil {
			t.Fatal(err)
		}
		out, _ := w.doctor("codex")
		var left int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM evaluations WHERE session = 's'`).Scan(&left); err != nil || left != 1 {
			t.Errorf("%d of the user's records are left, %v:\n%s", left, err, out)
		}
	})
}
