package main

import (
	"os"
	"path/filepath"
	"testing"

	"stopgate/commandhooks"
	"stopgate/config"
)

// TestSandboxTakesWhatTheServerFileMaySay: a limit that passes the server file's
// checks is one that scripts can be run with.
func TestSandboxTakesWhatTheServerFileMaySay(t *testing.T) {
	for name, text := range map[string]string{
		"the defaults": "",
		"the least":    "sandbox: {limits: {memory: 16MiB, processes: 4, file_size: 1MiB, open_files: 16, cpu: 1}}\nlimits: {command_hooks: 1}\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stopgate.yaml")
			if err := os.WriteFile(file, []byte("data: data\n"+text), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.LoadServer(file, func(string) string { return "" }, func(s *config.Server) { s.Sandbox.Mode = config.SandboxOff })
			if err != nil {
				t.Fatal(err)
			}
			if _, err := commandhooks.New(t.Context(), commandOptions(cfg, func(string) string { return "" })); err != nil {
				t.Error(err)
			}
		})
	}
}
