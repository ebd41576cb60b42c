package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// BenchmarkEvaluate is POST /v1/evaluate over 64 connections, with a hook that
// does not match and a store that costs nothing, beside BenchmarkEcho, a bare
// Echo that sends JSON back: their ratio is what the server itself adds.
func BenchmarkEvaluate(b *testing.B) {
	for name, pad := range map[string]int{"433B": 280, "8KB": 8 << 10} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			w.agent(b, "auditor", gate.Stop, "ends")
			w.opt.Gate.Store = forgetful{w.store}
			load(b, w.Handler(), `{"hook_event_name":"PostToolUse","agent_name":"auditor","session_id":"s","current_turn":1,"max_turns":9,"tool_name":"Bash","tool_input":{},"tool_result":"`+strings.Repeat("x", pad)+`"}`)
		})
	}
}

func BenchmarkEcho(b *testing.B) {
	for name, size := range map[string]int{"433B": 433, "8KB": 8 << 10} {
		b.Run(name, func(b *testing.B) {
			e := echo.New()
			e.POST("/v1/evaluate", func(c echo.Context) error {
				var v map[string]any
				if err := c.Bind(&v); err != nil {
					return err
				}
				return c.JSON(200, v)
			})
			load(b, e, `{"tool_result":"`+strings.Repeat("x", size-18)+`"}`)
		})
	}
}

// forgetful keeps the records out of the measurement.
type forgetful struct{ *memory }

func (forgetful) Commit(_ context.Context, c gate.Commit) error { c.Settle(c.Seen); return nil }

func load(b *testing.B, h http.Handler, body string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	web := &http.Server{Handler: h}
	go web.Serve(ln)
	defer web.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	url := "http://" + ln.Addr().String() + "/v1/evaluate"
	var failed atomic.Int64
	b.SetParallelism(32) // times GOMAXPROCS
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := client.Post(url, typeJSON, strings.NewReader(body))
			if err != nil || resp.StatusCode != http.StatusOK {
				failed.Add(1)
				continue
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
	if n := failed.Load(); n > 0 {
		b.Errorf("%d requests failed", n)
	}
}
