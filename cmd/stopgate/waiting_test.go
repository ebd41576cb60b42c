package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestNoFileIsWaitedFor: a named pipe in the place of any file that a command
// reads is an error at once.
func TestNoFileIsWaitedFor(t *testing.T) {
	root := t.TempDir()
	agentsFile(t, root, `{}`)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	hooks := []string{"run-hooks", "--dialect", "antigravity", "--root", root, "--event", "pre_tool_execution"}
	for _, args := range [][]string{
		append(hooks[:len(hooks):len(hooks)], "--network", pipe),
		append(hooks[:len(hooks):len(hooks)], "--config", pipe),
		{"eval", "--event", pipe, "-f", pipe},
		{"validate", pipe},
		{"convert", "--to", "azure", pipe},
		{"serve", "--config", pipe},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			code, errs := ends(t, ctx, root, strings.NewReader(`{"tool_call":{"name":"read_file","args":{}},"environment_id":"e"}`), args)
			if code != exitInput || !strings.Contains(errs, "not a regular file") {
				t.Errorf("exit %d: %s", code, errs)
			}
		})
	}
}

// TestRunHooksEndsWhenTold: also while it waits for a payload that does not come.
func TestRunHooksEndsWhenTold(t *testing.T) {
	root := t.TempDir()
	payload, held := io.Pipe()
	defer held.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	code, errs := ends(t, ctx, root, payload, []string{"run-hooks", "--dialect", "claude-code", "--root", root, "--event", "Stop"})
	if code != exitInput || !strings.Contains(errs, "interrupted") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// ends runs a command that must end by itself.
func ends(t *testing.T, ctx context.Context, home string, stdin io.Reader, args []string) (int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(process{ctx: ctx, stdin: stdin, stdout: &out, stderr: &errs,
			getenv: func(name string) string { return map[string]string{"HOME": home, "OLLAMA_HOST": "127.0.0.1:1"}[name] }}, args)
	}()
	select {
	case code := <-ended:
		return code, errs.String()
	case <-time.After(20 * time.Second):
		t.Fatal("it waits")
		return 0, ""
	}
}
