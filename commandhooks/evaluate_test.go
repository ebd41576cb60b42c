package commandhooks

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// everyMode runs a test without and with the sandbox; both obey one law.
func everyMode(t *testing.T, opt Options, test func(t *testing.T, r *Runner)) {
	for _, mode := range []Mode{Process, Bubblewrap} {
		t.Run(string(mode), func(t *testing.T) {
			opt := opt
			opt.Mode = mode
			test(t, newRunner(t, opt))
		})
	}
}

// complete sets the limits that a test does not care for.
func complete(opt Options) Options {
	l := opt.Limits
	opt.Limits = Limits{Memory: cmp.Or(l.Memory, 1<<30), Processes: cmp.Or(l.Processes, 256), FileSize: cmp.Or(l.FileSize, 256<<20),
		OpenFiles: cmp.Or(l.OpenFiles, 1024), CPU: cmp.Or(l.CPU, 300), TempSize: cmp.Or(l.TempSize, 64<<20)}
	opt.Parallel = cmp.Or(opt.Parallel, 8)
	return opt
}

// newRunner skips the test where the machine allows no sandbox. A sandbox of
// ours that fails where a plain one works is an error.
func newRunner(t testing.TB, opt Options) *Runner {
	t.Helper()
	r, err := New(context.Background(), complete(opt))
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Status(); !s.Working {
		if plainSandboxWorks() {
			t.Fatalf("mode %s does not work: %s", s.Mode, s.Reason)
		}
		t.Skipf("mode %s does not work here: %s", s.Mode, s.Reason)
	}
	return r
}

func needsPython(t testing.TB, r *Runner) {
	t.Helper()
	if r.Status().Python == "" {
		t.Skip("no python3 here")
	}
}

const python = "#!/usr/bin/env python3\n"

// ask evaluates a script, or a shell line, on a Stop with ample time.
func ask(t testing.TB, r *Runner, script string, change ...func(*gate.Input)) gate.Verdict {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	return r.Evaluate(ctx, input(script, change...))
}

func input(script string, change ...func(*gate.Input)) gate.Input {
	in := gate.Input{Hook: &gate.Hook{Name: "h", Event: gate.Stop, Type: gate.CommandHook, Script: script},
		Event: &gate.Event{Name: gate.Stop, Agent: "a"}, Context: []byte(`{"hook_event_name":"Stop","final_output":"done"}`)}
	for _, c := range change {
		c(&in)
	}
	return in
}

func inline(in *gate.Input) { in.Hook.Command, in.Hook.Script = in.Hook.Script, "" }

func on(event gate.EventName) func(*gate.Input) {
	return func(in *gate.Input) { in.Event.Name, in.Hook.Event = event, event }
}

func withContext(b []byte) func(*gate.Input) { return func(in *gate.Input) { in.Context = b } }

// transcript is a conversation that lies in files.
type transcript struct {
	gate.Transcript
	path, raw string
}

func (t transcript) Path() string    { return t.path }
func (t transcript) RawPath() string { return t.raw }

func withTranscript(path, raw string) func(*gate.Input) {
	return func(in *gate.Input) { in.Transcript = transcript{path: path, raw: raw} }
}

// told is a short form of a verdict for tables: the outcome, and the reason or
// the failure's code.
func told(v gate.Verdict) string {
	switch {
	case v.Failure != nil:
		return string(v.Outcome) + " " + string(v.Failure.Code)
	case v.Reason != "":
		return string(v.Outcome) + " " + v.Reason
	}
	return string(v.Outcome)
}

func show(v gate.Verdict) string {
	s := told(v)
	if v.Failure != nil {
		s += ": " + v.Failure.Message
	}
	if v.Evidence != nil {
		s += "\nstdout: " + v.Evidence.Stdout + "\nstderr: " + v.Evidence.Stderr
	}
	return s
}

func TestAzure19LargestScriptRuns(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		end := "\necho end >&2; exit 2\n"
		script := strings.Repeat("#", gate.MaxScriptBytes-len(end)) + end
		if v := ask(t, r, script); told(v) != "block end" {
			t.Errorf("got %s", show(v))
		}
	})
}

