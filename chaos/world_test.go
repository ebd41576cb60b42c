package chaos

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"stopgate/store/postgres/postgrestest"
)

// setup is what is loaded and killed: a store, and how many replicas share it.
type setup struct {
	name     string
	replicas int
	postgres bool
}

var setups = []setup{
	{name: "sqlite", replicas: 1},
	{name: "postgres", replicas: 1, postgres: true},
	{name: "postgres x3", replicas: 3, postgres: true},
}

// world is a running setup: real servers as child processes on loopback, their
// store and their model.
type world struct {
	t        testing.TB
	setup    setup
	dir      string // everything of it but the binary
	disk     string // where the data lies if that can be filled; else empty
	bin      string
	model    *model
	replicas []*replica
	clocks   bool // the binary's clock can be moved
}

// replica is one server process, or the place of one that was killed.
type replica struct {
	name, config, data, log string
	prefix                  []string // what the server is started by, as strace
	hours                   int      // by how many its clock is off

	mu  sync.Mutex // holds url; the rest is the fault's alone
	url string     // empty before it first listens
	cmd *exec.Cmd
	// ended is closed when nothing is left that could write to the log.
	ended chan struct{}
}

// startWorld starts everything and puts the specs in force.
func startWorld(t testing.TB, of setup, bin string, disk string) *world {
	if of.postgres {
		disk = "" // what is stored is elsewhere
	}
	w := &world{t: t, setup: of, dir: t.TempDir(), disk: disk, bin: bin, model: startModel(t)}
	database := ""
	if of.postgres {
		database = postgrestest.Database(t)
	}
	for n := range of.replicas {
		w.replicas = append(w.replicas, w.place(fmt.Sprint("replica", n), database, "power"))
	}
	t.Cleanup(func() {
		for _, r := range w.replicas {
			r.kill()
		}
	})
	for _, r := range w.replicas {
		w.start(r)
	}
	w.putSpecs()
	return w
}

