package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"stopgate/config"
	"stopgate/gate"
)

// BenchmarkRule decides one call of a tool by the example of a command hook and by
// the same as a rule hook, in one run: the whole path of a decision, without a
// store. "evaluator" is the rule hook alone.
func BenchmarkRule(b *testing.B) {
	cfg, err := loadConfig(process{getenv: func(string) string { return "" }}, "", overrides{data: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	getenv := func(name string) string { return map[string]string{"PATH": "/usr/bin:/bin"}[name] }
	app, err := buildOffline(b.Context(), cfg, commandOptions(cfg, getenv), getenv)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = app.close() })
	ev := gate.Event{Name: gate.PreToolUse, Protocol: gate.Native, ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"cd /srv/app && rm -rf \"$BUILD\" && make all"}`)}
	for _, file := range []string{"dangerous-command.yaml", "dangerous-command-rule.yaml"} {
		files, err := readSpecFiles([]string{filepath.Join("../../examples", file)})
		if err != nil || len(files[0].usable()) != 1 {
			b.Fatal(err, files)
		}
		specs := files[0].usable()
		ev.Agent = specs[0].Name
		hook := &specs[0].Hooks[0]
		b.Run(string(hook.Type), func(b *testing.B) {
			if hook.Type == gate.CommandHook && !app.runner.Status().Working {
				b.Skip("no sandbox: " + app.runner.Status().Reason)
			}
			for b.Loop() {
				if d, err := app.gate.Decide(b.Context(), ev, gate.Options{Specs: specs}); err != nil || d.Outcome != gate.Block {
					b.Fatalf("%+v, %v", d, err)
				}
			}
		})
		if hook.Type == gate.RuleHook {
			b.Run("evaluator", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if v := hook.Rules.Evaluate(b.Context(), gate.Input{Hook: hook, Event: &ev}); v.Outcome != gate.Block {
						b.Fatalf("%+v", v)
					}
				}
			})
		}
	}
}

// BenchmarkCompileWhen reads a spec whose hook has a condition.
func BenchmarkCompileWhen(b *testing.B) {
	spec := []byte(`{"name":"a","properties":{"hooks":{"Stop":[{"prompt":"x","when":"size(final_output) > 200 || tools_used.exists(t, t in [\"Edit\", \"Write\"])"}]}}}`)
	for b.Loop() {
		if _, _, err := config.ReadSpec("application/json", spec); err != nil {
			b.Fatal(err)
		}
	}
}
