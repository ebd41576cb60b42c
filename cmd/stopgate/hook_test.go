package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"stopgate/cmd/internal/hookclient"
	"stopgate/gate"
)

// hookProgram is one of the two that hosts run as their command hook: what one
// does the other does, as long as a server decides.
type hookProgram struct {
	words []string                                   // that start it
	run   func(p process, flags []string) (code int) // it, in this process
}

func stopgateHook() hookProgram {
	return hookProgram{[]string{"stopgate", "hook"}, func(p process, flags []string) int { return run(p, append([]string{"hook"}, flags...)) }}
}

func smallHook() hookProgram {
	return hookProgram{[]string{hookclient.Name}, func(p process, flags []string) int {
		return hookclient.Command{}.Run(p.ctx, hookclient.Process{Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr, Getenv: p.getenv}, flags)
	}}
}

func onBothHooks(t *testing.T, test func(t *testing.T, hook hookProgram)) {
	for _, hook := range []hookProgram{stopgateHook(), smallHook()} {
		t.Run(hook.words[0], func(t *testing.T) { test(t, hook) })
	}
}

// command is the program as a process of its own.
func (h hookProgram) command(t *testing.T, flags ...string) *exec.Cmd {
	words := append(slices.Clone(h.words), flags...)
	return exec.CommandContext(t.Context(), words[0], words[1:]...) //nolint:gosec // ours
}

// hookRun is one call of a hook in this process.
type hookRun struct {
	args    []string
	payload []byte
	env     map[string]string
}

func (r hookRun) run(t *testing.T) (stdout string, code int) {
	t.Helper()
	return r.by(t, stopgateHook())
}

func (r hookRun) by(t *testing.T, hook hookProgram) (stdout string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	p := process{ctx: t.Context(), stdin: bytes.NewReader(r.payload), stdout: &out, stderr: &errs, getenv: func(k string) string { return r.env[k] }}
	code = hook.run(p, r.args)
	if errs.Len() > 0 {
		t.Errorf("standard error: %s", errs.String())
	}
	return out.String(), code
}

// A server that takes the request and never answers is given up within two
// seconds of the deadline.
func TestHookGivesAFrozenServerUp(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		l, err := net.Listen("tcp", "127.0.0.1:0") // accepts by its backlog, answers never
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		began := time.Now()
		out, code := hookRun{args: []string{"--protocol", "claude-code", "--deadline", "0.5", "--server", "http://" + l.Addr().String(), "--on-unreachable", "block"},
			payload: []byte(`{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"x"}`)}.by(t, hook)
		if code != 0 || !strings.Contains(out, `"decision":"block"`) {
			t.Errorf("exit %d, %s", code, out)
		}
		if took := time.Since(began); took < 500*time.Millisecond || took > 4*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// A panic while it asks is a gate that could not be asked.
func TestHookSurvivesAPanic(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		data := t.TempDir()
		call := func(breaks string) (stdout, stderr string, code int) {
			var out, errs bytes.Buffer
			p := process{ctx: t.Context(), stdin: strings.NewReader(stopPayload), stdout: &out, stderr: &errs, getenv: func(name string) string {
				if name == breaks {
					panic("broken")
				}
				return ""
			}}
			code = hook.run(p, []string{"--protocol", "codex", "--server", "http://127.0.0.1:1", "--data", data, "--on-unreachable", "block"})
			return out.String(), errs.String(), code
		}
		t.Run("while it asks", func(t *testing.T) {
			out, said, code := call("STOPGATE_API_KEY")
			if code != exitDone || !strings.Contains(out, `"decision":"block"`) || !strings.Contains(out, "internal error: broken") || said != "" {
				t.Errorf("exit %d, %q, standard error %q", code, out, said)
			}
		})
		t.Run("before it asks", func(t *testing.T) { // nothing that a host could read as an answer
			out, said, code := call("STOPGATE_SERVER")
			if code != hookclient.ExitBadFlag || out != "" || said != "" {
				t.Errorf("exit %d, %q, standard error %q", code, out, said)
			}
		})
	})
}

// The deadline of -f is that of the hooks: one that still runs then ends by its
// own failMode, which --on-unreachable has no say in (DESIGN §5).
func TestHookEndsHooksAtItsDeadline(t *testing.T) {
	dir := t.TempDir()
	spec, file := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "stopgate.yaml")
	write(t, spec, `{api_version: azuresre.ai/v2, kind: ExtendedAgent, metadata: {name: a}, spec: {hooks: {Stop: [{type: command, command: sleep 60, timeout: 90, failMode: block}]}}}`)
	write(t, file, "sandbox: {mode: process}\n")
	out, code := hookRun{args: []string{"--protocol", "codex", "-f", spec, "--config", file, "--data", filepath.Join(dir, "data"), "--deadline", "1"},
		env: map[string]string{"PATH": os.Getenv("PATH")}, payload: []byte(stopPayload)}.run(t)
	if code != exitDone || !strings.Contains(out, `"decision":"block"`) {
		t.Errorf("exit %d, %q", code, out)
	}
}

