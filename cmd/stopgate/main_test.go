package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"stopgate/cmd/internal/hookclient"
	"stopgate/internal/contract"
)

// TestMain makes this binary the program that the tests start as stopgate, under
// the race detector where they are. There a process sleeps for a second before
// it exits, in case another goroutine is about to race
// (https://go.dev/doc/articles/race_detector); the hundreds that are started
// here have ended theirs by then.
func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" {
		if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
			panic(err)
		}
	}
	testscript.Main(m, map[string]func(){"stopgate": main, hookclient.Name: func() {
		os.Exit(hookclient.Main("dev"))
	}})
}

// The scripts run the real program; each is a page to read. Lines with
// [contract] need the contract beside the checkout.
func TestScripts(t *testing.T) {
	testscript.Run(t, scripts(t, "script"))
}

// Both programs that a host can run as its command hook do what the script says:
// it calls them `hook`.
func TestHookScripts(t *testing.T) {
	onBothHooks(t, func(t *testing.T, hook hookProgram) {
		params := scripts(t, "hook")
		setup := params.Setup
		params.Setup = func(env *testscript.Env) error {
			bin := filepath.Join(env.WorkDir, "bin")
			env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
			return errors.Join(setup(env), os.Mkdir(bin, 0o700),
				os.WriteFile(filepath.Join(bin, "hook"), []byte("#!/bin/sh\nexec "+strings.Join(hook.words, " ")+` "$@"`+"\n"), 0o700)) //nolint:gosec // it is a program
		}
		testscript.Run(t, params)
	})
}

func scripts(t *testing.T, dir string) testscript.Params {
	return testscript.Params{
		Dir: filepath.Join("testdata", dir),
		Setup: func(env *testscript.Env) error {
			examples, _ := contract.Find("spec/examples")
			env.Setenv("AZURE", examples)
			ours, err := filepath.Abs(filepath.Join("..", "..", "examples"))
			if err != nil {
				return err
			}
			env.Setenv("EXAMPLES", ours)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("PORT", freePort(t))
			env.Setenv("OLLAMA_HOST", "127.0.0.1:1") // not this machine's own
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "contract" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			_, wanted := contract.Find("spec/examples")
			return wanted, nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"await":   await,
			"envfile": envfile,
			"exits":   exits,
			"model":   model,
			"request": request,
		},
	}
}

// freePort is a port that nobody listens on now.
func freePort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// await URL waits until a server answers there.
func await(ts *testscript.TestScript, _ bool, args []string) {
	for range 200 {
		if resp, err := http.Get(args[0]); err == nil {
			resp.Body.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("nothing answers at %s", args[0])
}

// envfile NAME FILE sets a variable to what a file holds.
func envfile(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

// request METHOD URL [FILE] sends a file, JSON, to a server and has its answer as
// standard output.
func request(ts *testscript.TestScript, _ bool, args []string) {
	body := ""
	if len(args) > 2 {
		body = ts.ReadFile(args[2])
	}
	req, err := http.NewRequest(args[0], args[1], strings.NewReader(body))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	_, err = io.Copy(ts.Stdout(), resp.Body)
	ts.Check(err)
}

// model TEXT starts a scripted model, spoken to as Gemini is, and makes it the one
// that stopgate finds: it passes what has the text in it.
func model(ts *testscript.TestScript, _ bool, args []string) {
	s := httptest.NewServer(scriptedGemini(func(request string) string {
		if strings.Contains(request, args[0]) {
			return `{"ok":true,"probability":0.9}`
		}
		return `{"ok":false,"reason":"nothing shows it","probability":0.2}`
	}))
	ts.Defer(s.Close)
	ts.Setenv("GEMINI_API_KEY", "a-key-of-no-worth")
	ts.Setenv("GOOGLE_GEMINI_BASE_URL", s.URL)
}

// exits CODE COMMAND … runs a command that must end with just that code, which
// `!` cannot tell from any other.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		got = e.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit %d, want %d", got, want)
	}
}
