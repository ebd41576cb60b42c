package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkTraces asks a service without traces and one that sends all of them to
// a collector in the same process, in turns of a hundred milliseconds in one
// run. "of-off" is the throughput with traces as a share of that without.
func BenchmarkTraces(b *testing.B) {
	off := benchService(b)
	file := filepath.Join(b.TempDir(), "stopgate.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "telemetry: {endpoint: %q}\n", newOTLP(b).URL), 0o600); err != nil {
		b.Fatal(err)
	}
	traced := newServiceWith(b, b.TempDir(), file)
	if status, answer := traced.do(http.MethodPut, agents+"bench", "application/json", []byte(benchSpec)); status != http.StatusAccepted {
		b.Fatalf("%d %s", status, answer)
	}
	request := benchRequest(433)
	for _, connections := range []int{64, 1} {
		b.Run(fmt.Sprintf("%dconn", connections), func(b *testing.B) {
			without, with := dialLoad(b, off, connections), dialLoad(b, strings.TrimPrefix(traced.url, "http://"), connections)
			var withoutDone, withDone int
			for b.Loop() {
				withoutDone += without.turn(b, request)
				withDone += with.turn(b, request)
			}
			b.ReportMetric(float64(withDone)/float64(withoutDone), "of-off")
		})
	}
}