func TestAzure20Shebangs(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		needsPython(t, r)
		for _, tt := range []struct{ name, script, want string }{
			{"none is bash", `[[ -n $BASH_VERSION ]] && echo bash >&2; exit 2`, "block bash"},
			{"bash", "#!/bin/bash\n" + `[[ -n $BASH_VERSION ]] && echo bash >&2; exit 2`, "block bash"},
			{"bash has its file as $0", "#!/bin/bash\n" + `grep -q 'own file' "$0" && echo "${0##*/} ${BASH_SOURCE[0]##*/} $#" >&2; exit 2`, "block script.sh script.sh 0"},
			{"bash returns at top level of a sourced copy", "#!/bin/bash\n" + `[ "$1" = again ] && exit 7; "$BASH" "$0" again; echo $? >&2; exit 2`, "block 7"},
			{"python3", python + "import sys, os\nsys.exit('no') if sys.version_info < (3,) else (print(os.path.basename(__file__), sys.argv[1:], file=sys.stderr), sys.exit(2))", "block script.py []"},
			{"fault path-03: python3 is the resolved one", python + "import sys\nprint(sys.executable, file=sys.stderr)\nsys.exit(2)", "block " + r.Status().Python},
			{"fault encoding-01: python3 reads and writes UTF-8", python + "import sys, json\nprint(json.load(sys.stdin)['final_output'], 'ひらがな é', file=sys.stderr)\nsys.exit(2)", "block done ひらがな é"},
			{"python3 traceback names the file", python + "raise ValueError('x')", "no_verdict nonzero_exit"},
			{"line ends of Windows in the first line", "#!/bin/bash\r\necho '{}'", "allow"},
			{"perl", "#!/usr/bin/perl\nexit 0", "no_verdict interpreter_missing"},
			{"bash with options", "#!/bin/bash -e\nexit 0", "no_verdict interpreter_missing"},
			{"relative python", "#!python3\n", "no_verdict interpreter_missing"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				if v := ask(t, r, tt.script); told(v) != tt.want {
					t.Errorf("got %s\nwant %s", show(v), tt.want)
				}
			})
		}
		t.Run("inline command is bash -c", func(t *testing.T) {
			if v := ask(t, r, `[[ $0 == *bash && -n $BASH_VERSION ]] && echo "inline" >&2; exit 2`, inline); told(v) != "block inline" {
				t.Errorf("got %s", show(v))
			}
		})
		t.Run("fault size-04: an inline command larger than an argument may be", func(t *testing.T) {
			if v := ask(t, r, "true "+strings.Repeat("x", 200_000)+"\necho ran >&2; exit 2", inline); told(v) != "block ran" {
				t.Errorf("got %s", show(v))
			}
		})
		t.Run("neither command nor script", func(t *testing.T) {
			if v := ask(t, r, ""); told(v) != "no_verdict internal" {
				t.Errorf("got %s", show(v))
			}
		})
	})
}

func TestAzure40StandardInput(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		large := []byte(`{"final_output":"` + strings.Repeat("0123456789abcdef", 8<<20/16) + `"}`)
		small := []byte("{\"final_output\":\"a\\nb\\u0000 ü 'x' $HOME\"}")
		edge := []byte(`"` + strings.Repeat("x", 64<<10-1) + `"`) // one byte more than a pipe usually holds
		full := edge[:64<<10]
		for _, tt := range []struct {
			name, script, want string
			context            []byte
		}{
			{"fault stdout-04: byte for byte, and nothing after it", `cat >&2; exit 2`, "block " + string(small), small},
			{"8 MiB", `wc -c >&2; exit 2`, "block " + itoa(len(large)), large},
			{"what a pipe holds", `wc -c >&2; exit 2`, "block " + itoa(len(full)), full},
			{"just beyond what a pipe holds", `wc -c >&2; exit 2`, "block " + itoa(len(edge)), edge},
			{"8 MiB that nobody reads", `echo '{}'`, "allow", large},
			{"8 MiB of which the head is read", `head -c 10 >&2; exit 2`, `block {"final_ou`, large},
			{"closed at once", `exec <&-; sleep 0.1; echo '{}'`, "allow", large},
			{"by /dev/stdin", `cat /dev/stdin >&2; exit 2`, "block " + string(small), small},
			{"a pipe, as scripts test for", `[ -p /dev/stdin ] && [ ! -t 0 ] && cat >&2; exit 2`, "block " + string(small), small},
			{"empty", `cat; exit 0`, "allow", nil},
		} {
			t.Run(tt.name, func(t *testing.T) {
				if v := ask(t, r, tt.script, withContext(tt.context)); told(v) != tt.want {
					t.Errorf("got %s\nwant %.200s", show(v), tt.want)
				}
			})
		}
	})
}

