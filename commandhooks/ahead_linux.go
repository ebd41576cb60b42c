package commandhooks

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"stopgate/internal/scratch"
)

// ahead is a sandbox that was started before its job, and has one, or forks for
// any number. It is what a cold one is at the same point, limited, examined and
// held, or further on: a script's interpreter runs, up to where it opens the
// script.
//
// The script comes by a directory of the host that lies read-only at
// [scriptDir], as an empty file until the job has come, but in one that forks,
// which is for that script alone. What is handed over is a line on [latchFD], by
// us alone.
type ahead struct {
	p      *process
	box    *boxed
	like   *sandbox      // what it was made of
	system []os.FileInfo // what of the system it has
	home   *scratch.Dir  // holds hook
	hook   string        // the directory that it has at scriptDir
	forks  *forks        // nil: it has one job
}

// unlatched is a shell's program that becomes an interpreter with the latch.
const unlatched = failsafe + `read -r go <&3 && exec "$@"`

// shapeOf names all that a sandbox was told but the script and the input: two
// with one name differ in nothing else; where they fork, they have one script and
// one owner, too. There is none for a hook that takes from its event what no other
// will have, nor for one that runs as a user who may have processes out here: that
// one could exchange the script.
func (b *bubblewrap) shapeOf(s *sandbox, j job) (id shapeID, ok bool) {
	passes := len(s.files) > latchFD+1 // the content of a file, as of now
	if b.pool == nil || s.user != b.user || j.rooted || j.once || passes || s.lost || s.err != nil {
		return id, false
	}
	h := sha256.New()
	lists := [][]string{s.args, s.environ, j.argv(j.scriptFile()), {s.dir}}
	if j.forks {
		lists = append(lists, []string{j.agent, j.hook, j.script})
	}
	for _, list := range lists {
		put(h, list)
	}
	return shapeID(h.Sum(nil)), true
}

func put(h hash.Hash, list []string) {
	fmt.Fprintln(h, len(list))
	for _, word := range list {
		fmt.Fprintln(h, len(word), word)
	}
}

// startAhead gives the job to a sandbox that waits for one of its shape. Where
// none does, or what the machine has at its paths is no longer what the sandbox
// shows, it answers nil, and nothing has been run.
func (b *bubblewrap) startAhead(ctx context.Context, s *sandbox, j job, own *streams) *process {
	j.forks = b.opt.ForkPython && j.mayFork(s)
	id, ok := b.shapeOf(s, j)
	if !ok {
		return nil
	}
	j.isTranscript = nil // the event's own
	w := b.pool.take(id, j)
	if w == nil {
		return nil
	}
	if w.forks != nil {
		p, err := b.forkFrom(ctx, w, s, j, own)
		if err != nil {
			b.pool.giveUp(id, w)
		}
		return p
	}
	if !w.shows(s, b.look()) || w.run(j) != nil {
		b.pool.discard(w.end)
		return nil
	}
	w.p.ahead = true
	clear := w.p.clear
	w.p.clear = func() {
		b.pool.discard(func() { // else the next start's, and the answer's
			clear()
			_ = w.home.Remove()
		})
	}
	return w.p
}

// shows reports whether the sandbox lives, and what a cold one would have at
// each path now is what this one has.
func (w *ahead) shows(s *sandbox, system []os.FileInfo) bool {
	return unix.PidfdSendSignal(w.box.pidfd, 0, nil, 0) == nil &&
		slices.EqualFunc(w.system, system, same) && slices.EqualFunc(w.like.covered, s.covered, same) &&
		slices.EqualFunc(w.like.shown, s.shown, func(a, b shown) bool { return same(a.info, b.info) })
}

// same: two looks were at one file, or both at none.
func same(a, b os.FileInfo) bool {
	return a == nil && b == nil || a != nil && b != nil && os.SameFile(a, b)
}

