package commandhooks

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stopgate/gate"
)

// interpreter is a program that runs scripts.
type interpreter struct {
	file string // its real file; empty: not found
	// prefixes are the directories outside the system's that it needs.
	prefixes []string
}

// tools are the programs that were found when the gate started.
type tools struct {
	bash, python interpreter
	jq           string // a file of the host, or Options.Self
	ownJQ        bool   // jq is Options.Self
	path         string // the hooks' PATH
}

// findTools looks for the interpreters once, since a version manager's shim
// costs more than the script (MEASURED: 50–90 ms). usable says whether a hook
// could run a file at all, as the sandbox's user.
func findTools(ctx context.Context, opt Options, usable func(file string) bool) tools {
	var t tools
	dirs := filepath.SplitList(systemPath)
	for _, dir := range filepath.SplitList(opt.Path) {
		if filepath.IsAbs(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, file := range candidates(dirs, "bash") {
		if usable(file) {
			t.bash = interpreter{file: file}
			if !ofSystem(file) {
				t.bash.prefixes = []string{filepath.Dir(file)}
			}
			break
		}
	}
	for _, file := range candidates(dirs, "python3") {
		if p, ok := realPython(ctx, file, dirs); ok && usable(p.file) {
			t.python = p
			break
		}
	}
	path := filepath.SplitList(systemPath)
	for _, i := range []interpreter{t.bash, t.python} {
		if dir := filepath.Dir(i.file); i.file != "" && !slices.Contains(path, dir) {
			path = append(path, dir)
		}
	}
	t.path = strings.Join(path, ":")
	if found := candidates(path, "jq"); len(found) > 0 {
		t.jq = found[0]
	} else if opt.Self != "" && usable(opt.Self) {
		t.jq, t.ownJQ = opt.Self, true
	}
	return t
}

func candidates(dirs []string, name string) []string {
	var found []string
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			found = append(found, file)
		}
	}
	return found
}

// realPython asks a python3 for its own file: a shim of a version manager
// names the one behind it.
func realPython(ctx context.Context, file string, dirs []string) (interpreter, bool) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, file, "-I", "-c", "import sys\nprint(sys.executable, sys.prefix, sys.base_prefix, sep='\\n')")
	cmd.Env = []string{"PATH=" + strings.Join(dirs, ":"), "LANG=C.UTF-8"}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != 3 || !filepath.IsAbs(lines[0]) {
		return interpreter{}, false
	}
	python := interpreter{file: lines[0]}
	for _, prefix := range lines[1:] {
		if !ofSystem(prefix) && !slices.Contains(python.prefixes, prefix) {
			python.prefixes = append(python.prefixes, prefix)
		}
	}
	return python, true
}

// ofSystem reports whether a path lies in what every sandbox has.
func ofSystem(path string) bool {
	return slices.ContainsFunc([]string{"/usr", "/bin"}, func(root string) bool { return within(path, root) })
}

// within reports whether path is root or below it; both are clean.
func within(path, root string) bool {
	return path == root || root == "/" || strings.HasPrefix(path, root+"/")
}

// environment is everything that a hook gets: an explicit list (DESIGN §8).
func environment(opt Options, path, home string) []string {
	env := map[string]string{"PATH": path, "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8"}
	maps.Copy(env, opt.Env)
	env[gate.FromHookVariable] = "1" // last: no option takes it away
	list := make([]string, 0, len(env))
	for _, key := range slices.Sorted(maps.Keys(env)) {
		list = append(list, key+"="+env[key])
	}
	return list
}