// A server is told how much of the deadline is left.
func TestHookSendsItsDeadline(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		asked := make(chan string, 1)
		url := serveOnce(t, func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Query().Get("deadline") })
		hookRun{args: []string{"--protocol", "codex", "--deadline", "7", "--server", url}, payload: []byte(stopPayload)}.by(t, hook)
		got := "not at all"
		select {
		case got = <-asked:
		default:
		}
		if left, err := strconv.ParseFloat(got, 64); err != nil || left <= 0 || left > 7 {
			t.Errorf("deadline=%q", got)
		}
	})
}

// A server is told the project that the host names in its hooks' environment.
func TestHookSendsTheProject(t *testing.T) {
	for _, tt := range []struct{ name, protocol, variable, value, want string }{
		{"claude-code", "claude-code", "CLAUDE_PROJECT_DIR", "/srv/p/", "/srv/p"},
		{"qwen-code by its own", "qwen-code", "QWEN_PROJECT_DIR", "/srv/q", "/srv/q"},
		{"another host's, from a terminal of that", "codex", "CLAUDE_PROJECT_DIR", "/srv/p", ""},
		{"relative", "claude-code", "CLAUDE_PROJECT_DIR", "p", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := make(chan string, 1)
			url := serveOnce(t, func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Query().Get("project") })
			hookRun{args: []string{"--protocol", tt.protocol, "--server", url}, payload: []byte(stopPayload), env: map[string]string{tt.variable: tt.value}}.run(t)
			select {
			case got := <-asked:
				if got != tt.want {
					t.Errorf("project=%q, want %q", got, tt.want)
				}
			default:
				t.Error("no server was asked")
			}
		})
	}
}

// What the runtime or a library says on standard error does not reach the host:
// here the runtime itself, ten times a second.
func TestHookIsMute(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		said, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		defer said.Close()
		size := func() int64 {
			about, err := said.Stat()
			if err != nil {
				t.Error(err)
				return 0
			}
			return about.Size()
		}
		var before atomic.Int64 // the runtime speaks before the program does
		url := serveOnce(t, func(http.ResponseWriter, *http.Request) {
			before.Store(size())
			time.Sleep(time.Second)
		})
		cmd := hook.command(t, "--protocol", "codex", "--server", url)
		cmd.Env = append(os.Environ(), "GODEBUG=schedtrace=100", "XDG_STATE_HOME="+t.TempDir())
		cmd.Stdin, cmd.Stderr = strings.NewReader(stopPayload), said
		if err := cmd.Run(); err != nil || before.Load() == 0 {
			t.Fatalf("%v, %d bytes before", err, before.Load())
		}
		if after := size(); after != before.Load() {
			t.Errorf("%d bytes on standard error while it asked", after-before.Load())
		}
	})
}

