package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/gate"
)

const loops = "../../examples/loops"

// The loops that docs/agents.md shows run against the real service: refused
// once, and the refusal heeded.
func TestLoopsOfOnesOwn(t *testing.T) {
	s := newService(t)
	marker, err := os.ReadFile("../../examples/marker.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := s.do(http.MethodPut, agents+"marker", "application/yaml", marker); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	runLoops(t, s.url, func(t *testing.T, out string, err error) {
		if err != nil || out != "It is 5. Task complete.\n" {
			t.Errorf("%v: %s", err, out)
		}
		_, list := s.do(http.MethodGet, "/v1/evaluations?event=Stop&limit=2", "", nil)
		if n := strings.Count(string(list), `"decision":"`+string(gate.Block)+`"`); n != 1 {
			t.Errorf("%d of the last two Stops were refused, want 1: %s", n, list)
		}
	})
}

// What the gate does not answer ends them, with its own words.
func TestLoopsShowTheGatesErrors(t *testing.T) {
	runLoops(t, newService(t).url, func(t *testing.T, out string, err error) {
		if err == nil || !strings.Contains(out, `"not_found"`) || strings.Contains(out, "It is 5") {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// runLoops runs every loop against a server.
func runLoops(t *testing.T, server string, check func(t *testing.T, out string, err error)) {
	for _, c := range []struct {
		run   []string
		needs []string
	}{
		{run: []string{"python3", "loop.py"}},
		{run: []string{"node", "loop.mjs"}, needs: []string{"node"}},
		{run: []string{"go", "run", "."}},
		{run: []string{"bash", "loop.sh"}, needs: []string{"curl", "jq"}},
	} {
		t.Run(c.run[0], func(t *testing.T) {
			for _, program := range c.needs {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("%s is not installed", program)
				}
			}
			cmd := exec.CommandContext(t.Context(), c.run[0], c.run[1:]...)
			cmd.Dir = loops
			cmd.Env = append(os.Environ(), "STOPGATE_SERVER="+server)
			out, err := cmd.CombinedOutput()
			check(t, string(out), err)
		})
	}
}

// docs/agents.md shows the loops as they are.
func TestAgentsPageShowsTheLoops(t *testing.T) {
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"loop.py", "loop.mjs", "loop.go", "loop.sh"} {
		program, err := os.ReadFile(filepath.Join(loops, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "examples/loops/"+name) {
			t.Errorf("%s is not named", name)
		}
		for _, part := range shownParts(name, string(program)) {
			if !strings.Contains(string(page), part) {
				t.Errorf("%s: not shown as it is:\n%s", name, part)
			}
		}
	}
}

// shownParts are the pieces that the page quotes: of Python all but the
// stand-in for a model, of the shell all; the others it only names.
func shownParts(name, program string) []string {
	switch name {
	case "loop.py":
		whole, _, _ := strings.Cut(program, "\n\nif __name__")
		return []string{whole}
	case "loop.sh":
		return []string{program}
	}
	return nil
}
