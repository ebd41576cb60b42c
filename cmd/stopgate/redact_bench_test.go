package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkRedaction asks two servers the same in turns, one with all built-in
// patterns and one with none: "of-plain" is the first one's throughput as a share
// of the second's, durable record included.
func BenchmarkRedaction(b *testing.B) {
	file := filepath.Join(b.TempDir(), "stopgate.yaml")
	if err := os.WriteFile(file, []byte("redaction: {built_in: []}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	with, without := newServiceWith(b, b.TempDir(), ""), newServiceWith(b, b.TempDir(), file)
	for _, s := range []*service{with, without} {
		if status, answer := s.do(http.MethodPut, agents+"bench", "application/json", []byte(benchSpec)); status != http.StatusAccepted {
			b.Fatalf("%d %s", status, answer)
		}
	}
	for _, size := range []int{433, 8 << 10} {
		request := benchRequest(size)
		for _, connections := range []int{8, 1} {
			b.Run(fmt.Sprintf("%dB/%dconn", size, connections), func(b *testing.B) {
				redacted := dialLoad(b, strings.TrimPrefix(with.url, "http://"), connections)
				plain := dialLoad(b, strings.TrimPrefix(without.url, "http://"), connections)
				var redactedDone, plainDone int
				for b.Loop() {
					redactedDone += redacted.turn(b, request)
					plainDone += plain.turn(b, request)
				}
				b.ReportMetric(float64(redactedDone)/float64(plainDone), "of-plain")
			})
		}
	}
}