// What a server answers that is no answer of ours is never shown to a host.
func TestHookTrustsNoForeignAnswer(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		other := serveOnce(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"decision":"block","reason":"x"}`))
		})
		for name, answer := range map[string]func(http.ResponseWriter){
			"a page":   func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>please log in</html>")) },
			"an array": func(w http.ResponseWriter) { _, _ = w.Write([]byte(`[]`)) },
			"a redirect": func(w http.ResponseWriter) {
				w.Header().Set("Location", other)
				w.WriteHeader(http.StatusTemporaryRedirect)
			},
			"401": func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
			"503 and block": func(w http.ResponseWriter) {
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = w.Write([]byte(`{"decision":"block","reason":"x"}`))
			},
			"too much": func(w http.ResponseWriter) {
				_, _ = w.Write([]byte(`{"a":"` + strings.Repeat("x", hookclient.MaxAnswer) + `"}`))
			},
			"cut short": func(w http.ResponseWriter) {
				w.Header().Set("Content-Length", "100")
				_, _ = w.Write([]byte(`{"decision":`))
				panic(http.ErrAbortHandler)
			},
		} {
			t.Run(name, func(t *testing.T) {
				url := serveOnce(t, func(w http.ResponseWriter, _ *http.Request) { answer(w) })
				out, code := hookRun{args: []string{"--protocol", "gemini-cli", "--event", "AfterAgent", "--server", url},
					payload: []byte(`{"hook_event_name":"AfterAgent","session_id":"s","prompt_response":"x"}`)}.by(t, hook)
				if out != "{}" || code != 0 {
					t.Errorf("exit %d, %q", code, out)
				}
			})
		}
	})
}

func serveOnce(t *testing.T, handle http.HandlerFunc) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: handle, ErrorLog: nil}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return "http://" + l.Addr().String()
}

// The whole of a conversation goes over the wire once, then what was added.
func TestHookSendsWhatWasAdded(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		s := newService(t)
		if status, answer := s.do(http.MethodPut, agents+"a", "application/json", []byte(`{"name":"a","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"p"}]}}}`)); status != http.StatusAccepted {
			t.Fatalf("%d %s", status, answer)
		}
		s.answer = func(request string) string {
			if strings.Contains(request, "functionResponse") {
				return `{"ok":true}`
			}
			return `call:{"name":"ReadFile","args":{"offset":1}}`
		}
		count := countUploads(t, s.url)
		path := filepath.Join(t.TempDir(), "session.jsonl")
		state := t.TempDir()
		say := func(role, text string) string {
			line, err := json.Marshal(map[string]any{"type": role, "uuid": text, "message": map[string]any{"role": role, "content": text}})
			if err != nil {
				t.Fatal(err)
			}
			return string(line) + "\n"
		}
		stop := func(answer string) {
			t.Helper()
			payload, err := json.Marshal(map[string]string{"hook_event_name": "Stop", "session_id": "remote/1", "last_assistant_message": answer, "transcript_path": path})
			if err != nil {
				t.Fatal(err)
			}
			out, code := hookRun{args: []string{"--protocol", "claude-code", "--agent", "a", "--server", count.url, "--transcript", "send"}, payload: payload,
				env: map[string]string{"XDG_STATE_HOME": state}}.by(t, hook)
			if out != "" || code != 0 {
				t.Fatalf("exit %d, %s", code, out)
			}
		}
		seen := func(want string) {
			t.Helper()
			if last := strings.ReplaceAll(s.requests[len(s.requests)-1], `\u003d`, "="); !strings.Contains(last, want) {
				t.Errorf("the judge did not read %q in %s", want, last)
			}
		}
		first := say("user", "Deploy it.") + say("assistant", strings.Repeat("long ago ", 1000))
		write(t, path, first)
		stop("Done.")
		seen("Deploy it.")
		if got := count.take(); got != len(first) {
			t.Errorf("first: %d bytes were sent, want %d", got, len(first))
		}
		stop("Done.")
		if got := count.take(); got != 0 {
			t.Errorf("nothing new: %d bytes were sent", got)
		}
		half := say("user", "And the tests?")
		write(t, path, first+half[:20])
		stop("Green.")
		write(t, path, first+half)
		stop("Green.")
		seen("And the tests?")
		if got := count.take(); got != len(half) {
			t.Errorf("then: %d bytes were sent, want %d", got, len(half))
		}

		t.Run("a server that has lost it gets the whole again", func(t *testing.T) {
			if status, _ := s.do(http.MethodDelete, "/v1/sessions/remote%2F1", "", nil); status != http.StatusNoContent {
				t.Fatal(status)
			}
			write(t, path, first+half+say("user", "more"))
			stop("Green.")
			seen("Deploy it.")
		})
		t.Run("another file under the same name is sent whole", func(t *testing.T) {
			count.take()
			other := say("user", strings.Repeat("Something else. ", 1000))
			write(t, path, other)
			stop("Done.")
			if got := count.take(); got != len(other) {
				t.Errorf("%d bytes were sent, want %d", got, len(other))
			}
			_, text := s.do(http.MethodGet, "/v1/sessions/remote%2F1/transcript", "", nil)
			if strings.Contains(string(text), "Deploy it.") || !strings.Contains(string(text), "=== user ===\nSomething else.") {
				t.Errorf("%.300s", text)
			}
		})
		t.Run("a file that was emptied is empty there too", func(t *testing.T) {
			write(t, path, "")
			stop("Done.")
			if _, text := s.do(http.MethodGet, "/v1/sessions/remote%2F1/transcript", "", nil); strings.Contains(string(text), "Something else.") {
				t.Errorf("%.300s", text)
			}
		})
		t.Run("what cannot be sent is noted", func(t *testing.T) {
			count.refuse = true
			write(t, path, say("user", "new"))
			stop("Done.")
			_, list := s.do(http.MethodGet, "/v1/evaluations?agent=a&limit=1", "", nil)
			if !strings.Contains(string(list), string(gate.TranscriptLost)) {
				t.Errorf("%s", list)
			}
		})
	})
}

