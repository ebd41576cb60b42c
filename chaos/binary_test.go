package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// clockVariable names the file with the seconds by which a server's clock is off.
const clockVariable = "STOPGATE_CHAOS_CLOCK"

// binaries is where the program under test is; TestMain makes and removes it.
var binaries string

// built is the program under test, made by the first test that needs it.
var built = sync.OnceValues(func() (string, error) { return build(binaries) })

func server(t testing.TB) string {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// build builds the program into a directory.
func build(dir string, flags ...string) (string, error) {
	bin := filepath.Join(dir, "stopgate")
	// -trimpath, so that `make build` and this share what they compile.
	line := append([]string{"build", "-trimpath", "-o", bin}, flags...)
	out, err := exec.Command("go", append(line, "stopgate/cmd/stopgate")...).CombinedOutput()
	if err != nil {
		return bin, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
}

// buildWithClock builds the program under test with a standard library in which
// time.Now is off by what clockVariable's file says: its code is the same, and
// every wall clock in it jumps, as the machine's would; the monotonic one does
// not, as it would not.
func buildWithClock(t testing.TB) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	const now = "	sec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), "func Now() Time {\n"+now) != 1 {
		t.Fatal("time.Now of this Go is not the one that is known here")
	}
	patched := strings.Replace(string(source), "func Now() Time {\n"+now, "func Now() Time {\n"+now+"	sec += ChaosOffset\n", 1) +
		"\n// ChaosOffset is by how many seconds the clock is off.\nvar ChaosOffset int64\n"
	const jumps = `package main

import (
	"os"
	"strconv"
	"time"
)

func init() {
	go func() {
		for ; ; time.Sleep(10 * time.Millisecond) {
			text, _ := os.ReadFile(os.Getenv("` + clockVariable + `"))
			time.ChaosOffset, _ = strconv.ParseInt(string(text), 10, 64)
		}
	}()
}
`
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	program, err := filepath.Abs("../cmd/stopgate/chaosclock.go") // which is nowhere but in the overlay
	if err != nil {
		t.Fatal(err)
	}
	overlay, _ := json.Marshal(map[string]map[string]string{"Replace": {
		library: write("time.go", patched), program: write("chaosclock.go", jumps)}})
	bin, err := build(dir, "-overlay", write("overlay.json", string(overlay)))
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

func (w *world) clockFile(r *replica) string { return filepath.Join(w.dir, r.name+".clock") }
