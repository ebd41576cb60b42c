package main

import (
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is linked is what it takes to speak a protocol to a server, and nothing
// that decides: each package more is read and initialised for every tool call.
func TestLinksLittle(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{with .Module}}{{if .Main}}{{$.ImportPath}}{{else}}{{.Path}}{{end}}{{end}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{}
	for _, name := range strings.Fields(string(out)) {
		linked[name] = true
	}
	want := []string{
		"github.com/wasilibs/go-re2", // of gate, for matchers: asleep here, as TestStartsWithoutWork has it
		"golang.org/x/sys",
		"mvdan.cc/sh/v3", // of gate, for rules: asleep too
		"stopgate/cmd/internal/hookclient",
		"stopgate/cmd/stopgate-hook",
		"stopgate/gate",
		"stopgate/internal/datadir",
		"stopgate/internal/durable",
		"stopgate/internal/jsonscan",
		"stopgate/internal/loopback",
		"stopgate/internal/nearest",
		"stopgate/internal/scratch",
		"stopgate/internal/terminal",
		"stopgate/redact",      // of hook.log
		"stopgate/transcripts", // for hosts that write the agent's answer late
		"stopgate/wire",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(linked))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// No package has more to do before main than to fill a table: what each of them
// allocates then says so, where a time would say how busy the machine is. RE2's
// module would be megabytes, one regular expression with a bound 100 KB.
func TestStartsWithoutWork(t *testing.T) {
	program := filepath.Join(t.TempDir(), "stopgate-hook")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, "--version")
	cmd.Env = append(cmd.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	traced := regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes`).FindAllStringSubmatch(string(out), -1)
	if len(traced) == 0 {
		t.Fatalf("no package in %s", out)
	}
	const least = 20 << 10 // mvdan.cc/sh's regular expressions take 15 KB
	for _, m := range traced {
		if bytes, err := strconv.Atoi(m[2]); err != nil || bytes > least {
			t.Errorf("%s allocates %s bytes before main", m[1], m[2])
		}
	}
}
