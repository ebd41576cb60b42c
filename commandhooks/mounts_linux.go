package commandhooks

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"stopgate/gate"
)

// mountTranscript makes a conversation readable at the path that the context
// names (spec/azure.md 27).
//
// A gate that is root runs its hooks as somebody who may not be able to read
// the file where it is: then a copy is taken, up to copyBytes. A larger one is
// not there, and the verdict says so.
func (b *bubblewrap) mountTranscript(s *sandbox, named string, own func(string, os.FileInfo) bool, user *syscall.Credential) *gate.Failure {
	path := filepath.Clean(named)
	if slices.ContainsFunc([]string{"/proc", "/dev", "/sys", scriptDir}, func(r string) bool { return within(path, r) }) {
		return failed(gate.TranscriptUnreadable, "transcript %q lies where no file can be mounted", path)
	}
	// Opened here to be sure that it is a file and no link to one: the agent may
	// own the directory.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return failed(gate.TranscriptUnreadable, "transcript could not be opened: %v", err)
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		f.Close()
		return failed(gate.TranscriptUnreadable, "transcript %q is not a regular file", path)
	}
	if !own(named, info) {
		f.Close()
		return failed(gate.TranscriptUnreadable, "transcript %q is no longer the file that was opened", path)
	}
	if user == nil || permits(path, user, 0o4) {
		f.Close()
		s.add("--ro-bind", path, path)
		s.shown = append(s.shown, shown{path: path, info: info, code: gate.TranscriptUnreadable})
		return nil
	}
	limit := min(copyBytes, b.opt.Limits.FileSize)
	if info.Size() > limit {
		// The length of a conversation is the agent's to choose: a hook that
		// does not read it must not be switched off by it.
		f.Close()
		s.lost = true
		return nil
	}
	s.add("--perms", "0444", "--ro-bind-data", s.pass(f), path)
	return nil
}

// copyBytes is how much of a transcript is copied into a sandbox's memory.
const copyBytes = 64 << 20

// mountWorkspace mounts the agent's directories, and answers whom the hook runs
// as: the first one's owner, where the hook may write.
func (b *bubblewrap) mountWorkspace(s *sandbox, dirs []mounted) (*syscall.Credential, *gate.Failure) {
	user, how, needs := b.user, "--ro-bind", fs.FileMode(0o5)
	if b.opt.Workspace.Access == ReadWrite {
		how, needs = "--bind", 0o7
	}
	for i, ws := range dirs {
		info, failure := lookAtWorkspace(ws)
		if failure != nil {
			return nil, failure
		}
		if i == 0 && b.opt.Workspace.Access == ReadWrite {
			user = b.owner(info)
		}
		if user != nil && !permits(ws.source, user, needs) {
			return nil, failed(gate.SandboxUnavailable, "workspace %q is not accessible (%s) for the sandbox's user: run the gate as its owner instead of root",
				ws.path, b.opt.Workspace.Access)
		}
		s.add(how, ws.source, ws.path)
		s.mounted = append(s.mounted, ws)
		s.shown = append(s.shown, shown{path: ws.path, info: info, code: gate.SandboxUnavailable})
	}
	return user, nil
}

// mountAgents shows the project's .agents at /.agents, if hooks may see it. Nothing
// there is a hook's to change, also where the project is.
func (b *bubblewrap) mountAgents(s *sandbox, project string) *gate.Failure {
	dir, why := b.opt.Workspace.agents(project)
	if why != "" {
		return nil // which is said of a hook that wants it
	}
	info, failure := lookAtWorkspace(dir)
	if failure != nil {
		return failure
	}
	if s.user != nil && !permits(dir.source, s.user, 0o5) {
		return failed(gate.SandboxUnavailable, "the project's .agents is not accessible for the sandbox's user: run the gate as its owner instead of root")
	}
	s.add("--ro-bind", dir.source, dir.path)
	s.mounted = append(s.mounted, dir)
	s.shown = append(s.shown, shown{path: dir.path, info: info, code: gate.SandboxUnavailable})
	return nil
}

// lookAtWorkspace is about the directory that is mounted. Its source has no
// symbolic links; if it has some now, it was exchanged.
func lookAtWorkspace(ws mounted) (os.FileInfo, *gate.Failure) {
	dir, err := openIn(unix.AT_FDCWD, ws.source, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return nil, failed(gate.SandboxUnavailable, "workspace %q could not be opened: %v", ws.path, err)
	}
	defer dir.Close()
	info, err := dir.Stat()
	if err != nil || !info.IsDir() {
		return nil, failed(gate.SandboxUnavailable, "workspace %q is no longer a directory", ws.path)
	}
	return info, nil
}

// owner is whom a hook runs as that may write there: a gate that is root can be
// anybody, and is root itself only where it may.
func (b *bubblewrap) owner(info os.FileInfo) *syscall.Credential {
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case b.user == nil || !ok || owner.Uid == 0 && !b.opt.AsRoot:
		return b.user
	case owner.Uid == 0:
		return nil
	}
	return &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
}

// hide empties the hidden paths, wherever they lie in what is mounted.
func (b *bubblewrap) hide(s *sandbox, user *syscall.Credential) {
	reachable := func(real string) bool { return user == nil || permits(filepath.Dir(real), user, 0o1) }
	for _, hidden := range b.opt.Workspace.hiddenIn(append(s.mounted, b.mounted...), reachable) {
		info, err := os.Stat(hidden.source)
		s.covered = append(s.covered, info)
		if err == nil && info.IsDir() {
			s.add("--size", "4096", "--perms", "0555", "--tmpfs", hidden.path)
			s.hidden = append(s.hidden, hidden.path)
		} else {
			s.add("--ro-bind", "/dev/null", hidden.path)
		}
	}
}

// permits reports whether the user may reach the path and has these rights on
// it (bits of one rwx triple), by the file modes alone.
func permits(path string, user *syscall.Credential, rights fs.FileMode) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !filepath.IsAbs(real) {
		return false
	}
	allowed := func(path string, rights fs.FileMode) bool {
		info, err := os.Stat(path)
		if err != nil {
			return false
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		mode := info.Mode().Perm()
		switch {
		case !ok:
			return false
		case owner.Uid == user.Uid:
			mode >>= 6
		case owner.Gid == user.Gid:
			mode >>= 3
		}
		return mode&rights == rights
	}
	for dir := filepath.Dir(real); ; dir = filepath.Dir(dir) {
		if !allowed(dir, 0o1) {
			return false
		}
		if dir == "/" {
			return allowed(real, rights)
		}
	}
}
