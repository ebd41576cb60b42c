package transcripts

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
)

// BenchmarkClaudeCode renders a session file of 100 MB, of which 95 % is the
// host's own affair; "cpu-MB/s" is by processor time.
func BenchmarkClaudeCode(b *testing.B) {
	var f strings.Builder
	parent := "null"
	for n := 0; f.Len() < 100e6; n += 4 {
		id := func(i int) string { return fmt.Sprintf("%08d-53bd-402f-8407-f31ffd17efba", n+i) }
		f.WriteString(claudeCalls(id(0), parent, "m"+id(0), "toolu_"+id(0)))
		f.WriteString(claudeGets(id(1), id(0), "toolu_"+id(0), strings.Repeat("one line of a tool's output ", 30)))
		f.WriteString(claudeLine("attachment", id(2), id(1), "", `"`+strings.Repeat(`{\"a\":\"b\"} `, 2000)+`"`, ""))
		f.WriteString(claudeSays(id(3), id(2), "m"+id(3), "It says hello."))
		parent = id(3)
	}
	b.SetBytes(int64(f.Len()))
	used := processorTime(b)
	for b.Loop() {
		h := &hostFile{format: &claudeCode{}, file: strings.NewReader(f.String()), size: int64(f.Len()), most: maxHostLine}
		if err := h.render(b.Context(), bufio.NewWriter(io.Discard), "It says hello."); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(f.Len())*float64(b.N)/1e6/(processorTime(b)-used).Seconds(), "cpu-MB/s")
}
