// Package postgrestest gives tests a real PostgreSQL: a private server for as
// long as the test process lives, from the programs that are installed.
//
//	url := postgrestest.Database(t) // an empty database of its own
//
// Debian's package postgresql is enough; nothing needs to run, and nothing is
// left behind, however the process ends.
package postgrestest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// server is started by the first test of a process that needs it. It ends with
// the process, which no test can know the end of: hence one for all.
var server = sync.OnceValues(start)

// running is a server: the directory of its data and its socket, and the pipe
// whose end is its end. It must stay referenced: collected, it is closed.
type running struct {
	dir  string
	life io.WriteCloser
	says *bufio.Reader // a line for each start
}

var databases atomic.Int64

// errMissing says what to install.
var errMissing = errors.New("PostgreSQL's programs initdb and postgres are not installed (Debian: apt-get install postgresql)")

// Database makes an empty database and answers its URL. It is dropped at the
// test's end. Without PostgreSQL the test is skipped, but not as root or where
// CI is set: there `make test` has installed it.
func Database(t testing.TB) string {
	t.Helper()
	s, err := server()
	if errors.Is(err, errMissing) && os.Getenv("CI") == "" && os.Getuid() != 0 {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("PostgreSQL for tests: %v", err)
	}
	name := fmt.Sprintf("test%d", databases.Add(1))
	Exec(t, at(s.dir, "postgres"), `CREATE DATABASE `+name)
	t.Cleanup(func() { Exec(t, at(s.dir, "postgres"), `DROP DATABASE `+name+` WITH (FORCE)`) })
	return at(s.dir, name)
}

// Exec runs statements in a database.
func Exec(t testing.TB, database, statements string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statements); err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
}

// Socket is the path of the server's socket, for a proxy before it.
func Socket(t testing.TB, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432")
}

func at(dir, name string) string {
	return "postgres://stopgate@/" + name + "?" + url.Values{"host": {dir}, "sslmode": {"disable"}}.Encode()
}

// Restart stops the server at once, as a crash would, and starts it again: every
// connection breaks, and what was committed is recovered from the log. It returns
// when the server answers. The server is shared by all tests of the process.
func Restart(t testing.TB) {
	t.Helper()
	s, err := server()
	if err == nil {
		_, err = s.life.Write([]byte("restart\n"))
	}
	if err == nil {
		err = s.await("restart\n")
	}
	if err != nil {
		t.Fatalf("restart of the PostgreSQL for tests: %v", err)
	}
}

// guard runs the server and ends it, and removes its directory, when its
// standard input ends: that is when the test process does, killed or not. Each
// line of it restarts the server.
const guard = `
"$1"/initdb -D "$2/data" -U stopgate -A trust -E UTF8 --locale=C --no-sync >"$2/log" 2>&1 || { cat "$2/log"; rm -rf "$2"; exit 1; }
start() {
"$1"/postgres -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off -c shared_buffers=32MB -c max_connections=200 >>"$2/log" 2>&1 &
server=$!
}
start "$1" "$2"
echo started
while read -r restart; do
  kill -QUIT $server
  wait $server
  start "$1" "$2"
  echo "$restart"
done
kill -QUIT $server
wait $server
rm -rf "$2"
`

// start makes a server. PostgreSQL refuses to run as root, so there it runs as
// another user.
func start() (*running, error) {
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	// A socket's path may not be long, and TMPDIR may be.
	dir, err := os.MkdirTemp("/tmp", "pgtest")
	if err != nil {
		return nil, err
	}
	s, err := startIn(dir, programs)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func startIn(dir, programs string) (*running, error) {
	cmd := exec.Command("/bin/sh", "-c", guard, "sh", programs, dir)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	// Of its own: Ctrl-C at the terminal is for the tests, which then end it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		id, err := unprivileged()
		if err != nil {
			return nil, err
		}
		cmd.SysProcAttr.Credential = id
		if err := os.Chown(dir, int(id.Uid), int(id.Gid)); err != nil {
			return nil, err
		}
	}
	life, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &running{dir, life, bufio.NewReader(out)}
	return s, s.await("started\n")
}

// await returns when the guard has said that it started the server, and the
// server answers.
func (s *running) await(started string) error {
	if said, _ := s.says.ReadString('\n'); said != started {
		rest := make([]byte, 4<<10)
		n, _ := s.says.Read(rest)
		return fmt.Errorf("initdb failed: %s", strings.TrimSpace(said+string(rest[:n])))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, at(s.dir, "postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("%w; its log:\n%s", err, log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// findPrograms is the directory of the newest server's programs, which Debian
// keeps out of the path.
func findPrograms() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4])
		return n
	}
	if len(found) > 0 {
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // the others are beside it
			return filepath.Dir(path), nil
		}
	}
	return "", errMissing
}

func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("there is neither a user postgres nor nobody, and PostgreSQL refuses to run as root")
}