// place is a replica with its server file. The server's store is its own or the
// database.
func (w *world) place(name, database, durability string) *replica {
	data := filepath.Join(w.dir, name)
	if w.disk != "" {
		data = filepath.Join(w.disk, name)
	}
	r := &replica{name: name, config: filepath.Join(w.dir, name+".yaml"), data: data, log: filepath.Join(w.dir, name+".log")}
	file, _ := json.Marshal(map[string]any{ // JSON is YAML
		"listen": "127.0.0.1:0", "data": data, "database": database, "durability": durability, "on_gate_error": "block",
		// It is the storing that is tried here, not the sandbox.
		"sandbox":     map[string]any{"mode": "process"},
		"transcripts": map[string]any{"roots": []string{}},
		"models": map[string]any{"providers": map[string]any{"scripted": map[string]any{
			"kind": "openai", "base_url": w.model.url + "/v1", "model": "scripted", "tools": false, "schema": false}}},
	})
	if err := os.WriteFile(r.config, file, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// startLimit is how long a server may take to listen on a busy machine.
const startLimit = time.Minute

// start runs the replica's server and returns when it listens.
func (w *world) start(r *replica) {
	w.t.Helper()
	line := append(append([]string{}, r.prefix...), w.bin, "serve", "--config", r.config)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = w.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "TMPDIR=" + w.dir, clockVariable + "=" + w.clockFile(r)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // no server outlives the harness, however that ends
	stderr, end, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd.Stderr = end
	err = cmd.Start()
	end.Close()
	if err != nil {
		stderr.Close()
		w.t.Fatal(err)
	}
	r.cmd, r.ended = cmd, make(chan struct{})
	listening := make(chan string, 1)
	go r.follow(stderr, listening, r.ended)
	select {
	case url := <-listening:
		r.set(url)
		return
	case <-r.ended:
	case <-time.After(startLimit):
	}
	r.kill()
	log, _ := os.ReadFile(r.log)
	w.t.Fatalf("%s of %s does not start; its log:\n%s", r.name, w.setup.name, log)
}

// follow keeps what a server says, and tells the address that it says.
func (r *replica) follow(from *os.File, listening chan<- string, ended chan<- struct{}) {
	defer close(ended)
	defer from.Close()
	log, err := os.OpenFile(r.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer log.Close()
	for lines := bufio.NewReader(from); ; {
		line, err := lines.ReadString('\n')
		log.WriteString(line)
		var said struct{ Msg, URL string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "listening" {
			listening <- said.URL
		}
		if err != nil {
			return
		}
	}
}

func (r *replica) at() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.url
}

func (r *replica) set(url string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.url = url
}

// kill ends the server as kill -9 does. Its address stays known to clients, as
// it does behind a load balancer that has not noticed yet.
func (r *replica) kill() {
	if r.cmd == nil {
		return
	}
	r.cmd.Process.Kill()
	r.cmd.Wait()
	r.cmd = nil
}

// stop ends the server in peace.
func (w *world) stop(r *replica) {
	w.t.Helper()
	r.cmd.Process.Signal(os.Interrupt)
	ended := make(chan error, 1)
	go func() { ended <- r.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			w.t.Errorf("%s does not end in peace: %v", r.name, err)
		}
		r.cmd = nil
	case <-time.After(startLimit):
		w.t.Errorf("%s does not end", r.name)
	}
}

// specs are what the clients are gated by.
var specs = map[string]string{
	"agents/plain": `{"name":"plain","type":"ExtendedAgent","properties":{"instructions":"No hook."}}`,
	"agents/scripted": `{"name":"scripted","type":"ExtendedAgent","properties":{"instructions":"A script.","hooks":{"Stop":[
		{"name":"script","type":"command","failMode":"block","timeout":10,
		 "script":"#!/bin/bash\ncase $(cat) in *'verdict reject'*) echo not done >&2; exit 2;; esac\n"}]}}}`,
	"agents/judged": `{"name":"judged","type":"ExtendedAgent","properties":{"instructions":"A strict judge.","hooks":{"Stop":[
		{"name":"judge","type":"prompt","failMode":"block","timeout":1,"maxRejections":2,"prompt":"Is it proven? $ARGUMENTS"}]}}}`,
	"agents/lenient": `{"name":"lenient","type":"ExtendedAgent","properties":{"instructions":"A lenient judge.","hooks":{"Stop":[
		{"name":"judge","type":"prompt","failMode":"allow","timeout":1,"prompt":"Is it proven? $ARGUMENTS"}]}}}`,
	"hooks/ondemand": `{"name":"ondemand","type":"GlobalHook","properties":{"eventType":"PreToolUse","activationMode":"onDemand","description":"Switched.",
		"hook":{"type":"command","matcher":"*","failMode":"block","timeout":10,"script":"#!/bin/bash\nexit 0\n"}}}`,
}

// rules are what the checker knows of them.
var rules = Rules{Cap: map[string]int{"judged": 2}, OnDemand: "ondemand"}

func (w *world) putSpecs() {
	w.t.Helper()
	for path, document := range specs {
		status, _, body := w.call(w.replicas[0], http.MethodPut, "/api/v2/extendedAgent/"+path, strings.NewReader(document))
		if status != http.StatusAccepted {
			w.t.Fatalf("%s: %d %s", path, status, body)
		}
	}
	for _, r := range w.replicas { // in force everywhere within a second
		for until := time.Now().Add(startLimit); ; time.Sleep(20 * time.Millisecond) {
			status, _, body := w.call(r, http.MethodGet, "/api/v1/threads/x/hooks", nil)
			if status == http.StatusOK && strings.Contains(body, "ondemand") {
				if status, _, _ := w.call(r, http.MethodPost, "/v1/validate", strings.NewReader(specs["agents/plain"])); status == http.StatusOK {
					break
				}
			}
			if time.Now().After(until) {
				w.t.Fatalf("%s does not know the specs: %d %s", r.name, status, body)
			}
		}
	}
}

// client waits longer than any hook and any store takes.
var client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

// call sends one request of the harness itself; status 0: no answer.
func (w *world) call(r *replica, method, path string, body io.Reader) (status int, header http.Header, answer string) {
	req, err := http.NewRequestWithContext(w.t.Context(), method, r.at()+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err.Error()
	}
	return resp.StatusCode, resp.Header, string(b)
}
