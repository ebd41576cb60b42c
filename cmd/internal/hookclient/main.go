package hookclient

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
)

// Main is [Command.Run] in the process that it is called in, whose exit code it
// gives.
func Main(version string) (code int) {
	// A fatal error that nothing can recover ends by SIGABRT, not by the exit
	// code 2 that Go would use, which hosts read as a denial.
	debug.SetTraceback("crash")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	c := Command{Version: version, Local: becomeStopgate}
	return c.Run(ctx, Process{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}, os.Args[1:])
}

// becomeStopgate makes this process the stopgate beside it.
func becomeStopgate(flags []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := filepath.Join(filepath.Dir(self), "stopgate")
	err = syscall.Exec(program, append([]string{program, "hook"}, flags...), os.Environ()) //nolint:gosec // the one that was installed with this
	return fmt.Errorf("-f decides here, which takes stopgate itself, and %s cannot be started: %w", program, err)
}
