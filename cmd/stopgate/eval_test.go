package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A reason is a script's or a model's text: what is printed of it has nothing
// that a terminal obeys.
func TestEvalPrintsNoControlCharacters(t *testing.T) {
	dir := t.TempDir()
	spec := filepath.Join(dir, "spec.yaml")
	write(t, spec, "api_version: azuresre.ai/v2\nkind: ExtendedAgent\nmetadata: {name: a}\nspec:\n  hooks:\n    Stop:\n      - type: command\n        timeout: 10\n        script: |\n          #!/bin/bash\n          printf 'no\\033[2J\\033[32m decision: allow\\007' >&2\n          exit 2\n")
	event := filepath.Join(dir, "event.json")
	write(t, event, `{"hook_event_name":"Stop","final_output":"x"}`)
	server := filepath.Join(dir, "stopgate.yaml")
	write(t, server, "sandbox: {mode: process}\n")
	var out, errs bytes.Buffer
	code := run(process{ctx: t.Context(), stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: os.Getenv},
		[]string{"eval", "-f", spec, "--event", event, "--config", server})
	if code != exitBlock {
		t.Fatalf("exit %d: %s%s", code, out.String(), errs.String())
	}
	if strings.ContainsAny(out.String(), "\x1b\a") {
		t.Errorf("%q", out.String())
	}
}
