//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// agent is how one real agent is run without a network and without a person.
type agent struct {
	host    string   // its name for `stopgate init`
	program string   // in bin/e2e
	args    []string // before the prompt
	// environment is what points it to the scripted model.
	environment func(home, modelURL string) []string
	// file is its own configuration, below home, and what must stand there.
	file      string
	configure func(project, modelURL string) string
	tool      string // what its hook payloads call the shell tool
	// resubmits: a stop's reason comes back as a prompt of its own.
	resubmits bool
	// nameless: nothing that reaches a hook names its version.
	nameless bool
}

func agents() []agent { return []agent{geminiCLI(), codex(), qwenCode()} }

func geminiCLI() agent {
	return agent{
		host: "gemini-cli", program: "gemini", args: []string{"--yolo", "-p"}, tool: "run_shell_command", resubmits: true, nameless: true,
		environment: func(_, modelURL string) []string {
			return []string{"GEMINI_API_KEY=scripted", "GOOGLE_GEMINI_BASE_URL=" + modelURL, "GEMINI_CLI_TRUST_WORKSPACE=true"}
		},
		file:      ".gemini/settings.json",
		configure: func(_, _ string) string { return `{"security":{"auth":{"selectedType":"gemini-api-key"}}}` },
	}
}

// codex runs commands without its own sandbox, which is not under test and
// cannot be set up below a temporary directory.
func codex() agent {
	return agent{
		host: "codex", program: "codex", tool: "Bash",
		args: []string{"exec", "--sandbox", "danger-full-access", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"},
		environment: func(home, _ string) []string {
			return []string{"SCRIPTED_KEY=scripted", "CODEX_HOME=" + filepath.Join(home, ".codex")}
		},
		file: ".codex/config.toml",
		configure: func(project, modelURL string) string {
			return codexModel(modelURL) + `
[projects."` + project + `"]
trust_level = "trusted"
`
		},
	}
}

func codexModel(modelURL string) string {
	return `model = "scripted"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "` + modelURL + `/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
`
}

// qwenCode is told not to extract memories: it would do so with requests that
// look like the conversation's.
func qwenCode() agent {
	return agent{
		host: "qwen-code", program: "qwen", args: []string{"--auth-type", "openai", "--yolo", "-p"}, tool: "run_shell_command",
		environment: func(_, modelURL string) []string {
			return []string{"OPENAI_API_KEY=scripted", "OPENAI_BASE_URL=" + modelURL + "/v1", "OPENAI_MODEL=scripted"}
		},
		file:      ".qwen/settings.json",
		configure: func(_, _ string) string { return `{"memory":{"enableManagedAutoMemory":false}}` },
	}
}

// agentTime bounds one run of an agent, which takes 5 s on two idle cores.
const agentTime = 2 * time.Minute

// run lets the agent work on a prompt, and returns what it printed and its exit
// code, -1 when it had to be killed.
func (a agent) run(t *testing.T, home, project, modelURL, prompt string) (printed string, exit int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), agentTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, installed(t, "bin", "e2e", "node_modules", ".bin", a.program), append(a.args[:len(a.args):len(a.args)], prompt)...)
	cmd.Dir = project
	cmd.Env = append(a.environment(home, modelURL), "HOME="+home, "PATH="+os.Getenv("PATH"), "NO_COLOR=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // agents start children of their own
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	output, err := cmd.CombinedOutput()
	if bad, failed := errors.AsType[*exec.ExitError](err); failed {
		return string(output), bad.ExitCode()
	} else if err != nil {
		t.Fatalf("%s: %v\n%s", a.program, err, output)
	}
	return string(output), 0
}

// version is what the agent says of itself.
func (a agent) version(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), agentTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, installed(t, "bin", "e2e", "node_modules", ".bin", a.program), "--version")
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s --version: %v", a.program, err)
	}
	return strings.TrimSpace(string(output))
}

// installed is the absolute path of something below the repository's root.
func installed(t *testing.T, path ...string) string {
	t.Helper()
	full, err := filepath.Abs(filepath.Join(append([]string{".."}, path...)...))
	if err == nil {
		_, err = os.Stat(full)
	}
	if err != nil {
		t.Fatalf("%v: run e2e/run, or make e2e", err)
	}
	return full
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