func TestAzure27TranscriptAtItsOwnPath(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		dir := filepath.Join(t.TempDir(), "data dir", "transcripts") // private, as a data directory is
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		view, raw := filepath.Join(dir, "view.txt"), filepath.Join(dir, "raw.jsonl")
		other := filepath.Join(dir, "other.txt")
		for _, path := range []string{view, raw, other} {
			if err := os.WriteFile(path, []byte("text of "+filepath.Base(path)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		context := withContext([]byte(`{"execution_summary":"` + view + `","transcript_path":"` + raw + `"}`))
		t.Run("the context's paths can be read", func(t *testing.T) {
			script := `in=$(cat)
path() { local rest=${in#*\"$1\":\"}; cat "${rest%%\"*}"; }
path execution_summary >&2; echo -n ', ' >&2; path transcript_path >&2; exit 2`
			if v := ask(t, r, script, context, withTranscript(view, raw)); told(v) != "block text of view.txt, text of raw.jsonl" {
				t.Errorf("got %s", show(v))
			}
		})
		t.Run("view and raw are one file", func(t *testing.T) {
			if v := ask(t, r, "cat '"+view+"' >&2; exit 2", withTranscript(view, view)); told(v) != "block text of view.txt" {
				t.Errorf("got %s", show(v))
			}
		})
		t.Run("no transcript", func(t *testing.T) {
			if v := ask(t, r, "exit 0", withTranscript("", "")); told(v) != "allow" {
				t.Errorf("got %s", show(v))
			}
		})
		if r.Status().Mode != Bubblewrap {
			return
		}
		t.Run("its neighbours cannot", func(t *testing.T) {
			if v := ask(t, r, "cat '"+other+"' >&2 2>/dev/null && exit 2; ls '"+dir+"' >&2; exit 2", withTranscript(view, raw)); told(v) != "block raw.jsonl\nview.txt" {
				t.Errorf("got %s", show(v))
			}
		})
		t.Run("nor can it be written", func(t *testing.T) {
			if v := ask(t, r, "{ echo x >> '"+view+"'; } 2>/dev/null && exit 2; rm -f '"+view+"' 2>/dev/null && exit 2; exit 0", withTranscript(view, raw)); told(v) != "allow" {
				t.Errorf("got %s", show(v))
			}
		})
		t.Run("nor by its owner, where it is mounted", func(t *testing.T) {
			own := filepath.Join(openDir(t), "own.txt")
			if err := os.WriteFile(own, []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
			giveToSandbox(t, own)
			if v := ask(t, r, "cat '"+own+"' >&2; { echo x >> '"+own+"'; } 2>/dev/null && echo written >&2; chmod 777 '"+own+"' 2>/dev/null && echo chmod >&2; exit 2", withTranscript(own, "")); told(v) != "block text" {
				t.Errorf("got %s", show(v))
			}
		})
		t.Run("a link is not followed", func(t *testing.T) {
			link := filepath.Join(dir, "link")
			if err := os.Symlink(other, link); err != nil {
				t.Fatal(err)
			}
			if v := ask(t, r, "exit 0", withTranscript(link, "")); told(v) != "no_verdict transcript_unreadable" {
				t.Errorf("got %s", show(v))
			}
		})
		t.Run("gone", func(t *testing.T) {
			if v := ask(t, r, "exit 0", withTranscript(filepath.Join(dir, "none"), "")); told(v) != "no_verdict transcript_unreadable" {
				t.Errorf("got %s", show(v))
			}
		})
		t.Run("never over the sandbox's own files", func(t *testing.T) {
			if v := ask(t, r, "exit 0", withTranscript("/proc/self/environ", "")); told(v) != "no_verdict transcript_unreadable" {
				t.Errorf("got %s", show(v))
			}
		})
	})
}

func TestEnvironmentIsAnExplicitList(t *testing.T) {
	t.Setenv("STOPGATE_API_KEY", "secret")
	t.Setenv("GEMINI_API_KEY", "secret")
	t.Setenv("BASH_ENV", "/dev/null")
	everyMode(t, Options{Env: map[string]string{"HOOK_LEVEL": "a b", "LANG": "C"}}, func(t *testing.T, r *Runner) {
		v := ask(t, r, `while read -r line; do [[ $line == *"="* ]] && echo "${line%%=*}"; done < <(/usr/bin/env) | sort | tr '\n' ' ' >&2; echo "$HOOK_LEVEL $LANG" >&2; exit 2`)
		if want := "block HOME HOOK_LEVEL LANG PATH PWD SHLVL STOPGATE_HOOK TMPDIR _ a b C"; told(v) != want {
			t.Errorf("got %s\nwant %s", show(v), want)
		}
	})
}

// Whoever asks a gate from within a hook can tell that it is in one: nothing that
// the hook is given takes that away, whosever hook it is. That sandboxes which wait
// have the same is held by TestWarmIsCold and TestForkedIsCold.
func TestEveryHookIsMarkedAsOne(t *testing.T) {
	opt := Options{Env: map[string]string{gate.FromHookVariable: ""}, HostEnv: []string{gate.FromHookVariable + "=", "AX_CODE_HOOKS_FULL_ENV=1"}}
	everyMode(t, opt, func(t *testing.T, r *Runner) {
		for name, whose := range map[string]func(*gate.Input){"azure": func(*gate.Input) {}, "antigravity": sandboxed(gate.PreToolUse), "ax-code": ofAXCode, "claude-code": func(in *gate.Input) {
			ofClaudeCode(in)
			in.Hook.Env = map[string]string{gate.FromHookVariable: ""}
		}} {
			v := ask(t, r, `printenv `+gate.FromHookVariable, whose)
			if v.Evidence == nil || v.Evidence.Stdout != "1\n" {
				t.Errorf("%s: %s", name, show(v))
			}
		}
	})
}

func TestHomeAndTempCanBeWritten(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		v := ask(t, r, `f=$(mktemp) && echo x > "$f" && echo y > "$HOME/y" && cat <<< here > /dev/null && echo ok >&2; exit 2`)
		if told(v) != "block ok" {
			t.Errorf("got %s", show(v))
		}
	})
}

func TestRunsDoNotShareFiles(t *testing.T) {
	everyMode(t, Options{}, func(t *testing.T, r *Runner) {
		for range 2 {
			if v := ask(t, r, `[ -e "$TMPDIR/left" ] && exit 2; echo > "$TMPDIR/left"`); told(v) != "allow" {
				t.Errorf("got %s", show(v))
			}
		}
	})
}
