package commandhooks

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkScript runs each script by turns bare, as any program would start
// it, and as a hook in the sandbox, so that the ratio is of one machine in one
// state. Reported are the medians and what the sandbox adds.
func BenchmarkScript(b *testing.B) {
	r := newRunner(b, Options{})
	context := []byte(`{"hook_event_name":"Stop","final_output":"` + strings.Repeat("tests passed; ", 290) + `"}`)
	for _, script := range []struct{ name, interpreter, text string }{
		{"bash echo", r.Status().Bash, "#!/bin/bash\necho '{\"ok\":true}'\n"},
		{"python3 json+re", r.Status().Python, python + `
import json, re, sys
context = json.load(sys.stdin)
print(json.dumps({"ok": bool(re.search(r"tests?\s+passed", context["final_output"]))}))
`},
	} {
		b.Run(script.name, func(b *testing.B) {
			if script.interpreter == "" {
				b.Skip("no interpreter")
			}
			file := filepath.Join(b.TempDir(), "script")
			if err := os.WriteFile(file, []byte(script.text), 0o600); err != nil {
				b.Fatal(err)
			}
			var bare, boxed []time.Duration
			for b.Loop() {
				began := time.Now()
				cmd := exec.Command(script.interpreter, file)
				cmd.Stdin, cmd.Env = bytes.NewReader(context), []string{"PATH=" + systemPath}
				if out, err := cmd.Output(); err != nil || !bytes.Contains(out, []byte("true")) {
					b.Fatalf("bare: %v %s", err, out)
				}
				bare = append(bare, time.Since(began))
				began = time.Now()
				if v := ask(b, r, script.text, withContext(context)); told(v) != "allow" {
					b.Fatal(show(v))
				}
				boxed = append(boxed, time.Since(began))
			}
			slices.Sort(bare)
			slices.Sort(boxed)
			p50 := func(d []time.Duration) float64 { return float64(d[len(d)/2].Microseconds()) / 1000 }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(p50(bare), "bare-p50-ms")
			b.ReportMetric(p50(boxed), "sandboxed-p50-ms")
			b.ReportMetric(p50(boxed)-p50(bare), "added-ms")
			b.ReportMetric(p50(boxed)/p50(bare), "ratio")
		})
	}
}
