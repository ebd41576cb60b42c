package commandhooks

import (
	"strings"
	"testing"

	"stopgate/gate"
)

// sandboxed makes the hook one of the Gemini API's environment: a shell line
// about one event.
func sandboxed(event gate.EventName) func(*gate.Input) {
	return func(in *gate.Input) {
		inline(in)
		on(event)(in)
		in.Hook.Dialect = gate.Antigravity
		in.Context = []byte(`{"tool_call":{"name":"read_file","args":{"path":"/private/a"}},"environment_id":"e"}`)
	}
}

func TestAntigravity11WhatCommandsSay(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		for _, tt := range []struct{ name, line, want string }{
			{"deny", `echo '{"decision":"deny","reason":"no"}'`, "block no"},
			{"deny by what is on standard input", `grep -q /private/ && echo '{"decision":"deny","reason":"private"}'`, "block private"},
			{"allow", `echo '{"decision":"allow"}'`, "allow"},
			{"nothing", `true`, "allow"},
			{"plain text", `echo checked`, "allow"},
			{"unknown JSON", `echo '{"ok":false}'`, "allow"},
			{"a reason on standard error is none", `echo no >&2`, "allow"},
			{"another system's word", `echo '{"decision":"block"}'`, "no_verdict bad_output"},
			{"broken JSON", `echo '{"decision":"deny"'`, "no_verdict bad_output"},
			{"exit 1", `exit 1`, "no_verdict nonzero_exit"},
			{"exit 2 is a failure like any other", `echo no >&2; exit 2`, "no_verdict nonzero_exit"},
			{"a deny that fails denies nothing", `echo '{"decision":"deny","reason":"no"}'; exit 3`, "no_verdict nonzero_exit"},
			{"a program that is not there", `python3-of-nowhere x`, "no_verdict nonzero_exit"},
			{"a signal", `kill -KILL $$`, "no_verdict signalled"},
			{"a flood", `echo '{"decision":"deny"}'; head -c 3000000 /dev/zero`, "no_verdict output_too_large"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				if v := ask(t, r, tt.line, sandboxed(gate.PreToolUse)); told(v) != tt.want {
					t.Errorf("got %s\nwant %s", show(v), tt.want)
				}
			})
		}
	})
}

func TestAntigravity12CommandsAfterATool(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		for line, want := range map[string]string{
			`echo '{"decision":"deny","reason":"no"}'`: "allow",
			`echo '{"decision":'`:                      "allow",
			`exit 1`:                                   "no_verdict nonzero_exit",
		} {
			if v := ask(t, r, line, sandboxed(gate.PostToolUse)); told(v) != want {
				t.Errorf("%s: got %s, want %s", line, show(v), want)
			}
		}
	})
}

// The gate's own environment, and what only the sandbox can show, stay what they
// are in a mode without it.
func TestAntigravity02RootNeedsTheSandbox(t *testing.T) {
	r := newRunner(t, Options{Mode: Process, Root: openDir(t)})
	v := ask(t, r, `echo '{"decision":"deny"}'`, sandboxed(gate.PreToolUse))
	if told(v) != "no_verdict sandbox_unavailable" || !strings.Contains(v.Failure.Message, "mode process") {
		t.Errorf("got %s", show(v))
	}
	if v := ask(t, r, `exit 2`); told(v) != "block" {
		t.Errorf("an azure hook: %s", show(v))
	}
	t.Run("this machine's own is there without", func(t *testing.T) {
		dir := openDir(t)
		r := newRunner(t, Options{Mode: Container, Root: "/"})
		v := ask(t, r, `[ "$PWD" = '`+dir+`' ] && echo '{"decision":"deny"}'`, sandboxed(gate.PreToolUse), in(dir))
		if told(v) != "block" {
			t.Errorf("got %s", show(v))
		}
	})
}