// passedOn passes requests on and counts the bytes of transcripts.
type passedOn struct {
	url    string
	refuse bool
	mu     sync.Mutex
	bytes  int
}

func (u *passedOn) take() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.bytes
	u.bytes = 0
	return n
}

func countUploads(t *testing.T, to string) *passedOn {
	u := &passedOn{}
	u.url = serveOnce(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if strings.HasSuffix(r.URL.Path, "/transcript") {
			if u.refuse {
				w.WriteHeader(http.StatusInsufficientStorage)
				return
			}
			u.mu.Lock()
			u.bytes += len(body)
			u.mu.Unlock()
		}
		req, err := http.NewRequestWithContext(r.Context(), r.Method, to+r.URL.RequestURI(), bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header = r.Header
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	})
	return u
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Hooks of one session run in parallel: the server's copy stays whole.
func TestHooksSendTogether(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		s := newService(t)
		s.do(http.MethodPut, agents+"a", "application/json", []byte(`{"name":"a","properties":{"hooks":{"PostToolUse":[{"type":"command","matcher":"*","command":"true"}]}}}`))
		path, state := filepath.Join(t.TempDir(), "session.jsonl"), t.TempDir()
		var content strings.Builder
		for i := range 2000 {
			content.WriteString(`{"type":"user","uuid":"` + strconv.Itoa(i) + `","message":{"role":"user","content":"line ` + strconv.Itoa(i) + `"}}` + "\n")
		}
		write(t, path, content.String())
		payload, err := json.Marshal(map[string]any{"hook_event_name": "PostToolUse", "session_id": "p", "tool_name": "Bash", "transcript_path": path})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				hookRun{args: []string{"--protocol", "claude-code", "--agent", "a", "--server", s.url, "--transcript", "send"}, payload: payload,
					env: map[string]string{"XDG_STATE_HOME": state}}.by(t, hook)
			})
		}
		all.Wait()
		_, session := s.do(http.MethodGet, "/v1/sessions/p", "", nil)
		var got struct{ Transcript struct{ Bytes int } }
		if err := json.Unmarshal(session, &got); err != nil || got.Transcript.Bytes != content.Len() {
			t.Errorf("%v, want %d bytes: %s", err, content.Len(), session)
		}
	})
}

// within fails the test where f has not ended in time; what hangs is left behind.
func within(t *testing.T, wait time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(wait):
		t.Errorf("no answer within %s", wait)
	}
}

// A conversation that is a named pipe keeps no host waiting, and does not open
// a gate that is set to block (DESIGN §6).
func TestHookIsNotHeldByANamedPipe(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		url := serveOnce(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) })
		pipe := filepath.Join(t.TempDir(), "s.jsonl")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { // lets go of whoever still waits
			if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil {
				f.Close()
			}
		})
		state := t.TempDir()
		within(t, 8*time.Second, func() {
			_, code := hookRun{args: []string{"--protocol", "claude-code", "--deadline", "1", "--server", url, "--transcript", "send"}, env: map[string]string{"XDG_STATE_HOME": state},
				payload: []byte(`{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"x","transcript_path":"` + pipe + `"}`)}.by(t, hook)
			if code != 0 {
				t.Errorf("exit %d", code)
			}
		})
	})
}

// So does a spec file that is one.
func TestHookIsNotHeldByASpecThatIsANamedPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "spec.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil {
			f.Close()
		}
	})
	data := t.TempDir()
	within(t, 8*time.Second, func() {
		out, code := hookRun{args: []string{"--protocol", "codex", "--deadline", "1", "-f", pipe, "--data", data, "--on-unreachable", "block"},
			payload: []byte(`{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"x"}`)}.run(t)
		if code != 0 || !strings.Contains(out, `"decision":"block"`) {
			t.Errorf("exit %d, %s", code, out)
		}
	})
}

// Where there is no state directory (no HOME, as in services and containers),
// nothing is written to the project, and nothing of the user's is removed from
// it: "sent" is a name that people use too.
func TestHookWithoutHomeLeavesTheProjectAlone(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		url := serveOnce(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) })
		t.Chdir(t.TempDir())
		letter := filepath.Join("sent", "letter.txt")
		if err := os.Mkdir("sent", 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, letter, "precious")
		write(t, "s.jsonl", `{"type":"user"}`+"\n")
		past := time.Now().Add(-60 * 24 * time.Hour)
		if err := os.Chtimes(letter, past, past); err != nil {
			t.Fatal(err)
		}
		conversation, err := filepath.Abs("s.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		_, code := hookRun{args: []string{"--protocol", "claude-code", "--server", url, "--transcript", "send"},
			payload: []byte(`{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"x","transcript_path":"` + conversation + `"}`)}.by(t, hook)
		if code != 0 {
			t.Errorf("exit %d", code)
		}
		entries, err := os.ReadDir("sent")
		if err != nil || len(entries) != 1 || entries[0].Name() != "letter.txt" {
			t.Errorf("the user's directory has %v, %v; want its letter alone", entries, err)
		}
	})
}

