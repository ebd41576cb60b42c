package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// action is deploy/github-action/action.yml as the runner reads it.
type action struct {
	Inputs map[string]struct{ Default string }
	Runs   struct {
		Using string
		Steps []struct {
			Name, Shell, Run string
			Env              map[string]string
		}
	}
}

func readAction(t *testing.T) action {
	t.Helper()
	var a action
	text, err := os.ReadFile(filepath.Join(deployed, "github-action", "action.yml"))
	if err == nil {
		err = yaml.Unmarshal(text, &a)
	}
	if err != nil || a.Runs.Using != "composite" || len(a.Runs.Steps) == 0 {
		t.Fatalf("%v %+v", err, a)
	}
	return a
}

var ofInput = regexp.MustCompile(`\$\{\{ inputs\.([a-z-]+) \}\}`)

// play runs the action's steps up to the first that fails, as a runner does, in a
// directory. It gives what they print, and the failed step with its exit code.
func (a action) play(t *testing.T, dir string, inputs map[string]string, env ...string) (printed, failed string, code int) {
	t.Helper()
	temp := t.TempDir()
	shared := filepath.Join(temp, "env")
	place, err := filepath.Abs(filepath.Join(deployed, "github-action"))
	if err != nil {
		t.Fatal(err)
	}
	env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + temp, "RUNNER_TEMP=" + temp, "GITHUB_ENV=" + shared, "GITHUB_ACTION_PATH=" + place}, env...)
	var out bytes.Buffer
	for _, step := range a.Runs.Steps {
		script := filepath.Join(temp, "step.sh")
		if err := os.WriteFile(script, []byte(step.Run), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), step.Shell, "--noprofile", "--norc", "-eo", "pipefail", script)
		cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = dir, &out, &out, slices.Clone(env)
		for name, value := range step.Env {
			cmd.Env = append(cmd.Env, name+"="+ofInput.ReplaceAllStringFunc(value, func(m string) string {
				name := ofInput.FindStringSubmatch(m)[1]
				if given, ok := inputs[name]; ok {
					return given
				}
				return a.Inputs[name].Default
			}))
		}
		if text, err := os.ReadFile(shared); err == nil {
			cmd.Env = append(cmd.Env, strings.Split(strings.TrimSpace(string(text)), "\n")...)
		}
		err := cmd.Run()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return out.String(), step.Name, exit.ExitCode()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.String(), "", 0
}

const (
	checkedSpec  = "name: a\nproperties:\n  hooks:\n    Stop:\n      - {name: done, type: rule, rules: [{if: 'final_output == \"\"', then: block, reason: Say something.}]}\n"
	checkedTests = "tests:\n  - {name: silence, event: {hook_event_name: Stop, final_output: \"\"}, want: block}\n"
)

