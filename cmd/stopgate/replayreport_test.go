package main

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// That nothing changes is only known where everything was asked.
func TestReplayExitCode(t *testing.T) {
	s, _ := pastWorld(t)
	s.say("s", "Please restart web.")
	s.evaluate(`{"hook_event_name":"Stop","agent_name":"a","session_id":"s","final_output":"Done."}`)
	s.evaluate(bash)
	export := fileOf(t, "export.ndjson", s.export()) // without the conversation that the judge reads
	same, stricter := fileOf(t, "same.json", judgedSpec), fileOf(t, "draft.json", strings.Replace(stricterSpec, "sudo|", "ls|sudo|", 1))
	tests := []struct {
		name string
		args []string
		code int
		told string
	}{
		{"all asked, none changed", []string{"-f", same, "--exit-code"}, exitDone, ""},
		{"not all asked, none changed", []string{"-f", same, "--from", export, "--exit-code"}, exitInput, "1 of 2 evaluations could not be replayed"},
		{"not all asked, one changed", []string{"-f", stricter, "--from", export, "--exit-code"}, exitFindings, ""},
		{"none asked", []string{"-f", same, "--from", export, "--event", "Stop", "--exit-code"}, exitInput, "nothing was replayed"},
		{"not all asked, and no answer wanted", []string{"-f", same, "--from", export}, exitDone, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, out, errs := s.replayed(t.Context(), test.args...)
			if code != test.code || !strings.Contains(errs, test.told) || test.told == "" && errs != "" {
				t.Errorf("exit %d: %s%s", code, out, errs)
			}
		})
	}
}

// A hook that was only renamed has not changed, and what it is compared with is
// said.
func TestReplayOfARenamedHook(t *testing.T) {
	s, _ := pastWorld(t)
	s.evaluate(strings.Replace(bash, "ls", "sudo reboot", 1))
	renamed := fileOf(t, "draft.json", strings.Replace(judgedSpec, `"shell"`, `"no-sudo"`, 1))
	for name, args := range map[string][]string{"record": nil, "against": {"--against", fileOf(t, "old.json", judgedSpec)}} {
		code, out, _ := s.replayed(t.Context(), append(args, "-f", renamed, "--exit-code")...)
		for _, want := range []string{"\nno-sudo  1 block  1 block  -  ", "Renamed: \"no-sudo\" is compared with \"shell\", which the draft does not have.\n", "1 evaluation replayed, 0 changed\n"} {
			if !strings.Contains("\n"+out, want) {
				t.Errorf("%s: no %q in\n%s", name, want, out)
			}
		}
		if code != exitDone || strings.Contains(out, "give its file too") {
			t.Errorf("%s: exit %d: %s", name, code, out)
		}
	}
	weaker := fileOf(t, "weaker.json", strings.NewReplacer(`"shell"`, `"no-sudo"`, "sudo;", "never;").Replace(judgedSpec))
	if _, out, _ := s.replayed(t.Context(), "-f", weaker); !strings.Contains(out, "    no-sudo (was shell): block→allow\n        was: no sudo\n") {
		t.Errorf("renamed, and changed: %s", out)
	}
}

