package transcripts

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stopgate/gate"
)

// conversation writes size bytes of lines as agents' logs have them.
func conversation(w io.Writer, size int) {
	words := []string{"connection", "pool", "deploy", "timeout", "the", "of", "request", "user", "answer", "file",
		"running", "test", "package", "response", "token", "error", "retry", "because", "function", "returns"}
	rnd := rand.New(rand.NewPCG(1, 2))
	var line []byte
	for n := 0; size > 0; n++ {
		line = fmt.Appendf(line[:0], "2026-03-%02d %02d:%02d INFO [%d]", n%28+1, n%24, n%60, n)
		for range rnd.IntN(20) {
			line = append(append(line, ' '), words[rnd.IntN(len(words))]...)
		}
		switch n % 20000 {
		case 77:
			line = append(line, " ERROR 503 upstream"...)
		case 78:
			line = append(line, ` {"type":"tool_use","name":"Bash"}`...)
		case 79:
			line = append(line, " connection to the pool: ERROR"...)
		}
		line = append(line, '\n')
		size -= len(line)
		_, _ = w.Write(line)
	}
}

// benchBytes is STOPGATE_BENCH_MIB megabytes, 256 by default.
func benchBytes() int {
	mib, err := strconv.Atoi(os.Getenv("STOPGATE_BENCH_MIB"))
	if err != nil {
		mib = 256
	}
	return mib << 20
}

// BenchmarkGrep searches one text with GrepSearch and, where it is installed,
// with ripgrep on one thread, by turns: "of-rg" is the share of ripgrep's
// throughput, "cpu-of-rg" the same by processor time, which a busy machine
// changes less. "MiB" is by how much the process grew at its peak.
func BenchmarkGrep(b *testing.B) {
	s := openStore(b, Options{})
	path := filepath.Join(b.TempDir(), "text")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	conversation(f, benchBytes())
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Replace(b.Context(), "bench", 0, "text/plain", f); err != nil {
		b.Fatal(err)
	}
	f.Close()
	view := attach(b, s, &gate.Event{Session: "bench"})
	rg, _ := exec.LookPath("rg")

	for _, bench := range []struct{ name, pattern string }{
		{"literal", "ERROR 503 upstream"},
		{"no match", "ThisIsNowhere"},
		{"alternation", "(?i)upstream|tool_use|zebra"},
		{"a.*b", "connection.*pool.*ERROR"},
		{"tool", `tool_use.*"Bash"`},
		{"literal and class", `ERROR\s+\d{3}`},
		{"no literal", `[A-Z]{5} \d{3}`},
		{"dense without case", "(?i)the"},
		{"run and edges", `\b[A-Z]{5} \d{3}\b`},
		{"run in vain", `^\d\d [A-Z]`},
		{"every line", "."},
		{"every line by class", `\d+:\d\d`},
		{"empty match", "x*"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(benchBytes()))
			var ours, theirs, ourCPU, theirCPU time.Duration
			small := resident(b, "VmRSS")
			for b.Loop() {
				began, used := time.Now(), processorTime(b)
				if _, err := view.GrepSearch(b.Context(), gate.Grep{Pattern: bench.pattern}); err != nil {
					b.Fatal(err)
				}
				ours, ourCPU = ours+time.Since(began), ourCPU+processorTime(b)-used
				if rg == "" {
					continue
				}
				b.StopTimer()
				began = time.Now()
				cmd := exec.Command(rg, "--no-config", "-j1", "-n", "-e", bench.pattern, view.Path())
				_ = cmd.Run() // to /dev/null, its fastest; exit status 1: no match
				theirs += time.Since(began)
				theirCPU += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				b.StartTimer()
			}
			b.ReportMetric(float64(resident(b, "VmHWM")-small)/(1<<20), "MiB")
			if rg != "" {
				b.ReportMetric(theirs.Seconds()/ours.Seconds(), "of-rg")
				b.ReportMetric(theirCPU.Seconds()/ourCPU.Seconds(), "cpu-of-rg")
			}
		})
	}
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident is a figure of /proc/self/status in bytes, 0 where there is none. To
// ask for VmRSS begins a new peak, VmHWM.
func resident(b *testing.B, figure string) int64 {
	b.Helper()
	if figure == "VmRSS" {
		debug.FreeOSMemory()
		_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	}
	status, _ := os.ReadFile("/proc/self/status")
	var kib int64
	if _, after, found := strings.Cut(string(status), figure+":"); found {
		_, _ = fmt.Sscanf(after, "%d", &kib)
	}
	return kib << 10
}

// BenchmarkReadFile reads 200 lines at the end of an uploaded text.
func BenchmarkReadFile(b *testing.B) {
	s := openStore(b, Options{})
	r, w := io.Pipe()
	go func() {
		conversation(w, benchBytes())
		w.Close()
	}()
	size, err := s.Replace(b.Context(), "bench", 0, "text/plain", r)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		view, err := s.Attach(b.Context(), &gate.Event{Session: "bench"})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := view.ReadFile(b.Context(), int(size.Lines)-200, 200); err != nil {
			b.Fatal(err)
		}
		view.Close()
	}
}

// BenchmarkAttachInline is what an inline conversation of 8 KiB costs, stored
// for its session and not.
func BenchmarkAttachInline(b *testing.B) {
	s := openStore(b, Options{})
	var content strings.Builder
	conversation(&content, 8<<10)
	inline, err := json.Marshal([]map[string]string{{"role": "user", "content": content.String()}})
	if err != nil {
		b.Fatal(err)
	}
	for _, session := range []string{"", "bench"} {
		b.Run("session="+session, func(b *testing.B) {
			for b.Loop() {
				view, err := s.Attach(b.Context(), &gate.Event{Session: session, InlineTranscript: inline})
				if err != nil {
					b.Fatal(err)
				}
				view.Close()
			}
		})
	}
}
