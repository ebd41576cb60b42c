package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkServeMemory loads the real program, as a process of its own, for ten
// seconds with 64 connections, in the manner of BenchmarkEvaluate, and reports
// the most memory that it had resident, from its start on, and the most that was its
// own and not its program's file.
func BenchmarkServeMemory(b *testing.B) {
	for _, size := range []int{433, 8 << 10} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			served := startServe(b)
			s := &service{t: b, url: "http://" + served.addr}
			if status, answer := s.do(http.MethodPut, agents+"bench", "application/json", []byte(benchSpec)); status != http.StatusAccepted {
				b.Fatalf("%d %s", status, answer)
			}
			callers, request := dialLoad(b, served.addr, 64), benchRequest(size)
			done, own := 0, 0.0
			for b.Loop() {
				for range 100 {
					done += callers.turn(b, request)
					own = max(own, served.resident(b, "RssAnon"))
				}
			}
			b.ReportMetric(served.peak(b), "peak-MiB")
			b.ReportMetric(own, "own-peak-MiB")
			b.ReportMetric(float64(done)/callers.spent.Seconds(), "req/s")
		})
	}
}

// served is a `stopgate serve` in its own process.
type served struct {
	addr string
	pid  int
}

// startServe starts the program that TestMain has put into PATH, on a temporary
// data directory and with more environment, and stops it at the benchmark's end.
func startServe(b *testing.B, env ...string) served {
	b.Helper()
	addr := "127.0.0.1:" + freePort(b)
	return startServeAt(b, addr, "http://"+addr, http.DefaultClient, env)
}

// startServeAt is startServe at an address of which the client knows the URL, and
// with more arguments.
func startServeAt(b *testing.B, addr, url string, client *http.Client, env []string, args ...string) served {
	b.Helper()
	var log bytes.Buffer
	cmd := exec.Command("stopgate", append([]string{"serve", "--listen", addr, "--data", b.TempDir()}, args...)...)
	cmd.Stderr = &log
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			b.Errorf("serve: %v\n%s", err, log.String())
		}
	})
	for range 100 {
		if resp, err := client.Get(url + "/healthz"); err == nil {
			_ = resp.Body.Close()
			return served{addr, cmd.Process.Pid}
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.Fatal("the service does not answer")
	return served{}
}

// peak is the process's greatest resident size so far, in MiB.
func (s served) peak(b *testing.B) float64 {
	b.Helper()
	return s.resident(b, "VmHWM")
}

// resident is a figure of the process's memory as Linux names it, in MiB. RssAnon is what
// it has written itself, without the pages of its program's file, of which the kernel
// maps as many round one that is touched as it has at hand, and takes them back when it
// needs them.
func (s served) resident(b *testing.B, figure string) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		b.Skipf("no memory to be read here: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, figure+":"); ok {
			kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(v), " kB"))
			if err != nil {
				b.Fatal(err)
			}
			return float64(kib) / 1024
		}
	}
	b.Skipf("no %s in /proc", figure)
	return 0
}

// cpu is the processor time that the process has used so far, without that of the
// scripts that it started.
func (s served) cpu(b *testing.B) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		b.Skipf("no time to be read here: %v", err)
	}
	_, after, _ := strings.Cut(string(stat), ") ") // a name may have spaces
	fields := strings.Fields(after)
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100 // USER_HZ, the same on every Linux
}
