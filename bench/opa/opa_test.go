// Package opa asks stopgate and OPA's server the same question, whether a shell
// command may run, in one run: `make bench-opa`. It is a module of its own, so that
// OPA is no dependency of stopgate's.
package opa

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	root = "../.."
	// turn is how long each server is asked before it is the next one's.
	turn = 200 * time.Millisecond
)

// server is one that is asked, and how.
type server struct {
	name, addr, path string
	body             string // with the command for %s
	latencies        []time.Duration
	spent            time.Duration
}

// questions are commands and their answers; they are asked by turns.
var questions = []struct{ command, decision string }{
	{`cd /srv/app && rm -rf build && make all`, "block"},
	{`cd /srv/app && go test ./... && git status`, "allow"},
}

// BenchmarkBesideOPA asks, in turns, a rule hook with its decisions stored as by
// default, the same where only a killed process must not lose them, the command hook
// that the rule replaces, and OPA's server, with its decisions written to its log and
// with nothing kept of them. "of-opa" is a throughput as a share of the last; the
// times are milliseconds.
func BenchmarkBesideOPA(b *testing.B) {
	servers := start(b)
	for _, s := range servers {
		for _, q := range questions {
			if answer, err := s.once(q.command); err != nil || !strings.Contains(answer, `"decision":"`+q.decision+`"`) {
				b.Fatalf("%s about %q: %v %s", s.name, q.command, err, answer)
			}
		}
	}
	for _, connections := range []int{8, 1} {
		b.Run(fmt.Sprintf("%dconn", connections), func(b *testing.B) {
			for _, s := range servers {
				s.latencies, s.spent = nil, 0
			}
			for b.Loop() {
				for _, s := range servers {
					s.turn(b, connections)
				}
			}
			opa := servers[len(servers)-1].throughput()
			for _, s := range servers {
				slices.Sort(s.latencies)
				b.ReportMetric(s.throughput(), s.name+"-req/s")
				b.ReportMetric(s.throughput()/opa, s.name+"-of-opa")
				b.ReportMetric(s.quantile(0.5), s.name+"-p50-ms")
				b.ReportMetric(s.quantile(0.99), s.name+"-p99-ms")
			}
		})
	}
}

// start builds and starts every server; OPA's is the last.
func start(b *testing.B) []*server {
	dir := b.TempDir()
	build(b, root, filepath.Join(dir, "stopgate"), "./cmd/stopgate")
	build(b, ".", filepath.Join(dir, "opa"), "github.com/open-policy-agent/opa")
	specs := filepath.Join(dir, "specs")
	if err := os.Mkdir(specs, 0o700); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"dangerous-command.yaml", "dangerous-command-rule.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, "examples", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(specs, name), text, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	gate := func(durability string) string {
		file := filepath.Join(dir, durability+".yaml")
		if err := os.WriteFile(file, []byte("durability: "+durability+"\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		return run(b, "/readyz", filepath.Join(dir, "stopgate"), "serve", "--config", file, "--data", filepath.Join(dir, durability), "--agents", specs, "--listen")
	}
	event := func(agent string) string {
		return `{"hook_event_name":"PreToolUse","agent_name":"` + agent + `","session_id":"bench","tool_name":"Bash","tool_input":{"command":"%s"}}`
	}
	opa := func(more ...string) string {
		args := append([]string{"run", "--server", "--log-level", "error", "dangerous.rego"}, more...)
		return run(b, "/health", filepath.Join(dir, "opa"), append(args, "--addr")...)
	}
	question := `{"input":` + event("careful_operator") + `}`
	stored, kept := gate("power"), gate("process")
	return []*server{
		{name: "rule", addr: stored, path: "/v1/evaluate", body: event("careful_operator_by_rules")},
		{name: "rule-process", addr: kept, path: "/v1/evaluate", body: event("careful_operator_by_rules")},
		{name: "command", addr: stored, path: "/v1/evaluate", body: event("careful_operator")},
		{name: "opa-logging", addr: opa("--set", "decision_logs.console=true"), path: "/v1/data/hooks/answer", body: question},
		{name: "opa", addr: opa(), path: "/v1/data/hooks/answer", body: question},
	}
}

func build(b *testing.B, dir, to, what string) {
	cmd := exec.CommandContext(b.Context(), "go", "build", "-ldflags", "-s -w", "-o", to, what)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v %s", what, err, out)
	}
}

// run starts a server on a port of loopback, whose address is its last argument,
// and waits until it is up.
func run(b *testing.B, health, program string, args ...string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr = l.Addr().String()
	_ = l.Close()
	// The process outlives the test's context, which ends before its cleanups.
	cmd := exec.CommandContext(context.Background(), program, append(args, addr)...)
	out, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.TempDir()}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	over := make(chan struct{})
	go func() { _ = cmd.Wait(); close(over) }()
	b.Cleanup(func() { _ = cmd.Process.Kill(); <-over })
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get("http://" + addr + health)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return addr
			}
		}
		select {
		case <-over:
			text, _ := os.ReadFile(out.Name())
			b.Fatalf("%s: %s", program, text)
		default:
		}
		if time.Now().After(until) {
			b.Fatalf("%s does not answer: %v", program, err)
		}
	}
}

// request is a whole HTTP request about a command.
func (s *server) request(command string) []byte {
	body := strings.Replace(s.body, "%s", command, 1)
	return []byte("POST " + s.path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// once is the answer about one command.
func (s *server) once(command string) (string, error) {
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := c.Write(s.request(command)); err != nil {
		return "", err
	}
	return answer(bufio.NewReader(c))
}

func answer(r *bufio.Reader) (string, error) {
	a, err := http.ReadResponse(r, nil)
	if err != nil {
		return "", err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", a.StatusCode)
	}
	return string(text), err
}

// turn asks over and over, on every connection.
func (s *server) turn(b *testing.B, connections int) {
	var mu sync.Mutex
	var running sync.WaitGroup
	began := time.Now()
	for range connections {
		running.Go(func() {
			latencies, err := s.ask(began.Add(turn))
			mu.Lock()
			defer mu.Unlock()
			if s.latencies = append(s.latencies, latencies...); err != nil {
				b.Errorf("%s: %v", s.name, err)
			}
		})
	}
	running.Wait()
	s.spent += time.Since(began)
}

// ask asks on one connection.
func (s *server) ask(until time.Time) (latencies []time.Duration, err error) {
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	r := bufio.NewReader(c)
	var requests [][]byte
	for _, q := range questions {
		requests = append(requests, s.request(q.command))
	}
	for n := 0; time.Now().Before(until); n++ {
		began := time.Now()
		if _, err := c.Write(requests[n%len(requests)]); err != nil {
			return latencies, err
		}
		if _, err := answer(r); err != nil {
			return latencies, err
		}
		latencies = append(latencies, time.Since(began))
	}
	return latencies, nil
}

func (s *server) throughput() float64 { return float64(len(s.latencies)) / s.spent.Seconds() }

// quantile of the sorted latencies in milliseconds.
func (s *server) quantile(q float64) float64 {
	return float64(s.latencies[int(q*float64(len(s.latencies)-1))].Microseconds()) / 1000
}