// Which verdicts belong together.
func TestReplayPairs(t *testing.T) {
	verdict := func(name string, of gate.HookType) gate.Verdict {
		return gate.Verdict{Name: name, Type: of, Level: gate.AgentLevel, Outcome: gate.Block}
	}
	a, b := verdict("a", gate.CommandHook), verdict("b", gate.CommandHook)
	x, y := verdict("x", gate.CommandHook), verdict("y", gate.CommandHook)
	rule := verdict("x", gate.RuleHook)
	tests := []struct {
		name     string
		was, now []gate.Verdict
		names    hookNames
		want     []string // as now=was
	}{
		{"the same, in another order", []gate.Verdict{a, b}, []gate.Verdict{b, a}, hookNames{}, []string{"b=b", "a=a"}},
		{"one renamed", []gate.Verdict{a, b}, []gate.Verdict{a, x}, hookNames{}, []string{"a=a", "x=b"}},
		{"both renamed, by their places", []gate.Verdict{a, b}, []gate.Verdict{x, y}, hookNames{}, []string{"x=a", "y=b"}},
		{"one gone, one renamed: nobody knows which", []gate.Verdict{a, b}, []gate.Verdict{x}, hookNames{}, []string{"x=", "=a", "=b"}},
		{"of another type", []gate.Verdict{a}, []gate.Verdict{rule}, hookNames{}, []string{"x=", "=a"}},
		{"not gone: it is not about this event any more", []gate.Verdict{a}, []gate.Verdict{x}, hookNames{now: map[string]bool{"a": true, "x": true}}, []string{"x=", "=a"}},
		{"not new: it was not about this event", []gate.Verdict{a}, []gate.Verdict{x}, hookNames{was: map[string]bool{"a": true, "x": true}}, []string{"x=", "=a"}},
		{"twice the same name", []gate.Verdict{a, a}, []gate.Verdict{a}, hookNames{}, []string{"a=a", "=a"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, h := range pairs(test.was, test.now, test.names) {
				switch {
				case h.Now == nil:
					got = append(got, "="+h.Name)
				case h.Was == nil:
					got = append(got, h.Name+"=")
				case h.WasName != "":
					got = append(got, h.Name+"="+h.WasName)
				default:
					got = append(got, h.Name+"="+h.Name)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What was is told as it was recorded: what it cost then, whatever it costs now.
func TestReplayTellsCost(t *testing.T) {
	data := t.TempDir()
	priced := func(output string) string {
		return fileOf(t, "stopgate.yaml", "sandbox: {mode: process}\nmodels: {prices: {gemini/m: {input: 1, output: "+output+"}}, tiers: {ReasoningFast: gemini/m}}\n")
	}
	s := newServiceWith(t, data, priced("1"))
	s.answer = func(string) string { return `{"ok":true}` }
	s.do("PUT", agents+"a", "application/json", []byte(judgedSpec))
	s.evaluate(`{"hook_event_name":"Stop","agent_name":"a","final_output":"Done."}`)
	s.answer = func(string) string { return `{"ok":false,"reason":"not done"}` }
	draft, kept, dear := fileOf(t, "draft.json", stricterSpec), filepath.Join(t.TempDir(), "answers"), priced("1001")
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"another price now", []string{"--config", dear, "--record", kept}, []string{"cost 0.000107→0.007107\n", "\nCost: 0.000107→0.007107.\n", "What was is recorded: "}},
		{"without a price now", nil, []string{"cost 0.000107→?\n", "?: the cost of 1 verdict is not known"}},
		{"from a recording", []string{"--config", dear, "--replay", kept}, []string{"-, tokens 107, cost 0.000107→0.007107\n", "time was not measured"}},
		{"two drafts", []string{"--config", dear, "--against", draft}, []string{"done  1 block  1 block  -        1      107     0.007107  "}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, out, errs := s.replayed(t.Context(), append(test.args, "-f", draft)...)
			for _, want := range test.want {
				if !strings.Contains(out, want) {
					t.Errorf("exit %d: no %q in\n%s%s", code, want, out, errs)
				}
			}
		})
	}
}

// Elsewhere than on a terminal a command says how far it is now and then, and
// nothing where it is soon done.
func TestProgressIntoALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		p := newProgress(&b, 10)
		for range 10 {
			p.step()
		}
		p.end()
		if b.Len() > 0 {
			t.Errorf("a short one: %s", b.String())
		}
		p = newProgress(&b, 50)
		for range 50 {
			time.Sleep(tellEvery / 20)
			p.step()
		}
		p.end()
		want := "20 of 50 (40 %), 2.0 a second, 15s left\n40 of 50 (80 %), 2.0 a second, 5s left\n"
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Error(diff)
		}
	})
}
