package scratch

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// asUser is a directory, and goes on as its owner: root can enter every one,
// so that a test run by root would see nothing. The ids are those of the thread
// alone, which ends with the test.
func asUser(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		return dir
	}
	const user, same = 60917, ^uintptr(0)
	for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	runtime.LockOSThread()
	become := func(uid uintptr) {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, same, uid, same); errno != 0 {
			t.Fatal(errno)
		}
	}
	become(user)
	t.Cleanup(func() { become(0) })
	return dir
}
