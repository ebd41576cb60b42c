package commandhooks

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// benchScripts are what a hook may be, and the interpreter of each.
func benchScripts(r *Runner) []benchScript {
	return []benchScript{
		{"bash echo", r.Status().Bash, "#!/bin/bash\necho '{\"ok\":true}'\n"},
		{"python3 json+re", r.Status().Python, python + `
import json, re, sys
context = json.load(sys.stdin)
print(json.dumps({"ok": bool(re.search(r"tests?\s+passed", context["final_output"]))}))
`},
	}
}

type benchScript struct{ name, interpreter, text string }

// benchContext is some 4 KB of a Stop.
var benchContext = []byte(`{"hook_event_name":"Stop","final_output":"` + strings.Repeat("tests passed; ", 290) + `"}`)

// bare runs the script as any program would start it.
func (s benchScript) bare(b *testing.B, file string) {
	cmd := exec.Command(s.interpreter, file)
	cmd.Stdin, cmd.Env = bytes.NewReader(benchContext), []string{"PATH=" + systemPath}
	if out, err := cmd.Output(); err != nil || !bytes.Contains(out, []byte("true")) {
		b.Errorf("bare: %v %s", err, out)
	}
}

func (s benchScript) hooked(b *testing.B, r *Runner) {
	if v := ask(b, r, s.text, withContext(benchContext)); told(v) != "allow" {
		b.Error(show(v))
	}
}

// onDisk is the script as a file, for bare; it skips where its interpreter is
// missing.
func (s benchScript) onDisk(b *testing.B) string {
	if s.interpreter == "" {
		b.Skip("no interpreter")
	}
	file := filepath.Join(b.TempDir(), "script")
	if err := os.WriteFile(file, []byte(s.text), 0o600); err != nil {
		b.Fatal(err)
	}
	return file
}

// BenchmarkScript runs each script by turns bare, as a hook in a sandbox that
// is started for it, and as one in a sandbox that was started ahead, 25 times a
// second each, so that the ratios are of one machine in one state. Reported are
// the medians and what they are to bare.
func BenchmarkScript(b *testing.B) {
	cold, warm := newRunner(b, Options{}), warmRunner(b, Options{})
	for _, script := range benchScripts(cold) {
		b.Run(script.name, func(b *testing.B) {
			file := script.onDisk(b)
			ways := []func(){func() { script.bare(b, file) }, func() { script.hooked(b, cold) }, func() { script.hooked(b, warm) }}
			took := make([][]time.Duration, len(ways))
			turn := time.NewTicker(time.Second / 25 / time.Duration(len(ways)))
			defer turn.Stop()
			before := warm.Use()
			for b.Loop() {
				for i, way := range ways {
					<-turn.C
					began := time.Now()
					way()
					took[i] = append(took[i], time.Since(began))
				}
			}
			p50 := make([]float64, len(ways))
			for i, d := range took {
				slices.Sort(d)
				p50[i] = float64(d[len(d)/2].Microseconds()) / 1000
			}
			after := warm.Use()
			b.ReportMetric(0, "ns/op")
			for i, name := range []string{"bare", "cold", "warm"} {
				b.ReportMetric(p50[i], name+"-p50-ms")
			}
			b.ReportMetric(p50[1]/p50[0], "cold/bare")
			b.ReportMetric(p50[2]/p50[0], "warm/bare")
			b.ReportMetric(float64(after.Warm-before.Warm)/float64(after.Started-before.Started), "warm-share")
		})
	}
}

// BenchmarkScriptsAtOnce has two callers run each script as fast as they can, by
// turns bare, with and without sandboxes started ahead, and forked: a pool hides
// time, and must not take any from a machine that has none to spare; forks give
// some back.
func BenchmarkScriptsAtOnce(b *testing.B) {
	cold, warm := newRunner(b, Options{}), warmRunner(b, Options{})
	for _, script := range benchScripts(cold) {
		b.Run(script.name, func(b *testing.B) {
			file := script.onDisk(b)
			names, ways := []string{"bare", "cold", "warm"}, []func(){
				func() { script.bare(b, file) }, func() { script.hooked(b, cold) }, func() { script.hooked(b, warm) },
			}
			if script.interpreter == cold.Status().Python {
				forked := forkRunner(b, Options{})
				names, ways = append(names, "forked"), append(ways, func() { script.hooked(b, forked) })
				defer func() {
					use := forked.Use()
					b.ReportMetric(float64(use.Warm)/float64(use.Started), "forked-share")
				}()
			}
			took := make([]time.Duration, len(ways))
			for b.Loop() {
				for i, way := range ways {
					began := time.Now()
					var callers sync.WaitGroup
					for range 2 {
						callers.Go(func() {
							for range 20 {
								way()
							}
						})
					}
					callers.Wait()
					took[i] += time.Since(began)
				}
			}
			b.ReportMetric(0, "ns/op")
			for i, name := range names {
				b.ReportMetric(float64(40*b.N)/took[i].Seconds(), name+"/s")
			}
			b.ReportMetric(took[1].Seconds()/took[2].Seconds(), "warm/cold")
			if len(ways) > 3 {
				b.ReportMetric(took[0].Seconds()/took[3].Seconds(), "forked/bare")
			}
		})
	}
}
