// Package recording keeps what models answered, and answers from it again
// without a model.
//
// A [Recording] is a directory with one JSON file for each request that a model
// was asked. A [Take] is one judgement's part of it:
//
//	r, err := recording.Create(dir, secrets)
//	judge, err := prompthooks.New(prompthooks.Options{Model: r.Take("run-17, repeat 1").Record(find)})
//
//	r, err := recording.Open(dir)
//	judge, err := prompthooks.New(prompthooks.Options{Model: r.Take("run-17, repeat 1").Replay()})
//
// # When a request is the same
//
// A request is known by its take, its model, and everything that was said to the
// model and by it, the random word of the fence put aside. So the context of an
// event must be the same when it is replayed: no path, no id of the day in it. The
// n-th time that the same is asked within a take is another request: votes of a
// panel and tries after an error are told apart.
//
// What tools returned is left out: it follows from the conversation, for which
// the take's name must stand, and from the clock, since a judge that is late is
// not let read on; a replay is never late. Requests that differ in this are
// replayed and counted ([Take.Drifted]).
//
// Answers are kept byte for byte, the provider's own form of them too. Secrets
// that the recording was told of are blotted out, in what the judge gets as well,
// so that a replay sees the same. What the answers quote of conversations is
// kept: directories have mode 0700, files 0600.
package recording

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"sync"

	"stopgate/prompthooks"
)

// Find finds the model that a hook names and the deployment to ask it for, as
// [prompthooks.Options] wants it.
type Find = func(name string) (m prompthooks.Model, deployment string, err error)

const (
	// maxFile bounds one answer. Providers read bodies of at most 4 MiB; an
	// answer has its text twice, once as its provider has it.
	maxFile = 16 << 20
)

// Recording is a directory of answers. It is safe for concurrent use.
type Recording struct {
	dir     *os.Root
	secrets []string

	mu  sync.Mutex
	err error // the first answer that could not be kept
}

// Create makes a recording in a directory that is empty or not there yet: the
// answers of two recordings cannot be told apart. secrets are texts, such as API
// keys, that must not be kept, in any spelling that [exchange.Blot] knows.
func Create(dir string, secrets []string) (*Recording, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("recording: %q is not empty: replay what it holds, or name a new directory", dir)
	}
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	r.secrets = slices.Clone(secrets)
	return r, nil
}

// Resume goes on with a recording, or makes one: [Take.Complete] asks for what it does
// not have. A directory that holds something else is not written into. secrets are as
// those of [Create].
func Resume(dir string, secrets []string) (*Recording, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	own := func(e os.DirEntry) bool { return deploymentName.MatchString(e.Name()) }
	if len(entries) > 0 && !slices.ContainsFunc(entries, own) {
		return nil, fmt.Errorf("recording: %q holds other files and no recording: name a new directory", dir)
	}
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	r.secrets = slices.Clone(secrets)
	return r, nil
}

// Open reads a recording.
func Open(dir string) (*Recording, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Recording{dir: root}, nil
}

// Close ends the use of the directory.
func (r *Recording) Close() error { return r.dir.Close() }

// Err is why an answer could not be kept; nil: all were. The judgement that
// wanted it has no verdict, and a replay would miss it.
func (r *Recording) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *Recording) failed(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	return err
}

// Take is the part of one judgement, by its name. A name is used for one
// judgement at a time; with one name for two conversations, or for two repeats,
// their answers get mixed up.
func (r *Recording) Take(name string) *Take {
	return &Take{recording: r, name: name, asked: map[string]int{}}
}

// deployment is what a hook's name for a model stood for.
type deployment struct {
	Name       string               `json:"name"`
	Deployment string               `json:"deployment"`
	Lacks      prompthooks.Features `json:"lacks,omitempty"`
}

// deploymentName is that of a file that every recording has, see deploymentFile.
var deploymentName = regexp.MustCompile(`\Amodel-[0-9a-f]{32}\.json\z`)

func deploymentFile(name string) string { return "model-" + digest([]byte(name)) + ".json" }

// write keeps a value as a file, whole or not at all.
func (r *Recording) write(name string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%d bytes are more than the %d that one answer may have", len(text), maxFile)
	}
	if err == nil {
		err = r.replace(name, text)
	}
	if err != nil {
		return r.failed(fmt.Errorf("recording: an answer could not be kept: %w", err))
	}
	return nil
}

func (r *Recording) replace(name string, text []byte) error {
	temporary := "." + rand.Text()
	err := r.dir.WriteFile(temporary, text, 0o600)
	if err == nil {
		err = r.dir.Rename(temporary, name)
	}
	if err != nil {
		_ = r.dir.Remove(temporary) // it may not be there
	}
	return err
}

// errBroken is a file that is there and is not what was written.
var errBroken = errors.New("the file is broken")

// read reads a file that write wrote. What is no regular file is not opened: a
// pipe would be waited for.
func (r *Recording) read(name string, v any) error {
	about, err := r.dir.Lstat(name)
	if err != nil {
		return err
	}
	if !about.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is no regular file", errBroken, name)
	}
	f, err := r.dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return err
	}
	if len(text) > maxFile {
		return fmt.Errorf("%w: %s is larger than %d bytes", errBroken, name, maxFile)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w: %s: %w", errBroken, name, err)
	}
	return nil
}

func (r *Recording) has(name string) bool {
	_, err := r.dir.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// digest is enough of a hash to know a text by.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
