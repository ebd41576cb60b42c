package gemini

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/prompthooks"
)

// BenchmarkWaiting measures what one evaluation costs while its model thinks,
// the test server's part of the connection included. 5,000 of them are to fit
// into 1 GiB.
func BenchmarkWaiting(b *testing.B) {
	const n = 500
	var open atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		open.Add(1)
		<-r.Context().Done()
	}))
	defer s.Close()
	p, err := New(b.Context(), Options{APIKey: testKey, BaseURL: s.URL})
	if err != nil {
		b.Fatal(err)
	}
	j, err := prompthooks.New(prompthooks.Options{Model: func(string) (prompthooks.Model, string, error) { return p, "m", nil }})
	if err != nil {
		b.Fatal(err)
	}
	in := stop(page{})
	in.Context = []byte(`{"final_output":"` + strings.Repeat("x", 8000) + `"}`)

	var before, during runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		open.Store(0)
		ctx, cancel := context.WithCancel(b.Context())
		var waiting sync.WaitGroup
		for range n {
			waiting.Go(func() {
				if v := j.Evaluate(ctx, in); v.Outcome != gate.NoVerdict {
					b.Errorf("got %s from a server that never answers", v.Outcome)
				}
			})
		}
		for open.Load() < n {
			time.Sleep(time.Millisecond)
		}
		runtime.GC()
		runtime.ReadMemStats(&during)
		cancel()
		waiting.Wait()
	}
	used := int64(during.HeapInuse+during.StackInuse) - int64(before.HeapInuse+before.StackInuse)
	b.ReportMetric(float64(used)/n, "B/waiting")
}
