package transcripts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"stopgate/gate"
	"stopgate/internal/durable"
)

// Options say where transcripts live and how large they may be.
type Options struct {
	Dir   string   // the data directory's transcripts; made if missing
	Roots []string // absolute directories in which a named transcript may lie
	// MaxBytes bounds one transcript, as it is sent and as it is kept. 0: 4 GiB.
	MaxBytes int64
	// MaxMessageBytes bounds one message, since a message is decoded in memory.
	// 0: 32 MiB.
	MaxMessageBytes int
	// MaxTotal bounds all transcripts together, in bytes as they are kept: beyond
	// it those go that were not added to for longest. 0: there is no bound. Of
	// Shared it is the shared store's own matter, and this must be 0.
	MaxTotal int64
	// Shared has the transcripts of all replicas; what Dir holds are then copies,
	// brought up to date before they are read. nil: Dir alone has them.
	Shared gate.SharedTexts
	// Erasure is the last erasure of a session, as its store remembers it: what was
	// begun before is not kept after it. nil: nothing is erased meanwhile.
	Erasure func(ctx context.Context, session string) (gate.Erasure, error)
	// Masks hide secrets in all that is written here from now on: what is sent, and
	// copies and views of what lies elsewhere. What is here already stays as it is.
	// nil: conversations are kept as they come.
	Masks Masks
}

const (
	defaultMaxBytes        = 4 << 30
	defaultMaxMessageBytes = 32 << 20
)

// Store keeps transcripts in a directory, which several processes may share. It
// implements [gate.Transcripts] and is safe for concurrent use.
type Store struct {
	dir        string
	sessions   string                                                          // where sessions' files are; those of shared texts apart
	tmp        string                                                          // this process's own temporary directory
	lock       *os.File                                                        // held as long as tmp is in use
	shared     gate.SharedTexts                                                // nil: none
	erasure    func(ctx context.Context, session string) (gate.Erasure, error) // nil: not looked up
	masks      Masks                                                           // never nil
	roots      []root
	maxBytes   int64
	maxMessage int
	maxTotal   int64              // 0: no bound
	writers    [256]chan struct{} // one slot each; index: first byte of the session's key
	searches   chan struct{}      // bounds the memory of concurrent GrepSearch calls
	// countFurther bounds what a costly search that shows no more still counts.
	countFurther int64
	indexes      indexCache
	hostViews    hostViews
	closeOnce    sync.Once

	ending  context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup
}

var _ gate.Transcripts = (*Store)(nil)

// Size of a transcript's view.
type Size struct {
	Bytes int64 `json:"bytes"`
	Lines int64 `json:"lines"`
}

// Open makes the directories that are missing and removes what processes that
// ended without [Store.Close] left behind.
func Open(opt Options) (*Store, error) {
	if opt.Dir == "" {
		return nil, errors.New("transcripts: no directory is set")
	}
	dir, err := filepath.Abs(opt.Dir)
	if err != nil {
		return nil, fmt.Errorf("transcripts: %w", err)
	}
	s := &Store{
		dir: dir, shared: opt.Shared, erasure: opt.Erasure, maxBytes: defaultMaxBytes, maxMessage: defaultMaxMessageBytes, countFurther: defaultCountFurther,
		searches: make(chan struct{}, max(4, 2*runtime.GOMAXPROCS(0))), masks: opt.Masks,
	}
	if s.masks == nil {
		s.masks = asItComes{}
	}
	if opt.MaxBytes > 0 {
		s.maxBytes = opt.MaxBytes
	}
	if opt.MaxTotal > 0 && opt.Shared != nil {
		return nil, errors.New("transcripts: copies of shared ones are not bounded here")
	}
	s.maxTotal = opt.MaxTotal
	if opt.MaxMessageBytes > 0 {
		s.maxMessage = opt.MaxMessageBytes
	}
	for i := range s.writers {
		s.writers[i] = make(chan struct{}, 1)
	}
	if s.roots, err = cleanRoots(opt.Roots); err != nil {
		return nil, err
	}
	s.sessions = filepath.Join(dir, "sessions")
	if s.shared != nil { // copies are removed and replaced: never what is here alone
		s.sessions = filepath.Join(dir, "copies")
	}
	for _, d := range []string{s.sessions, filepath.Join(dir, "locks"), filepath.Join(dir, "tmp")} {
		if err := durable.MakeDir(d); err != nil {
			return nil, fmt.Errorf("transcripts: %w", err)
		}
	}
	if err := s.ownTemp(); err != nil {
		return nil, fmt.Errorf("transcripts: %w", err)
	}
	s.ending, s.end = context.WithCancel(context.Background())
	if s.shared != nil {
		s.running.Go(s.sweepingErased)
	}
	if s.maxTotal > 0 {
		s.running.Go(s.shrinking)
	}
	return s, nil
}

// Close ends the work in the background and removes the process's temporary
// directory. Transcripts that are still
// open lose their path, not their content.
func (s *Store) Close() error {
	var err error
	s.closeOnce.Do(func() {
		s.end()
		s.running.Wait()
		s.hostViews.close()
		err = errors.Join(os.RemoveAll(s.tmp), s.lock.Close())
	})
	return err
}

// ownTemp makes this process's directory under tmp, locked as long as the
// process lives, and sweeps those whose lock nobody holds.
func (s *Store) ownTemp() error {
	all := filepath.Join(s.dir, "tmp")
	// Between making and locking its own directory a process holds this lock,
	// so that a sweeper never takes a new directory for a dead one.
	gateLock, err := flock(filepath.Join(s.dir, "locks", "tmp"))
	if err != nil {
		return err
	}
	defer gateLock.Close()
	entries, err := os.ReadDir(all)
	if err != nil {
		return err
	}
	for _, e := range entries {
		sweepDead(filepath.Join(all, e.Name()))
	}
	s.tmp = filepath.Join(all, rand.Text())
	if err := os.Mkdir(s.tmp, 0o700); err != nil {
		return err
	}
	s.lock, err = flock(filepath.Join(s.tmp, "lock"))
	return err
}

// sweepDead removes a temporary directory whose process has ended. What cannot
// be removed now is left to the next start.
func sweepDead(dir string) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if err == nil {
		defer f.Close()
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			return
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return
	}
	_ = os.RemoveAll(dir)
}

// flock opens a lock file and waits for its exclusive lock, which ends with the
// file's Close or with the process.
func flock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// key is a session's name on disk. Session ids are foreign text of any length,
// with slashes, dots and NULs in them; their hash is none of that.
type key [sha256.Size]byte

func keyOf(session string) key { return sha256.Sum256([]byte(session)) }

func (s *Store) sessionDir(k key) string {
	return filepath.Join(s.sessions, hex.EncodeToString(k[:]))
}

// temp makes an empty file in the process's temporary directory.
func (s *Store) temp() (*os.File, error) {
	return os.OpenFile(s.tempName(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

func (s *Store) tempName() string { return filepath.Join(s.tmp, rand.Text()+".txt") }