// What STOPGATE_SERVER holds is a URL, good or bad, and never a template: a
// variable that was not expanded is no server, by --on-unreachable, and no
// reason for any command to panic.
func TestServerVariableIsNoTemplate(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		for _, value := range []string{"${GATE_URL}", "http://127.0.0.1:1/${server}", "$${x}"} {
			t.Run(value, func(t *testing.T) {
				env := map[string]string{"STOPGATE_SERVER": value, "XDG_STATE_HOME": t.TempDir()}
				out, code := hookRun{args: []string{"--protocol", "codex", "--on-unreachable", "block"}, env: env,
					payload: []byte(`{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"x"}`)}.by(t, hook)
				if code != 0 || !strings.Contains(out, `"decision":"block"`) || strings.Count(out, "127.0.0.1") > 2 {
					t.Errorf("exit %d, %.300s", code, out)
				}
				var said bytes.Buffer
				code = run(process{ctx: t.Context(), stdin: strings.NewReader(""), stdout: &said, stderr: &said, getenv: func(k string) string { return env[k] }}, []string{"version"})
				if code != exitDone {
					t.Errorf("stopgate version: exit %d: %.200s", code, said.String())
				}
			})
		}
	})
}

const stopPayload = `{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"All done."}`

// A store that cannot be had (full disk, broken file, a directory that is none)
// does not open a gate whose hooks can be asked: a computed block leaves as a
// block (DESIGN §2), with -f as on a server that lost its store.
func TestHookBlocksWithoutAStore(t *testing.T) {
	for name, spoil := range map[string]func(data string) error{
		"a broken database": func(data string) error {
			if err := os.Mkdir(data, 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(data, "stopgate.db"), []byte(strings.Repeat("no database ", 1000)), 0o600)
		},
		"no directory": func(data string) error { return os.WriteFile(data, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			if err := spoil(data); err != nil {
				t.Fatal(err)
			}
			out, code := hookRun{args: []string{"--protocol", "codex", "-f", "../../examples/marker.yaml", "--data", data},
				env: map[string]string{"XDG_STATE_HOME": t.TempDir(), "PATH": os.Getenv("PATH")}, payload: []byte(stopPayload)}.run(t)
			if code != exitDone || !strings.Contains(out, `"decision":"block"`) {
				t.Errorf("exit %d, %q", code, out)
			}
		})
	}
}

// `stopgate hook` exits 0 also where its host has closed the pipe already
// (DESIGN §6: always), and is not ended by SIGPIPE.
func TestHookOutlivesAClosedPipe(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		defer w.Close()
		cmd := hook.command(t, "--protocol", "gemini-cli", "--event", "AfterAgent", "--server", "http://127.0.0.1:1")
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
		cmd.Stdin, cmd.Stdout = strings.NewReader(`{"hook_event_name":"AfterAgent","session_id":"s"}`), w
		if err := cmd.Run(); err != nil {
			t.Errorf("%v", err)
		}
	})
}

// The two programs have the same flags, with the same defaults.
func TestHooksHaveTheSameFlags(t *testing.T) {
	parser, err := kong.New(&commands{}, kong.Vars{"server": "http://127.0.0.1:1", "protocols": "", "hosts": "", "hookSystems": "", "dialects": ""})
	if err != nil {
		t.Fatal(err)
	}
	var help bytes.Buffer
	hookclient.Command{}.Run(t.Context(), hookclient.Process{Stdout: &help, Getenv: func(string) string { return "http://127.0.0.1:1" }}, []string{"--help"})
	i := slices.IndexFunc(parser.Model.Children, func(n *kong.Node) bool { return n.Name == "hook" })
	for _, f := range parser.Model.Children[i].Flags {
		line := regexp.MustCompile(`(?m)^  --` + f.Name + ` .*$`).FindString(help.String())
		if line == "" || f.Default != "" && !strings.HasSuffix(line, "("+f.Default+")") {
			t.Errorf("--%s, default %q: %q", f.Name, f.Default, line)
		}
	}
}