// look is at what bwrap mounts of the system: directories change in a sandbox
// as they do outside, but what is put in the place of one, or of a file, does
// not come in.
func (b *bubblewrap) look() []os.FileInfo {
	var infos []os.FileInfo
	for i, arg := range b.system {
		if arg == "--ro-bind" || arg == "--dev-bind" {
			info, err := os.Stat(b.system[i+1])
			if err != nil {
				info = nil
			}
			infos = append(infos, info)
		}
	}
	return infos
}

// run brings script and input and lets the hook go. After an error no line of
// it was run.
func (w *ahead) run(j job) error {
	defer w.box.latch.Close()
	if j.script != "" {
		if err := w.fill(j.fileName, []byte(j.script), 0o555); err != nil {
			return err
		}
	}
	w.p.streams.feed(j.stdin)
	return w.box.letGo()
}

// write makes a file that belongs to whom the hook is.
func (w *ahead) write(name string, content []byte, mode fs.FileMode) error {
	if err := w.make(name); err != nil {
		return err
	}
	return w.fill(name, content, mode)
}

// make makes an empty file that is ours alone until it is filled: to find a place for
// it on a disk takes as long as a short hook, and is done ahead.
func (w *ahead) make(name string) error {
	f, err := os.OpenFile(filepath.Join(w.hook, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// fill gives a file its content, and to whom the hook is. No process may be forked
// meanwhile: it would hold the file open for writing, and then nobody can
// execute it.
func (w *ahead) fill(name string, content []byte, mode fs.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	path := filepath.Join(w.hook, name)
	// os.OpenFile would ask the kernel whether the file can be waited for.
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	_, err = f.Write(content)
	if w.like.user != nil {
		err = cmp.Or(err, f.Chown(int(w.like.user.Uid), int(w.like.user.Gid)))
	}
	return cmp.Or(err, f.Chmod(mode), f.Close())
}

// end takes the sandbox away with all that it holds, once no job is left that it
// has forked. No other may have come.
func (w *ahead) end() {
	if w.forks == nil || w.forks.end() {
		w.remove()
	}
}

func (w *ahead) remove() {
	if w.p != nil {
		w.p.kill()
		w.box.awaitEnd()
		w.box.bwrap.Kill()
		w.box.bwrap.Wait()
		w.p.streams.close()
		w.box.latch.Close()
		w.box.clear()
	}
	_ = w.home.Remove()
}

// aheadTime is ample for an interpreter in a sandbox on a busy machine.
const aheadTime = 20 * time.Second

// makeAhead starts a sandbox for jobs of this shape.
func (b *bubblewrap) makeAhead(ctx context.Context, id shapeID, j job) (*ahead, error) {
	ctx, cancel := context.WithTimeout(ctx, aheadTime)
	defer cancel()
	// Whose conversation lies there is asked when the job comes.
	j.isTranscript = func(string, os.FileInfo) bool { return true }
	s, failure := b.prepare(j)
	if failure != nil {
		return nil, failure
	}
	defer s.close()
	if now, ok := b.shapeOf(s, j); !ok || now != id {
		return nil, errors.New("sandbox ahead: its files have changed")
	}
	w := &ahead{like: s, system: b.look()}
	if err := w.makeHome(b); err != nil {
		return nil, err
	}
	if err := w.start(ctx, b, j); err != nil {
		w.end()
		return nil, err
	}
	return w, nil
}

// makeHome makes the directory that the script comes by. On this machine nobody
// but the hook's user and the gate gets there.
func (w *ahead) makeHome(b *bubblewrap) error {
	var err error
	if w.home, err = scratch.Make(b.aheadDir); err != nil {
		return err
	}
	w.hook = filepath.Join(w.home.Path(), "hook")
	err = os.Mkdir(w.hook, 0o755)
	if user := w.like.user; user != nil {
		err = cmp.Or(err, os.Chown(w.home.Path(), -1, int(user.Gid)), os.Chmod(w.home.Path(), 0o710),
			os.Chown(w.hook, int(user.Uid), int(user.Gid)))
	}
	err = cmp.Or(err, os.Chmod(w.hook, 0o755)) // whatever the umask is
	if err == nil && b.tools.ownJQ {
		err = w.write("jq", nil, 0o444) // to be mounted over
	}
	if err != nil {
		_ = w.home.Remove()
	}
	return err
}

func (w *ahead) start(ctx context.Context, b *bubblewrap, j job) error {
	program := latched
	first, runs := j.early(w.like.environ, len(w.like.mounted) > 0)
	if runs {
		program = unlatched
		w.like.environ = append(slices.Clip(w.like.environ), first.variable)
		if j.forks {
			if err := b.makeForks(w, j, &first); err != nil {
				return err
			}
		}
		if err := w.write(first.file, first.content, 0o444); err != nil {
			return err
		}
	}
	if j.script != "" && w.forks == nil {
		if err := w.make(j.fileName); err != nil {
			return err
		}
	}
	w.like.add("--ro-bind", w.hook, scriptDir)
	streams := &streams{}
	if err := streams.open(); err != nil {
		return err
	}
	p, box, failure := b.hold(ctx, w.like, program, j, streams.child)
	streams.closeChild()
	if failure != nil {
		streams.close()
		return failure
	}
	w.p, w.box = p, box
	p.streams = streams
	if !runs {
		return nil
	}
	if err := w.await(ctx); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(w.hook, first.file)); err != nil || w.forks == nil {
		return err
	}
	return w.tryFork(ctx)
}

// await lets the interpreter start, and returns when it waits.
func (w *ahead) await(ctx context.Context) error {
	if err := w.box.letGo(); err != nil {
		return err
	}
	out := w.p.streams.outputs[0].pipe
	stop := context.AfterFunc(ctx, func() { out.SetReadDeadline(time.Unix(1, 0)) })
	said := []byte{0}
	_, err := out.Read(said)
	switch {
	case err != nil:
		return fmt.Errorf("interpreter in the sandbox: %w", err)
	case said[0] != '\n':
		return fmt.Errorf("interpreter in the sandbox said %q", said)
	case !stop():
		return ctx.Err()
	}
	return nil
}

// memory is what waiting costs in bytes: its processes, bwrap itself, and an
// allowance for what the kernel holds for its namespaces and mounts.
func (w *ahead) memory() int64 {
	const namespaces = 512 << 10
	return w.box.used() + heldMemory(w.box.bwrap.Pid) + namespaces
}

// keepAhead has sandboxes started ahead; where their scripts could lie nowhere,
// none is.
func (r *Runner) keepAhead(b *bubblewrap) {
	dir, ok := b.aheadParent()
	if !ok {
		r.status.Ahead = "sandboxes are not started ahead: no temporary directory is one that their user gets to and that no hook sees"
		return
	}
	scratch.Sweep(dir)
	b.aheadDir = dir
	// With a hook on each processor, starting more takes time from them.
	busy := func() bool { return r.slots.Taken() >= runtime.GOMAXPROCS(0) }
	b.pool = newPool(r.opt.Pool, r.opt.Parallel, busy, func(ctx context.Context, id shapeID, j job) (waiting, error) {
		w, err := b.makeAhead(ctx, id, j)
		if err != nil {
			return waiting{}, err
		}
		return waiting{ahead: w, bytes: w.memory(), end: w.end}, nil
	})
	r.pool = b.pool
}

// aheadParent is where scripts may lie for sandboxes that wait: the hook's user
// gets there, and no hook sees it in what is mounted.
func (b *bubblewrap) aheadParent() (dir string, ok bool) {
	shown := slices.Clone(b.mounted)
	if b.opt.Workspace.Access != NoWorkspace {
		for _, root := range b.opt.Workspace.Roots {
			if real, err := filepath.EvalSymlinks(root); err == nil {
				shown = append(shown, mounted{source: real})
			}
		}
	}
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || !filepath.IsAbs(real) || b.user != nil && !permits(real, b.user, 0o1) {
			continue
		}
		if !slices.ContainsFunc(shown, func(m mounted) bool { return within(real, m.source) }) {
			return real, true
		}
	}
	return "", false
}
