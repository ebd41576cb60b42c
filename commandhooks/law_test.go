package commandhooks

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"stopgate/gate"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestAzure41ExitCodes(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		for _, tt := range []struct{ name, script, want string }{
			{"fault loop-02: exit 0 and silence is no objection", `exit 0`, "allow"},
			{"exit 0 and white space", `printf ' \n\t\r\n'`, "allow"},
			{"exit 0 and an answer", `echo '{"ok":false,"reason":"tests fail"}'`, "block tests fail"},
			{"exit 0 and no objection", `echo '{}'`, "allow"},
			{"fault loop-08: continue true means nothing", `echo '{"continue":true,"suppressOutput":true}'`, "allow"},
			{"fault schema-10: suppressOutput alone is no decision", `echo '{"suppressOutput":true}'`, "allow"},
			{"fault schema-02: continue true beside a block", `echo '{"decision":"block","reason":"locked","continue":true}'`, "block locked"},
			{"exit 2 blocks", `echo no >&2; exit 2`, "block no"},
			{"fault exit-03: exit 2 and JSON on stdout", `echo '{"ok":true,"hookSpecificOutput":{"additionalContext":"ctx"}}'; echo blocked >&2; exit 2`, "block blocked"},
			{"fault schema-07: exit 2 and unknown keys", `echo '{"permission":"deny"}'; exit 2`, "block"},
			{"fault stdout-06: exit 2 and JSON on stderr stays text", `echo '{"hookSpecificOutput":{}}' >&2; exit 2`, `block {"hookSpecificOutput":{}}`},
			{"exit 2 without a word", `exit 2`, "block"},
			{"exit 2 with a blank word", `echo ' ' >&2; exit 2`, "block"},
			{"exit 2 after a flood", `head -c 3000000 /dev/zero; echo no >&2; exit 2`, "block no"},
			{"fault exit-05: exit 1 is no verdict", `echo violation >&2; exit 1`, "no_verdict nonzero_exit"},
			{"exit 3", `exit 3`, "no_verdict nonzero_exit"},
			{"exit 255", `exit 255`, "no_verdict nonzero_exit"},
			{"fault gx-053: exit 1 with an answer", `echo '{"ok":true}'; exit 1`, "no_verdict nonzero_exit"},
			{"an unknown command is 127", `stopgate-no-such-command`, "no_verdict nonzero_exit"},
			{"a signal", `kill -KILL $$`, "no_verdict signalled"},
			{"a signal that can be caught", `kill -TERM $$; sleep 5`, "no_verdict signalled"},
			{"fault G21: exit 0 and prose", `echo all good`, "no_verdict bad_output"},
			{"fault exit-09: prose before the answer", `echo 'user text'; echo '{"decision":"deny","reason":"no"}'`, "no_verdict bad_output"},
			{"fault gx-092: log text on stdout", `echo 'status set'`, "no_verdict bad_output"},
			{"fault stdout-07: none of the known keys", `echo '{"status":"ok"}'`, "no_verdict bad_output"},
			{"two answers", `echo '{"ok":true}'; echo '{"ok":true}'`, "no_verdict bad_output"},
			{"array", `echo '[]'`, "no_verdict bad_output"},
			{"null", `echo null`, "no_verdict bad_output"},
			{"bare value", `echo true`, "no_verdict bad_output"},
			{"fault promptjson-10: ok and decision disagree", `echo '{"ok":true,"decision":"block"}'`, "no_verdict bad_output"},
			{"ask on Stop", `echo '{"decision":"ask"}'`, "no_verdict bad_output"},
			{"exit 0 after a flood", `echo '{"ok":true}'; head -c 3000000 /dev/zero`, "no_verdict output_too_large"},
			{"exit 0 after a flood of white space", `head -c 3000000 /dev/zero | tr '\0' ' '`, "no_verdict output_too_large"},
			{"a flood on stderr is no matter", `head -c 3000000 /dev/zero >&2; echo '{"ok":true}'`, "allow"},
			{"fault exit-04: a missing script file is still exit 2", `bash -c 'echo "cannot open file" >&2; exit 2'`, "block cannot open file"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				if v := ask(t, r, tt.script); told(v) != tt.want {
					t.Errorf("got %s\nwant %s", show(v), tt.want)
				}
			})
		}
		t.Run("fault exit-01: exit 2 on PreToolUse", func(t *testing.T) {
			if v := ask(t, r, `echo 'lint failed' >&2; exit 2`, on(gate.PreToolUse)); told(v) != "block lint failed" {
				t.Errorf("got %s", show(v))
			}
		})
		t.Run("ask on PreToolUse", func(t *testing.T) {
			v := ask(t, r, `echo '{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"sure?"}}'`, on(gate.PreToolUse))
			if told(v) != "ask sure?" {
				t.Errorf("got %s", show(v))
			}
		})
		t.Run("fault schema-03: additionalContext", func(t *testing.T) {
			v := ask(t, r, `echo '{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"run tests"}}'`)
			if told(v) != "allow" || v.AdditionalContext != "run tests" {
				t.Errorf("got %s, context %q", show(v), v.AdditionalContext)
			}
		})
		t.Run("additionalContext of an exit 2 is ignored", func(t *testing.T) {
			v := ask(t, r, `echo '{"hookSpecificOutput":{"additionalContext":"ctx"}}'; echo no >&2; exit 2`)
			if v.AdditionalContext != "" {
				t.Errorf("context %q", v.AdditionalContext)
			}
		})
	})
}

