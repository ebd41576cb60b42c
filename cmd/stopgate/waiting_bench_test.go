package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
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
	server := startServe(b, "GEMINI_API_KEY=bench", "GOOGLE_GEMINI_BASE_URL="+model.URL)
	s := &service{t: b, url: "http://" + server.addr}
	spec := []byte(`{"name":"waiting","properties":{"hooks":{"Stop":[{"type":"prompt","prompt":"Is it done?","timeout":120,"failMode":"block"}]}}}`)
	if status, answer := s.do(http.MethodPut, agents+"waiting", "application/json", spec); status != http.StatusAccepted {
		b.Fatalf("%d %s", status, answer)
	}
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
				resp, err := client.Post(s.url+"/v1/evaluate", "application/json", strings.NewReader(body))
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
	b.ReportMetric(server.peak(b), "server-MiB")
}
