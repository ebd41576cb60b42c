package chaos

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// disk is what a disk with a cache holds, in the worst case that POSIX allows: of
// a file what was there at its last fsync, of a directory the entries that were
// there at its own. It is rebuilt from a trace of what a process did to its files.
type disk struct {
	root    string // everything below it is told of by the trace; it is durable itself
	live    map[string]*inode
	durable map[string]*inode
	synced  int // how many syncs there were

	starting map[string]string // thread → the beginning of its unfinished call
	snapshot map[string][]byte // thread → what the file of its unfinished sync held
	position map[string]int    // file descriptor → where it writes next
}

type inode struct {
	dir           bool
	live, durable []byte
}

// traced are the calls that change files. Those at the end are not understood
// here: nobody may make them below root.
const traced = "openat,open,creat,write,pwrite64,lseek,ftruncate,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat," +
	"rmdir,link,linkat,writev,pwritev,pwritev2,copy_file_range,sendfile,fallocate,sync_file_range,truncate"

var (
	callLine   = regexp.MustCompile(`^(\d+) +(\w+)\((.*)$`)
	resumed    = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
	result     = regexp.MustCompile(`\) += (-?\d+)(?:<(.*)>)?[^=]*$`)
	descriptor = regexp.MustCompile(`^(\d+)<(.*?)>`)
	quoted     = regexp.MustCompile(`"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?`)
)

