package transcripts

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/gate"
)

// claudeSession is a session file of 100 MB, of which 95 % is the host's own
// affair.
func claudeSession() string {
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
	return f.String()
}

// BenchmarkClaudeCode renders a session file; "cpu-MB/s" is by processor time.
func BenchmarkClaudeCode(b *testing.B) {
	f := claudeSession()
	b.SetBytes(int64(len(f)))
	used := processorTime(b)
	for b.Loop() {
		h := &hostFile{masks: asItComes{}, format: &claudeCode{}, file: strings.NewReader(f), size: int64(len(f)), most: maxHostLine}
		if err := h.render(b.Context(), bufio.NewWriter(io.Discard), "It says hello."); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(f))*float64(b.N)/1e6/(processorTime(b)-used).Seconds(), "cpu-MB/s")
}

// BenchmarkClaudeCodeContinued is what the next event of a session costs, whose
// file has grown by one message.
func BenchmarkClaudeCodeContinued(b *testing.B) {
	root := b.TempDir()
	s := openStore(b, Options{Roots: []string{root}})
	path := filepath.Join(root, "t.jsonl")
	if err := os.WriteFile(path, []byte(claudeSession()), 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	see := func() {
		v, err := s.Attach(b.Context(), &gate.Event{Session: "s", TranscriptPath: path, TranscriptFormat: formatClaudeCode})
		if err != nil {
			b.Fatal(err)
		}
		v.Close()
	}
	see()
	for n := 0; b.Loop(); n++ {
		id := fmt.Sprintf("more%d", n)
		if _, err := f.WriteString(claudeLine("user", id, fmt.Sprintf("more%d", n-1), "", `"and now?"`, "")); err != nil {
			b.Fatal(err)
		}
		see()
	}
}