// checked is a repository with a spec and its tests.
func checked(t *testing.T, spec, tests string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.yaml": spec, "a.test.yaml": tests} {
		if err := os.WriteFile(filepath.Join(dir, "agents", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestGitHubAction(t *testing.T) {
	a := readAction(t)
	for _, tt := range []struct {
		name, spec, tests string
		inputs            map[string]string
		failed            string
		code              int
		says              string
	}{
		{"all is well", checkedSpec, checkedTests, nil, "", 0, `ok +\tagents/a.test.yaml`},
		{"a spec has an error", strings.Replace(checkedSpec, "final_output", "final", 1), checkedTests, nil, "Validate", 1, `(?m)^agents/a\.yaml:5:\d+: error: .*"final" is not known`},
		{"a test fails", checkedSpec, strings.Replace(checkedTests, "block", "allow", 1), nil, "Test", 1, `decision is block, want allow`},
		{"what Azure does not know", checkedSpec, checkedTests, map[string]string{"strict-azure": "true"}, "Validate", 1, `error: .*type: rule is an extension of stopgate, and Azure SRE Agent refuses`},
		{"a choice that is none", checkedSpec, checkedTests, map[string]string{"strict-azure": "yes"}, "Validate", 64, `strict-azure is "yes", want true or false`},
		{"a path that looks like a flag", checkedSpec, checkedTests, map[string]string{"path": "--help"}, "Validate", 65, `--help`},
		{"a path that looks like a command", checkedSpec, checkedTests, map[string]string{"path": "$(touch agents/made)"}, "Validate", 65, `touch`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := checked(t, tt.spec, tt.tests)
			inputs := map[string]string{"binary": "stopgate", "junit": "report.xml"}
			for name, value := range tt.inputs {
				inputs[name] = value
			}
			printed, failed, code := a.play(t, dir, inputs)
			if failed != tt.failed || code != tt.code || !regexp.MustCompile(tt.says).MatchString(printed) {
				t.Errorf("%q fails with %d, want %q with %d; printed, want %s:\n%s", failed, code, tt.failed, tt.code, tt.says, printed)
			}
			report, _ := os.ReadFile(filepath.Join(dir, "report.xml"))
			if asked := failed == "" || failed == "Test"; asked != bytes.Contains(report, []byte("silence")) {
				t.Errorf("report %q", report)
			}
			if _, err := os.Stat(filepath.Join(dir, "agents", "made")); err == nil {
				t.Error("the path was run")
			}
		})
	}
	t.Run("built from what the action was taken from", func(t *testing.T) {
		bin := t.TempDir()
		const stub = `#!/bin/sh
set -e # -C DIR build -trimpath -o FILE PACKAGE
cd "$2" && [ -f go.mod ] && [ -d "$7" ]
echo "$3 $7"
mkdir -p "$(dirname "$6")" && ln -s "$STUB" "$6"
`
		if err := os.WriteFile(filepath.Join(bin, "go"), []byte(stub), 0o700); err != nil {
			t.Fatal(err)
		}
		program, err := exec.LookPath("stopgate")
		if err != nil {
			t.Fatal(err)
		}
		printed, failed, code := a.play(t, checked(t, checkedSpec, checkedTests), nil, "STUB="+program, "PATH="+bin+":"+os.Getenv("PATH"))
		if failed != "" || !strings.Contains(printed, "build ./cmd/stopgate") {
			t.Errorf("%q %d\n%s", failed, code, printed)
		}
	})
}

// Inputs reach scripts as variables: in the text of one they would be run.
func TestGitHubActionScripts(t *testing.T) {
	shellcheck := ""
	for _, step := range readAction(t).Runs.Steps {
		if strings.Contains(step.Run, "${{") {
			t.Errorf("%s: an expression in the script", step.Name)
		}
		if shellcheck == "" {
			shellcheck = tool(t, "shellcheck", "Debian: shellcheck")
		}
		cmd := exec.CommandContext(t.Context(), shellcheck, "--shell=bash", "--exclude=SC2154", "-")
		cmd.Stdin = strings.NewReader(step.Run)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", step.Name, err, out)
		}
	}
}

// TestGitHubActionFindings: the runner finds the place of every finding and of every
// failure.
func TestGitHubActionFindings(t *testing.T) {
	var matcher struct {
		ProblemMatcher []struct {
			Pattern []struct {
				Regexp                                string
				File, Line, Column, Severity, Message int
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(deployed, "github-action", "findings.json"))
	if err == nil {
		err = json.Unmarshal(text, &matcher)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := checked(t, strings.Replace(checkedSpec, "final_output", "final", 1), checkedTests)
	printed, _ := exec.CommandContext(t.Context(), "stopgate", "validate", filepath.Join(dir, "agents")).Output()
	p := matcher.ProblemMatcher[0].Pattern[0]
	first, _, _ := strings.Cut(string(printed), "\n")
	m := regexp.MustCompile(p.Regexp).FindStringSubmatch(first)
	if m == nil || m[p.File] != filepath.Join(dir, "agents", "a.yaml") || m[p.Line] != "5" || m[p.Column] == "" || m[p.Severity] != "error" || m[p.Message] == "" {
		t.Errorf("%q in %q", m, printed)
	}
	dir = checked(t, checkedSpec, strings.Replace(checkedTests, "block", "allow", 1))
	printed, _ = exec.CommandContext(t.Context(), "stopgate", "test", filepath.Join(dir, "agents")).Output()
	p = matcher.ProblemMatcher[1].Pattern[0]
	m = regexp.MustCompile("(?m)" + p.Regexp).FindStringSubmatch(string(printed))
	if m == nil || m[p.File] != filepath.Join(dir, "agents", "a.test.yaml") || m[p.Line] != "2" || !strings.HasPrefix(m[p.Message], "decision is block") {
		t.Errorf("%q in %q", m, printed)
	}
}

// TestPreCommitHooks runs the hooks that other repositories may name, as pre-commit
// does: the entry, its arguments, and the files that are changed.
func TestPreCommitHooks(t *testing.T) {
	var hooks []struct {
		ID, Language, Entry, Files, Exclude string
		Args                                []string
		PassFilenames                       *bool `yaml:"pass_filenames"`
	}
	text, err := os.ReadFile(filepath.Join("..", "..", ".pre-commit-hooks.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &hooks)
	}
	if err != nil || len(hooks) != 2 {
		t.Fatalf("%v %+v", err, hooks)
	}
	run := func(t *testing.T, id, dir string) (code int, printed string) {
		t.Helper()
		for _, h := range hooks {
			if h.ID != id {
				continue
			}
			words := append(strings.Fields(h.Entry), h.Args...)
			for _, file := range []string{"agents/.hidden.yaml", "agents/a.test.yaml", "agents/a.yaml", "agents/answers/1.json", "agents/incidents/event.json", "src/agents.yaml"} {
				chosen := regexp.MustCompile(h.Files).MatchString(file) && (h.Exclude == "" || !regexp.MustCompile(h.Exclude).MatchString(file))
				if chosen && (h.PassFilenames == nil || *h.PassFilenames) {
					words = append(words, file)
				}
			}
			if h.Language != "golang" {
				t.Errorf("language %q is not what is built by go install", h.Language)
			}
			cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
			cmd.Dir = dir
			out, _ := cmd.CombinedOutput()
			return cmd.ProcessState.ExitCode(), string(out)
		}
		t.Fatalf("no hook %s", id)
		return 0, ""
	}
	for _, tt := range []struct {
		name, id, spec, tests string
		code                  int
	}{
		{"a good spec", "stopgate-validate", checkedSpec, checkedTests, 0},
		{"a bad spec", "stopgate-validate", strings.Replace(checkedSpec, "final_output", "final", 1), checkedTests, 1},
		{"tests that pass", "stopgate-test", checkedSpec, checkedTests, 0},
		{"tests that fail", "stopgate-test", checkedSpec, strings.Replace(checkedTests, "block", "allow", 1), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if code, printed := run(t, tt.id, checked(t, tt.spec, tt.tests)); code != tt.code {
				t.Errorf("%d, want %d:\n%s", code, tt.code, printed)
			}
		})
	}
}
