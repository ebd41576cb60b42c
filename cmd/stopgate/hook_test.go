package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stopgate/gate"
)

// hookRun is one call of `stopgate hook` in this process.
type hookRun struct {
	args    []string
	payload []byte
	env     map[string]string
}

func (r hookRun) run(t *testing.T) (stdout string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	p := process{ctx: t.Context(), stdin: bytes.NewReader(r.payload), stdout: &out, stderr: &errs, getenv: func(k string) string { return r.env[k] }}
	code = run(p, append([]string{"hook"}, r.args...))
	if errs.Len() > 0 {
		t.Errorf("standard error: %s", errs.String())
	}
	return out.String(), code
}

// A server that takes the request and never answers is given up within two
// seconds of the deadline.
func TestHookGivesAFrozenServerUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts by its backlog, answers never
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	began := time.Now()
	out, code := hookRun{args: []string{"--protocol", "claude-code", "--deadline", "0.5", "--server", "http://" + l.Addr().String(), "--on-unreachable", "block"},
		payload: []byte(`{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"x"}`)}.run(t)
	if code != 0 || !strings.Contains(out, `"decision":"block"`) {
		t.Errorf("exit %d, %s", code, out)
	}
	if took := time.Since(began); took < 500*time.Millisecond || took > 4*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestHookReadsAHostThatKeepsThePipeOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		go func() {
			_, _ = w.Write([]byte(`{"hook_event_name":`))
			time.Sleep(time.Second)
			_, _ = w.Write([]byte(`"Stop"}`)) // and no end
		}()
		payload, err := readPayload(r)
		if err != nil || string(payload) != `{"hook_event_name":"Stop"}` {
			t.Errorf("%q %v", payload, err)
		}
		w.Close()
	})
}

func TestHookRefusesAPayloadThatIsTooLarge(t *testing.T) {
	if _, err := readPayload(io.LimitReader(zeros{}, maxPayload+1)); err == nil {
		t.Error("no error")
	}
	if b, err := readPayload(io.LimitReader(zeros{}, maxPayload)); err != nil || len(b) != maxPayload {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := readPayload(io.MultiReader(strings.NewReader("{"), broken{})); err == nil {
		t.Error("a read error is lost")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

// What a server answers that is no answer of ours is never shown to a host.
func TestHookTrustsNoForeignAnswer(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"a page":     func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>please log in</html>")) },
		"an array":   func(w http.ResponseWriter) { _, _ = w.Write([]byte(`[]`)) },
		"a redirect": func(w http.ResponseWriter) { w.Header().Set("Location", "/elsewhere"); w.WriteHeader(http.StatusFound) },
		"401":        func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
		"503 and block": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"decision":"block","reason":"x"}`))
		},
		"too much": func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"a":"` + strings.Repeat("x", maxAnswer) + `"}`)) },
		"cut short": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"decision":`))
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := serveOnce(t, func(w http.ResponseWriter, _ *http.Request) { answer(w) })
			out, code := hookRun{args: []string{"--protocol", "gemini-cli", "--event", "AfterAgent", "--server", url},
				payload: []byte(`{"hook_event_name":"AfterAgent","session_id":"s","prompt_response":"x"}`)}.run(t)
			if out != "{}" || code != 0 {
				t.Errorf("exit %d, %q", code, out)
			}
		})
	}
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
			env: map[string]string{"XDG_STATE_HOME": state}}.run(t)
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
	t.Run("what cannot be sent is noted", func(t *testing.T) {
		count.refuse = true
		write(t, path, say("user", "new"))
		stop("Done.")
		_, list := s.do(http.MethodGet, "/v1/evaluations?agent=a&limit=1", "", nil)
		if !strings.Contains(string(list), string(gate.TranscriptLost)) {
			t.Errorf("%s", list)
		}
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
				env: map[string]string{"XDG_STATE_HOME": state}}.run(t)
		})
	}
	all.Wait()
	_, session := s.do(http.MethodGet, "/v1/sessions/p", "", nil)
	var got struct{ Transcript struct{ Bytes int } }
	if err := json.Unmarshal(session, &got); err != nil || got.Transcript.Bytes != content.Len() {
		t.Errorf("%v, want %d bytes: %s", err, content.Len(), session)
	}
}
