package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"stopgate/gate"
)

// Bounds of a directory of specs. They are far above what people have, and keep
// a directory named by mistake from being read whole.
const (
	maxSpecFiles     = 1000
	maxSpecFileBytes = 4 << 20
)

// Dir is a directory of spec files: every *.yaml, *.yml and *.json directly in
// it. Hidden files, as editors leave them, test files and sub-directories are
// passed over.
//
// A symbolic link is followed while it stays inside the directory, as those of
// a mounted Kubernetes ConfigMap do; one that leads outside is refused, so that
// who may write here cannot have other files read.
//
// A Dir remembers the last good version of each file. It is for one goroutine.
type Dir struct {
	path  string
	files map[string]*specFile
	ready bool  // Load has answered before
	err   error // of the last reading of the directory itself
}

// specFile is what is known of one file.
type specFile struct {
	data     []byte
	err      error // why it could not be read
	specs    []*gate.Spec
	findings []gate.Finding
	good     []*gate.Spec // the last version without an error
}

// OpenDir is a Dir that has read nothing yet.
func OpenDir(path string) *Dir { return &Dir{path: path, files: map[string]*specFile{}} }

// Load reads what has changed. specs are those in force, in the order of the
// files' names: of a file with an error, its last good version. findings are by
// file, under the path that is also a spec's Source; those of the directory
// itself are under its own path. changed is false when nothing is other than at
// the last Load.
//
// A file that is gone takes its specs with it. A directory that is gone, or
// cannot be read, does not: a gate must not vanish because a mount did.
func (d *Dir) Load() (specs []*gate.Spec, findings map[string][]gate.Finding, changed bool) {
	names, err := d.read()
	changed = !d.ready || (err == nil) != (d.err == nil)
	d.ready, d.err = true, err
	findings = map[string][]gate.Finding{}
	if err != nil {
		findings[d.path] = []gate.Finding{{Severity: gate.SeverityError,
			Message: fmt.Sprintf("directory cannot be read, what was loaded before stays in force: %s", err)}}
	} else {
		for name, file := range d.files {
			next, there := names[name]
			switch {
			case !there:
				delete(d.files, name)
				changed = true
			case !bytes.Equal(next.data, file.data) || fmt.Sprint(next.err) != fmt.Sprint(file.err):
				next.good = file.good
				d.files[name] = next.parsed(name)
				changed = true
			}
		}
		for name, next := range names {
			if d.files[name] == nil {
				d.files[name] = next.parsed(name)
				changed = true
			}
		}
	}
	return d.inForce(findings), findings, changed
}

// inForce chooses each file's specs, and settles names that several files
// define: the first file in order has them.
func (d *Dir) inForce(findings map[string][]gate.Finding) []*gate.Spec {
	var specs []*gate.Spec
	owner := map[string]string{}
	paths := make([]string, 0, len(d.files))
	for path := range d.files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		file := d.files[path]
		list := slices.Clone(file.findings)
		for _, s := range file.specs {
			if first := owner[specID(s)]; first != "" {
				list = append(list, gate.Finding{Severity: gate.SeverityError,
					Message: fmt.Sprintf("%s %q is defined already in %s", s.Kind, s.Name, first)})
			}
		}
		if gate.HasErrors(list) {
			list = append(list, gate.Finding{Severity: gate.SeverityWarning, Message: file.fallback()})
		} else {
			file.good = file.specs
		}
		for _, s := range file.good {
			if owner[specID(s)] == "" {
				owner[specID(s)] = path
				specs = append(specs, s)
			}
		}
		if len(list) > 0 {
			findings[path] = list
		}
	}
	return specs
}

func specID(s *gate.Spec) string { return string(s.Kind) + " " + s.Name }

// fallback says what is in force in place of a bad file.
func (f *specFile) fallback() string {
	if len(f.good) == 0 {
		return "nothing of this file is in force"
	}
	var names []string
	for _, s := range f.good {
		names = append(names, s.Name)
	}
	return "the last good version of this file stays in force: " + strings.Join(names, ", ")
}

func (f *specFile) parsed(path string) *specFile {
	if f.err != nil {
		f.findings = []gate.Finding{{Severity: gate.SeverityError, Message: fmt.Sprintf("file cannot be read: %s", f.err)}}
		return f
	}
	f.specs, f.findings = ReadSpecFile(path, f.data)
	return f
}

// read reads every spec file of the directory, by path.
func (d *Dir) read() (map[string]*specFile, error) {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	names, err := specNames(root)
	if err != nil {
		return nil, err
	}
	files := map[string]*specFile{}
	for _, name := range names {
		data, err := readInside(root, name)
		if errors.Is(err, fs.ErrNotExist) && !isLink(root, name) {
			continue // removed since it was listed
		}
		if !errors.Is(err, errNotAFile) {
			files[filepath.Join(d.path, name)] = &specFile{data: data, err: err}
		}
	}
	return files, nil
}

func specNames(root *os.Root) ([]string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	all, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range all {
		if !strings.HasPrefix(name, ".") && !IsTestFile(name) && specExtension(strings.ToLower(filepath.Ext(name))) {
			names = append(names, name)
		}
	}
	if len(names) > maxSpecFiles {
		return nil, fmt.Errorf("it has %d spec files, want at most %d", len(names), maxSpecFiles)
	}
	return names, nil
}

// errNotAFile marks what is passed over: directories, pipes, devices.
var errNotAFile = errors.New("not a regular file")

// readInside reads a file that lies inside root. A pipe must not hold the
// reader up, so the opening does not wait.
func readInside(root *os.Root, name string) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if isLink(root, name) {
			return nil, fmt.Errorf("symbolic link leads outside the directory, or nowhere")
		}
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotAFile
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSpecFileBytes+1))
	if err == nil && len(data) > maxSpecFileBytes {
		return nil, fmt.Errorf("it is longer than %d bytes", maxSpecFileBytes)
	}
	return data, err
}

// fingerprint changes when a file of the directory, or the directory itself, is
// replaced or written to. It reads no file.
func (d *Dir) fingerprint() string {
	var b strings.Builder
	stamp := func(path string) {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&b, "%s %d %d", path, info.Size(), info.ModTime().UnixNano())
			if sys, ok := info.Sys().(*syscall.Stat_t); ok {
				fmt.Fprintf(&b, " %d", sys.Ino)
			}
		}
		b.WriteByte('\n')
	}
	stamp(d.path)
	if root, err := os.OpenRoot(d.path); err == nil {
		names, _ := specNames(root)
		root.Close()
		slices.Sort(names)
		for _, name := range names {
			stamp(filepath.Join(d.path, name))
		}
	}
	return b.String()
}

func isLink(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