func TestAzure41MissingInterpreter(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		r.tools.python = interpreter{}
		if v := ask(t, r, python); told(v) != "no_verdict interpreter_missing" || !strings.Contains(v.Failure.Message, "python3") {
			t.Errorf("not found at start: got %s", show(v))
		}
		r.tools.python = interpreter{file: "/usr/bin/stopgate-no-python3"}
		if v := ask(t, r, python); told(v) != "no_verdict interpreter_missing" {
			t.Errorf("gone since: got %s", show(v))
		}
		r.tools.python = interpreter{file: "/usr"}
		if v := ask(t, r, python); told(v) != "no_verdict nonzero_exit" || !strings.Contains(v.Failure.Message, "exited with 125: ") {
			t.Errorf("no program any more: got %s", show(v))
		}
	})
}

// TestAzure41ShellBeforeTheHookCannotBlock: a shell gives up with 2 on much that
// goes wrong, and the hook has said nothing yet.
func TestAzure41ShellBeforeTheHookCannotBlock(t *testing.T) {
	for _, wrong := range []string{"ulimit -t nonsense", "read -r go <&7", "exec /stopgate/none", "exit 2"} {
		cmd := exec.Command("/bin/sh", "-c", failsafe+wrong)
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 125 {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// TestAzure42FailuresSayWhy: the failure's half; what follows from it is the
// gate's to say.
func TestAzure42FailuresSayWhy(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  ending
		want string
	}{
		{"exit", ending{code: 3, stderr: text{kept: []byte("Traceback\nValueError: x\n\n")}}, "nonzero_exit: the hook exited with 3: ValueError: x"},
		{"exit in silence", ending{code: 1}, "nonzero_exit: the hook exited with 1"},
		{"a shell's 128+n", ending{code: 137}, "nonzero_exit: the hook exited with 137"},
		{"signal", ending{signal: "SIGKILL"}, "signalled: the hook was ended by SIGKILL"},
		{"signal as the sandbox reports it", ending{signal: "SIGSEGV", code: 139, unsure: true}, "signalled: the hook was ended by SIGSEGV, or exited with 139 itself"},
		{"time", ending{timedOut: true, after: 1500e6}, "timeout: the hook did not end in time and was killed after 1.5s"},
		{"prose", ending{stdout: text{kept: []byte("\nall \"good\"\x00\n")}}, `bad_output: standard output is no answer: not valid JSON: "all \"good\"\x00"`},
		{"long prose, by characters", ending{stdout: text{kept: []byte(strings.Repeat("ü", 100))}}, `bad_output: standard output is no answer: not valid JSON: "` + strings.Repeat("ü", 80) + `…"`},
		{"node", ending{code: 1, stderr: text{kept: []byte("/x.js:1\nthrow new TypeError(1)\n^\n\nTypeError [ERR_X]: no policy\n    at Object.<anonymous> (/x.js:1:7)\n\nNode.js v20.19.0\n")}}, "nonzero_exit: the hook exited with 1: TypeError [ERR_X]: no policy"},
		{"node without an error", ending{code: 1, stderr: text{kept: []byte("a\nNode.js v20.19.0\n")}}, "nonzero_exit: the hook exited with 1: Node.js v20.19.0"},
		{"Python, of two errors", ending{code: 1, stderr: text{kept: []byte("KeyError: 1\n\nDuring handling\n\nValueError: x\n")}}, "nonzero_exit: the hook exited with 1: ValueError: x"},
		{"Ruby", ending{code: 1, stderr: text{kept: []byte("x.rb:1:in 'f': no (RuntimeError)\n\tfrom x.rb:2:in '<main>'\n")}}, "nonzero_exit: the hook exited with 1: x.rb:1:in 'f': no (RuntimeError)"},
		{"bytes that are no text", ending{code: 1, stderr: text{kept: []byte("a\xffb")}}, "nonzero_exit: the hook exited with 1: a\uFFFDb"},
		{"flood", ending{stdout: text{kept: []byte("{}"), cut: true}}, "output_too_large: the hook wrote more than 1048576 bytes to standard output"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := judge(&gate.Hook{Dialect: gate.Azure}, gate.Stop, tt.end)
			if v.Outcome != gate.NoVerdict || v.Failure == nil || v.Failure.Error() != tt.want {
				t.Errorf("got %s\nwant %s", show(v), tt.want)
			}
		})
	}
}

func TestAzure44StderrIsEvidenceOnly(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		v := ask(t, r, `echo '{"ok":false,"reason":"x"}' >&2; echo log > /dev/stderr; exit 0`)
		if told(v) != "allow" || v.Evidence.Stderr != "{\"ok\":false,\"reason\":\"x\"}\nlog\n" || v.Evidence.Stdout != "" || *v.Evidence.ExitCode != 0 {
			t.Errorf("got %s", show(v))
		}
		v = ask(t, r, `head -c 100000 /dev/zero | tr '\0' e >&2; echo '{"ok":true}'`)
		if n := len(v.Evidence.Stderr); told(v) != "allow" || n > gate.EvidenceBytes || n < gate.EvidenceBytes-100 {
			t.Errorf("got %s with %d bytes of evidence", told(v), n)
		}
	})
}