// readTrace plays a trace of strace -f -y -xx, to its end.
func readTrace(r io.Reader, root string) (*disk, error) {
	d := &disk{root: root, live: map[string]*inode{}, durable: map[string]*inode{}, starting: map[string]string{}, snapshot: map[string][]byte{}, position: map[string]int{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if err := d.line(lines.Text()); err != nil {
			return nil, fmt.Errorf("%w in %.300s", err, lines.Text())
		}
	}
	return d, lines.Err()
}

func (d *disk) line(line string) error {
	if m := resumed.FindStringSubmatch(line); m != nil {
		start := d.starting[m[1]]
		delete(d.starting, m[1])
		return d.call(m[1], m[2], start+m[3])
	}
	m := callLine.FindStringSubmatch(line)
	if m == nil {
		return nil // a signal, an exit
	}
	start, unfinished := strings.CutSuffix(m[3], " <unfinished ...>")
	if unfinished {
		d.starting[m[1]] = start
	}
	if m[2] == "fsync" || m[2] == "fdatasync" { // what comes after its beginning is not in it
		if node := d.live[d.path(start)]; node != nil && !node.dir {
			d.snapshot[m[1]] = append([]byte{}, node.live...)
		}
	}
	if unfinished {
		return nil
	}
	return d.call(m[1], m[2], m[3])
}

// path is the file that a call's first argument is about.
func (d *disk) path(args string) string {
	if m := descriptor.FindStringSubmatch(args); m != nil {
		return unhex(m[2])
	}
	return ""
}

func fd(args string) string {
	n, _, _ := strings.Cut(args, "<")
	return n
}

func unhex(text string) string {
	b, err := hex.DecodeString(strings.ReplaceAll(text, `\x`, ""))
	if err != nil {
		return text // printed as it is
	}
	return string(b)
}

func (d *disk) mine(path string) bool { return strings.HasPrefix(path, d.root+"/") }

// call is one that has returned.
func (d *disk) call(thread, name, args string) error {
	end := result.FindStringSubmatchIndex(args)
	if end == nil {
		return nil // it never returned
	}
	ret, _ := strconv.ParseInt(args[end[2]:end[3]], 10, 64)
	if ret < 0 {
		return nil
	}
	opened := ""
	if end[4] >= 0 {
		opened = unhex(args[end[4]:end[5]])
	}
	args = args[:end[0]]
	var texts []string
	cut := false
	for _, m := range quoted.FindAllStringSubmatch(args, -1) {
		texts, cut = append(texts, unhex(m[1])), cut || m[2] != ""
	}
	path := d.path(args)
	switch name {
	case "openat", "open", "creat":
		d.position[strconv.FormatInt(ret, 10)] = 0
		return d.open(opened, args)
	case "write", "pwrite64":
		if !d.mine(path) || strings.HasSuffix(path, "-shm") || strings.HasSuffix(path, "(deleted)") {
			return nil
		}
		if cut || len(texts) != 1 {
			return fmt.Errorf("a write is not whole")
		}
		at := d.position[fd(args)]
		if name == "pwrite64" {
			var err error
			if at, err = lastNumber(args); err != nil {
				return err
			}
		} else {
			d.position[fd(args)] += int(ret)
		}
		d.write(path, at, texts[0][:ret])
	case "lseek":
		d.position[fd(args)] = int(ret)
	case "ftruncate":
		if node := d.live[path]; node != nil && d.mine(path) {
			size, err := lastNumber(args)
			node.live = resized(node.live, size)
			return err
		}
	case "fsync", "fdatasync":
		d.sync(thread, path)
	case "rename", "renameat", "renameat2":
		if d.mine(texts[len(texts)-1]) {
			from, to := texts[0], texts[len(texts)-1]
			d.live[to] = d.live[from]
			delete(d.live, from)
		}
	case "unlink", "unlinkat", "rmdir":
		delete(d.live, texts[len(texts)-1])
	case "mkdir", "mkdirat":
		if d.mine(texts[len(texts)-1]) {
			d.live[texts[len(texts)-1]] = &inode{dir: true}
		}
	default:
		if d.mine(path) {
			return fmt.Errorf("%s is not understood", name)
		}
	}
	return nil
}

func (d *disk) open(path, args string) error {
	if !d.mine(path) || strings.Contains(args, "O_DIRECTORY") {
		return nil
	}
	node := d.live[path]
	if node == nil && strings.Contains(args, "O_CREAT") {
		d.live[path] = &inode{}
	}
	if node != nil && strings.Contains(args, "O_TRUNC") {
		node.live = nil
	}
	if strings.Contains(args, "O_APPEND") {
		return fmt.Errorf("O_APPEND is not understood")
	}
	return nil
}

func resized(b []byte, size int) []byte {
	if size <= len(b) {
		return b[:size:size]
	}
	return append(b, make([]byte, size-len(b))...)
}

// lastNumber is the last argument of a call.
func lastNumber(args string) (int, error) {
	return strconv.Atoi(strings.TrimSpace(args[strings.LastIndex(args, ",")+1:]))
}

func (d *disk) write(path string, at int, text string) {
	node := d.live[path]
	if node == nil {
		return // it was unlinked
	}
	if end := at + len(text); end > len(node.live) {
		node.live = resized(node.live, end)
	}
	copy(node.live[at:], text)
}

// sync makes durable what a file held when the call began, or which entries a
// directory has.
func (d *disk) sync(thread, path string) {
	d.synced++
	if node := d.live[path]; node != nil && !node.dir {
		node.durable = d.snapshot[thread]
		return
	}
	for name := range d.durable {
		if filepath.Dir(name) == path {
			delete(d.durable, name)
		}
	}
	for name, node := range d.live {
		if filepath.Dir(name) == path {
			d.durable[name] = node
		}
	}
}

// writeTo makes what a power cut leaves a directory. A file is there if the
// entries of all directories on its way are.
func (d *disk) writeTo(dir string) error {
	for name, node := range d.durable {
		there := d.mine(name)
		for up := filepath.Dir(name); there && up != d.root; up = filepath.Dir(up) {
			there = d.durable[up] != nil
		}
		if !there {
			continue
		}
		path := filepath.Join(dir, strings.TrimPrefix(name, d.root))
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		switch {
		case err != nil:
		case node.dir:
			err = os.MkdirAll(path, 0o700)
		default:
			err = os.WriteFile(path, node.durable, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
