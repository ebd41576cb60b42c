package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sys/unix"
)

// BenchmarkEvaluate asks POST /v1/evaluate, and POST /v1/hooks/claude-code in that
// host's form, about a tool that no hook matches, durable record included, and a bare
// Echo server to echo the same JSON, in turns of a hundred milliseconds in one run. "of-echo" is the gate's
// throughput as a share of Echo's, "cpu-of-echo" the same by processor time, the
// client's included; ns/op counts both.
func BenchmarkEvaluate(b *testing.B) {
	gateAddr := benchService(b)
	bare := echo.New()
	bare.POST("/*", echoJSON)
	echoAddr := listen(b, bare)
	for name, requestOf := range map[string]func(size int) []byte{"native": benchRequest, "claude-code": benchHostRequest} {
		for _, size := range []int{433, 8 << 10} {
			request := requestOf(size)
			for _, connections := range []int{64, 8, 1} {
				b.Run(fmt.Sprintf("%s/%dB/%dconn", name, size, connections), func(b *testing.B) {
					gate, plain := dialLoad(b, gateAddr, connections), dialLoad(b, echoAddr, connections)
					var gateDone, plainDone int
					for b.Loop() {
						gateDone += gate.turn(b, request)
						plainDone += plain.turn(b, request)
					}
					b.ReportMetric(float64(gateDone)/float64(plainDone), "of-echo")
					b.ReportMetric((plain.used.Seconds()/float64(plainDone))/(gate.used.Seconds()/float64(gateDone)), "cpu-of-echo")
					b.ReportMetric(float64(gateDone)/gate.spent.Seconds(), "gate-req/s")
				})
			}
		}
	}
}

func echoJSON(c echo.Context) error {
	var v map[string]any
	if err := c.Bind(&v); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, v)
}

const benchSpec = `{"name":"bench","properties":{"hooks":{"PostToolUse":[{"type":"command","matcher":"Bash|Write","command":"true"}],"Stop":[{"type":"prompt","prompt":"x"}]}}}`

// benchService is the real server with an agent whose hooks do not match.
func benchService(b *testing.B) string {
	s := newService(b)
	if status, answer := s.do(http.MethodPut, agents+"bench", "application/json", []byte(benchSpec)); status != http.StatusAccepted {
		b.Fatalf("%d %s", status, answer)
	}
	return strings.TrimPrefix(s.url, "http://")
}

// benchRequest is a whole HTTP request whose body has that many bytes.
func benchRequest(size int) []byte {
	return rawRequest("/v1/evaluate", size, `{"hook_event_name":"PostToolUse","agent_name":"bench","session_id":"bench-1","current_turn":7,"max_turns":50,"tool_name":"ReadFile","tool_input":{"path":"src/main.go"},"tool_succeeded":true,"tool_result":"`, `"}`)
}

// benchHostRequest is the same of a tool call in Claude Code.
func benchHostRequest(size int) []byte {
	return rawRequest("/v1/hooks/claude-code?agent=bench", size, `{"session_id":"bench-2","transcript_path":"/home/me/.claude/projects/app/bench-2.jsonl","cwd":"/home/me/app","permission_mode":"default","hook_event_name":"PostToolUse","tool_name":"Read","tool_input":{"file_path":"src/main.go"},"tool_use_id":"toolu_1","tool_response":{"type":"text","content":"`, `"}}`)
}

func rawRequest(path string, size int, head, tail string) []byte {
	words := strings.Repeat("func main runs the server and waits for it to end, line by line. ", size/64+1)
	body := head + words[:size-len(head)-len(tail)] + tail
	return []byte("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

func listen(b *testing.B, h http.Handler) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	go func() { _ = srv.Serve(l) }()
	b.Cleanup(func() { _ = srv.Close() })
	return l.Addr().String()
}

// load is a client that costs as little as it can, so that the servers' own
// cost shows.
type load struct {
	conns []net.Conn
	spent time.Duration
	used  time.Duration // of the processor, by this process, in its turns
}

func dialLoad(b *testing.B, addr string, connections int) *load {
	l := &load{}
	for range connections {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close() })
		l.conns = append(l.conns, c)
	}
	return l
}

// turn sends the request over and over on every connection for a tenth of a
// second and counts the answers.
func (l *load) turn(b *testing.B, request []byte) int {
	began, used := time.Now(), processorTime(b)
	var done int
	var mu sync.Mutex
	var running sync.WaitGroup
	for _, c := range l.conns {
		running.Go(func() {
			r, n := bufio.NewReader(c), 0
			for time.Since(began) < 100*time.Millisecond {
				if _, err := c.Write(request); err != nil {
					b.Error(err)
					return
				}
				if err := skipAnswer(r); err != nil {
					b.Error(err)
					return
				}
				n++
			}
			mu.Lock()
			done += n
			mu.Unlock()
		})
	}
	running.Wait()
	l.spent, l.used = l.spent+time.Since(began), l.used+processorTime(b)-used
	return done
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// skipAnswer reads one answer with status 200 and drops it.
func skipAnswer(r *bufio.Reader) error {
	length := -1
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.Contains(line, []byte(" 200 ")) {
			return fmt.Errorf("answer %q", line)
		}
		if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(v))); err != nil {
				return err
			}
		}
		if len(bytes.TrimSpace(line)) > 0 {
			continue
		}
		if length < 0 {
			return skipChunks(r)
		}
		_, err = io.CopyN(io.Discard, r, int64(length))
		return err
	}
}

func skipChunks(r *bufio.Reader) error {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(line), 16, 64)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, r, n+2); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
	}
}