// FuzzCommandOutput holds the law for any output of any end.
func FuzzCommandOutput(f *testing.F) {
	f.Add(0, 0, false, []byte(`{"ok":true}`), []byte(""), false, "Stop")
	f.Add(2, 0, false, []byte(`{"ok":true}`), []byte("no"), true, "PreToolUse")
	f.Add(0, 0, false, []byte(`{"decision":"ask"}`), []byte("\xff"), false, "PreToolUse")
	f.Add(0, 9, false, []byte(`null`), []byte(""), false, "PostToolUse")
	f.Add(0, 0, true, []byte(` `), []byte(""), false, "Start")
	f.Fuzz(func(t *testing.T, code, number int, timedOut bool, stdout, stderr []byte, cut bool, event string) {
		signal := ""
		if number != 0 {
			signal = signalName(syscall.Signal(number))
		}
		e := ending{code: code, signal: signal, timedOut: timedOut, stdout: text{stdout, cut}, stderr: text{kept: stderr}}
		v := judge(&gate.Hook{Dialect: gate.Azure}, gate.EventName(strings.ToValidUTF8(event, "?")), e) // names of events are ours
		exited := !timedOut && signal == ""
		switch {
		case (v.Outcome == gate.NoVerdict) != (v.Failure != nil):
			t.Fatalf("outcome %s with failure %v", v.Outcome, v.Failure)
		case v.Failure != nil && v.Failure.Message == "":
			t.Fatal("a failure without a message")
		case exited && code == 2 && v.Outcome != gate.Block:
			t.Fatalf("exit 2 is %s", show(v))
		case (!exited || code != 0 && code != 2) && v.Outcome != gate.NoVerdict:
			t.Fatalf("a failure is %s", show(v))
		case exited && code == 0 && cut && v.Outcome != gate.NoVerdict:
			t.Fatalf("cut output is %s", show(v))
		case !utf8.ValidString(v.Reason) || !utf8.ValidString(v.Evidence.Stderr) || v.Failure != nil && !utf8.ValidString(v.Failure.Message):
			t.Fatal("text that is not UTF-8")
		}
		if v.Outcome == gate.Allow {
			said := strings.TrimSpace(string(stdout))
			if said != "" && (said[0] != '{' || said[len(said)-1] != '}') {
				t.Fatalf("%q is an allow", said)
			}
		}
	})
}
