package commandhooks

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"stopgate/gate"
)

// mountRoot makes the entries of Options.Root those of /, and answers whom the
// hook runs as and where.
func (b *bubblewrap) mountRoot(s *sandbox, cwd string) (user *syscall.Credential, dir string, failure *gate.Failure) {
	root := b.root.path
	about, err := os.Lstat(root)
	switch {
	case err != nil || !about.IsDir():
		return nil, "", failed(gate.SandboxUnavailable, "root %q is no longer a directory", root)
	case root == "/":
		return nil, "", failed(gate.SandboxUnavailable, "root is this machine's own: in a container that holds nothing else, take sandbox mode container")
	}
	if user = b.owner(about); user != nil && !permits(root, user, 0o1) {
		return nil, "", failed(gate.SandboxUnavailable, "root %q is not accessible for the sandbox's user: run the gate as its owner", root)
	}
	for _, name := range b.root.entries {
		source, path := filepath.Join(root, name), "/"+name
		info, err := os.Lstat(source)
		if err != nil {
			continue // gone: so it is for the hook
		}
		switch info.Mode().Type() {
		case fs.ModeSymlink:
			// It leads to what lies in the sandbox, as in the system that is
			// played, and never to what lies here.
			target, err := os.Readlink(source)
			if err != nil {
				continue
			}
			s.add("--symlink", target, path)
		case fs.ModeDir, 0:
			s.add("--bind", source, path)
			s.mounted = append(s.mounted, mounted{source: source, path: path})
			s.shown = append(s.shown, shown{path: path, info: info, code: gate.SandboxUnavailable})
		}
	}
	return user, b.root.inside(cwd), nil
}

// leave takes out what the sandbox has for itself: its own system, and the
// places where interpreters lie.
func (r *rootDir) leave(system []mounted) {
	r.entries = slices.DeleteFunc(r.entries, func(name string) bool {
		path := "/" + name
		own := path == "/tmp" || slices.Contains(reserved, path) ||
			slices.ContainsFunc(system, func(m mounted) bool { return within(m.path, path) })
		if own {
			r.unshown = append(r.unshown, fmt.Sprintf("%q: the sandbox has a %s of its own", name, path))
		}
		return own
	})
	slices.Sort(r.unshown)
}

// inside is the path of the event's cwd as a hook sees it: / where it is not
// shown.
func (r *rootDir) inside(cwd string) string {
	real, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return "/"
	}
	rel, err := filepath.Rel(r.path, real)
	if first, _, _ := strings.Cut(rel, "/"); err != nil || !slices.Contains(r.entries, first) {
		return "/"
	}
	return "/" + rel
}
