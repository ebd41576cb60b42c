package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"stopgate/gate"
)

// claim is a locked file. The kernel lets the lock go when the process ends,
// however it ends; the file itself stays, since removing it would race with
// the next to come.
type claim struct{ file *os.File }

// claimDir takes a data directory for one server.
func claimDir(dir string) (*claim, error) {
	f, err := openLock(dir, "serve.lock")
	if err != nil {
		return nil, err
	}
	if err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %q cannot be locked: %w", dir, err)
		}
		return nil, gate.Errorf(gate.CodeConflict, "data directory %q is in use by another stopgate serve (pid %s)",
			dir, strings.TrimSpace(string(holder)))
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("data directory %q cannot be locked: %w", dir, err)
	}
	return &claim{f}, nil
}

// claimMigration keeps other processes from opening the database while its
// schema may change. It waits until ctx ends.
func claimMigration(ctx context.Context, dir string) (*claim, error) {
	f, err := openLock(dir, "migrate.lock")
	if err != nil {
		return nil, err
	}
	for {
		err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return &claim{f}, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("data directory %q cannot be locked: %w", dir, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("data directory %q is being migrated by another process: %w", dir, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func openLock(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory %q cannot be written: %w", dir, err)
	}
	return f, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func (c *claim) release() error { return c.file.Close() }
