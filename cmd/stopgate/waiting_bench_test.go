package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkWaitingPrompts has 5,000 Stops judged at once by a model that takes
// its time, in a server process of its own. "at-model" is how many requests the
// model had open at the same moment, "added-p99-ms" what the gate adds to the
// model's time, "server-MiB" the server's largest resident memory.
func BenchmarkWaitingPrompts(b *testing.B) {
	const waiting, think = 5000, 12 * time.Second
	var open, most atomic.Int64
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := open.Add(1)
		defer open.Add(-1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		time.Sleep(think)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"candidates":[{"content":{"role":"model","parts":[{"text":"{\"ok\":true}"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":7}}`))
	}))
	defer model.Close()
	url, pid := startServer(b, "GEMINI_API_KEY=bench", "GOOGLE_GEMINI_BASE_URL="+model.URL)
	put(b, url+agents+"waiting", `{"name":"waiting","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"Is it done?","timeout":120,"failMode":"block"}]}}}`)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: waiting}}
	for b.Loop() {
		added := make([]time.Duration, waiting)
		var running sync.WaitGroup
		for i := range added {
			// Arrivals are spread, as those of agents are: all at one instant
			// would measure the client.
			time.Sleep(think / 2 / waiting)
			running.Go(func() {
				began := time.Now()
				body := fmt.Sprintf(`{"hook_event_name":"Stop","agent_name":"waiting","session_id":"s%d","final_output":"Done."}`, i)
				resp, err := client.Post(url+"/v1/evaluate", "application/json", strings.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				defer resp.Body.Close()
				line, err := bufio.NewReader(resp.Body).ReadString('\n')
				if err != nil || !strings.Contains(line, `"decision":"allow"`) || strings.Contains(line, `"degraded":true`) {
					b.Errorf("%v %s", err, line)
				}
				added[i] = time.Since(began) - think
			})
		}
		running.Wait()
		slices.Sort(added)
		b.ReportMetric(float64(added[waiting*99/100].Microseconds())/1000, "added-p99-ms")
		b.ReportMetric(float64(added[waiting/2].Microseconds())/1000, "added-p50-ms")
	}
	b.ReportMetric(float64(most.Load()), "at-model")
	b.ReportMetric(float64(peakMemory(b, pid))/(1<<20), "server-MiB")
}

// startServer builds stopgate and runs it until the benchmark ends.
func startServer(b *testing.B, env ...string) (url string, pid int) {
	dir := b.TempDir()
	binary := filepath.Join(dir, "stopgate")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	port := freePort(b)
	cmd := exec.Command(binary, "serve", "--listen", "127.0.0.1:"+port, "--data", filepath.Join(dir, "data"))
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	url = "http://127.0.0.1:" + port
	for range 200 {
		if resp, err := http.Get(url + "/healthz"); err == nil {
			resp.Body.Close()
			return url, cmd.Process.Pid
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.Fatal("the server does not answer")
	return "", 0
}

func put(b *testing.B, url, body string) {
	req, err := http.NewRequest(http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		b.Fatalf("PUT %s: %s", url, resp.Status)
	}
}

// peakMemory is the largest resident memory that a process has had, in bytes.
func peakMemory(b *testing.B, pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); f[0] == "VmHWM:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib << 10
		}
	}
	b.Fatal("no VmHWM")
	return 0
}
