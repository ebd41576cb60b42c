package chaos

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// insideVariable marks the process that runs in mounts of its own.
const insideVariable = "STOPGATE_CHAOS_INSIDE"

// TestMain runs the tests in mounts of their own where that can be had, so that a
// disk can be filled that is nobody else's, and that goes with the process however
// that ends. It takes root, or user namespaces.
func TestMain(m *testing.M) {
	switch os.Getenv(insideVariable) {
	case "":
		if code, ran := runInside(); ran {
			os.Exit(code)
		}
	default:
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			os.Exit(notInside)
		}
	}
	var err error
	if binaries, err = os.MkdirTemp("", "stopgate-chaos-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(binaries)
	os.Exit(code)
}

// notInside is the exit code of a process that could not have its own mounts.
const notInside = 97

func runInside() (code int, ran bool) {
	runtime.LockOSThread() // the child ends with this thread
	defer runtime.UnlockOSThread()
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() != notInside {
		return exit.ExitCode(), true
	}
	return 0, err == nil
}

// diskSize is room for a world's rounds, and soon full.
const diskSize = "size=256m"

// ownDisk mounts a small disk for the test; empty: there can be none here.
func ownDisk(t testing.TB) string {
	if os.Getenv(insideVariable) == "" {
		return ""
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, diskSize); err != nil {
		return ""
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// fill takes all that is free on the disk; the end gives it back.
func (w *world) fill() (end func()) {
	path := filepath.Join(w.disk, "filler")
	f, err := os.Create(path)
	if err != nil {
		w.t.Fatal(err)
	}
	for size := 1 << 20; size > 0; { // to the last page
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	f.Close()
	return func() { os.Remove(path) }
}
