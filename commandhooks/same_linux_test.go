package commandhooks

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// behaviour is a script whose every trace has to be the same however it is run.
type behaviour struct {
	name, script string
	// boxed: what it shows is the sandbox's own, so that it is compared between
	// sandboxes alone.
	boxed bool
}

var bashBehaviours = []behaviour{
	{name: "says and ends", script: `echo out; echo err >&2; exit 3`},
	{name: "$0 and arguments", script: `echo "$0" "$#" "$@"; echo "${BASH_SOURCE[@]}" "${#BASH_SOURCE[@]}"`},
	{name: "$_, $?, $!, $-", script: `echo "$_|$?|$!|$-|$BASHOPTS|$SHELLOPTS"`},
	{name: "LINENO", script: "echo $LINENO\n\necho $LINENO; f() { echo $LINENO \"${FUNCNAME[@]}\" \"${BASH_LINENO[@]}\"; }\nf"},
	{name: "an error's line", script: "true\nnot-there-at-all\nexit 4"},
	{name: "a syntax error", script: "echo before\nif; then\nfi"},
	{name: "an unset variable under -u", script: "set -u\necho $nothing"},
	{name: "set -x", script: "set -x\necho a\n: $(echo b)"},
	{name: "set -e", script: "set -e\necho a\nfalse\necho b"},
	{name: "empty", script: "#!/bin/bash\n"},
	{name: "no shebang, no end of line", script: "printf x"},
	{name: "carriage returns", script: "#!/bin/bash\r\necho a\r\n"},
	{name: "NUL bytes", script: "echo a\x00b\nexit 5"},
	{name: "top-level return", script: "echo a\nreturn 3\necho b"},
	{name: "trap EXIT", script: `trap 'echo bye; exit 7' EXIT; exit 1`},
	{name: "trap TERM", script: `trap 'echo got; exit 8' TERM; kill -TERM $$; sleep 5`},
	{name: "traps that are set", script: `trap -p; trap`},
	{name: "exec", script: `exec printf '%s\n' done`},
	{name: "exec of nothing", script: `exec /not/there`},
	{name: "descriptors by exec", script: `exec 3>&1 4>$TMPDIR/x; echo a >&3; echo b >&4; cat $TMPDIR/x`},
	{name: "the first free descriptor", script: `exec {fd}</dev/null; echo $fd`},
	{name: "killed by a signal", script: `echo a; kill -KILL $$`},
	{name: "killed by TERM", script: `kill -TERM $$; sleep 5`},
	{name: "SIGPIPE", script: `yes | head -1; echo "${PIPESTATUS[@]}"`},
	{name: "a background child", script: `echo early; (echo late; exit 3) & wait $!; echo $?; jobs`},
	{name: "a background child left", script: `(sleep 600; echo never) & echo early`},
	{name: "reads its input", script: `cat; read -r x || echo end`},
	{name: "reads a line and no more", script: `read -r a; echo "[$a]"; read -r b; echo "[$b]"`},
	{name: "input that nobody reads", script: `exit 0`},
	{name: "input by path", script: `wc -c < /dev/stdin; test -p /dev/stdin && echo pipe`},
	{name: "output by path", script: `echo a > /dev/stdout; echo b > /dev/stderr; echo c > /proc/self/fd/1`},
	{name: "environment", script: `env | sort`, boxed: true},
	{name: "exported", script: `export -p; declare -f; alias; shopt; set -o; enable; hash; dirs; ulimit -a`, boxed: true},
	{name: "all variables but what no two runs share", boxed: true,
		script: `set | grep -Ev '^(RANDOM|SRANDOM|EPOCH[A-Z]+|SECONDS|BASH_ARGC|PIPESTATUS)='`},
	{name: "attributes", script: `declare -p | grep -Ev ' (RANDOM|SRANDOM|EPOCH[A-Z]+|SECONDS|BASH_ARGC|PIPESTATUS)(=|$)'`, boxed: true},
	{name: "SECONDS", script: `(( SECONDS < 5 )) && echo young`},
	{name: "REPLY is not set", script: `echo "${REPLY-unset} ${BASH_ENV-unset} ${go-unset}"`},
	{name: "a variable of our own name in children", script: `bash -c 'echo "${BASH_ENV-unset}"; exit 3'; echo $?`},
	{name: "umask", script: `umask; : > /tmp/f; stat -c %a /tmp/f`, boxed: true},
	{name: "directory", script: `pwd; echo "$PWD" "$OLDPWD"; ls -A`},
	{name: "limits", script: `ulimit -S -a; ulimit -H -a`, boxed: true},
	{name: "open descriptors", script: `for n in {0..254}; do [ -e /proc/$$/fd/$n ] && echo $n; done; exec ls /proc/self/fd`},
	{name: "processes", script: `for p in /proc/[0-9]*; do echo $p $(tr '\0' ' ' < $p/cmdline | cut -c1-60); done; echo $$ $PPID $BASHPID $SHLVL`, boxed: true},
	{name: "its status", boxed: true, script: "while read -r key value; do case $key in Name:|Umask:|Uid:|Gid:|Groups:|NSpid:|FDSize:|Threads:|Sig*|Shd*|Cap*|NoNewPrivs:|Seccomp:)\n" +
		"echo $key $value; esac; done < /proc/$$/status"},
	{name: "command line", script: `tr '\0' '|' < /proc/$$/cmdline`, boxed: true},
	{name: "its own directory", script: `ls -lA --time-style=+ /hook | tail -n +2; stat -c '%a %u %g %F %n' /hook /hook/*`, boxed: true},
	{name: "what lies in the root", script: `ls -A /; ls -A /tmp /dev /dev/shm /etc`, boxed: true},
	{name: "cannot change itself", script: `echo x >> "$0"; rm -f "$0"; mv "$0" /tmp; chmod 700 "$0"; touch /hook/x; mkdir /hook/d; echo $?`, boxed: true},
	{name: "runs itself", script: "if [ \"$1\" = again ]; then echo again; exit 6; fi\n\"$0\" again"},
	{name: "sources itself", script: `if [ -z "$n" ]; then n=1; source "$0"; else echo sourced; fi`},
	{name: "a program that is missing", script: "#!/bin/bash\nexec 2>&1; ./nothing; echo $?"},
	{name: "history and completion", script: `history; complete -p; bind -p 2>&1 | head -1; fc -l 2>&1`},
	{name: "a here document", script: "cat <<EOF\n$((1+1))\nEOF"},
	{name: "process substitution", script: `cat <(echo a) <(echo b); ls /dev/fd/ | wc -l`},
	{name: "caller at the top", script: `caller; echo $?; f() { caller 0; }; f`},
	{name: "a flood", script: `for i in {1..20000}; do echo "line $i"; done; echo end >&2`},
	{name: "no terminal", script: `test -t 0 || echo no0; test -t 1 || echo no1; tty`},
	{name: "ERR and DEBUG", script: "trap 'echo e $LINENO' ERR\nfalse\ntrap 'echo d $BASH_COMMAND' DEBUG\n:\n"},
}

var pythonBehaviours = []behaviour{
	{name: "says and ends", script: `import sys; print("out"); print("err", file=sys.stderr); sys.exit(3)`},
	{name: "__file__, __name__, argv", script: "import sys\nprint(__file__, __name__, sys.argv, sys.orig_argv[1:], __spec__, __doc__, __package__)"},
	{name: "names at the top", script: `print(sorted(globals()))`},
	{name: "sys.path", script: `import sys; print(sys.path, [p for p in sys.path_importer_cache if "hook" in p], len(sys.meta_path), len(sys.path_hooks))`, boxed: true},
	{name: "flags", script: `import sys; print(sys.flags, sys.warnoptions, sys._xoptions, sys.prefix, sys.executable, sys.dont_write_bytecode)`},
	{name: "no sitecustomize of ours", script: "try:\n  import sitecustomize\n  print(sitecustomize.__file__)\nexcept ImportError as e: print(e)", boxed: true},
	{name: "site", script: `import site; print(site.ENABLE_USER_SITE, site.PREFIXES, site.getsitepackages())`},
	{name: "a traceback", script: "def f():\n    return 1 / 0\n\nf()"},
	{name: "a traceback over modules", script: "import json\njson.loads('{')"},
	{name: "a chained traceback", script: "try:\n  int('x')\nexcept ValueError:\n  raise KeyError('y')"},
	{name: "a syntax error", script: "print('a')\nif:\n"},
	{name: "an error of encoding", script: "print('\\udc80')"},
	{name: "not UTF-8", script: "print('\xff')"},
	{name: "empty", script: ""},
	{name: "SystemExit with text", script: `raise SystemExit("stop")`},
	{name: "exit in a thread", script: "import threading, sys\nt = threading.Thread(target=sys.exit, args=(3,)); t.start(); t.join(); print('on')"},
	{name: "atexit", script: `import atexit; atexit.register(print, "bye"); print("hello")`},
	{name: "os._exit", script: `import os; print("lost"); os._exit(4)`},
	{name: "a signal", script: `import os, signal; os.kill(os.getpid(), signal.SIGTERM)`},
	{name: "killed", script: `import os, signal; os.kill(os.getpid(), signal.SIGKILL)`},
	{name: "handlers of signals", script: `import signal; print({int(s): str(signal.getsignal(s)) for s in signal.valid_signals() if int(s) < 32}); print(signal.pthread_sigmask(signal.SIG_BLOCK, []))`},
	{name: "abort", script: `import os; os.abort()`},
	{name: "fork", script: "import os, sys\npid = os.fork()\nif pid == 0:\n  print('child'); sys.exit(5)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"},
	{name: "exec", script: `import os; os.execv("/bin/echo", ["echo", "a"])`},
	{name: "subprocess", script: `import subprocess; print(subprocess.run(["bash", "-c", "cat; exit 3"], capture_output=True))`},
	{name: "a child of python", script: `import subprocess, sys; print(subprocess.run([sys.executable, "-c", "import os, sys; print(sys.path, sorted(os.environ))"], capture_output=True, text=True).stdout)`, boxed: true},
	{name: "a child left", script: `import subprocess; subprocess.Popen(["sleep", "600"]); print("early")`},
	{name: "multiprocessing", script: "import multiprocessing as m\nif __name__ == '__main__':\n  with m.get_context('spawn').Pool(1) as p: print(p.map(abs, [-1]))"},
	{name: "input", script: `import sys; print(repr(sys.stdin.read())); print(repr(sys.stdin.read()))`},
	{name: "input by lines", script: `print(input()); print(input())`},
	{name: "binary input", script: `import sys; print(len(sys.stdin.buffer.read()))`},
	{name: "streams", script: `import sys; print([(f.encoding, f.errors, f.line_buffering, f.isatty(), f.fileno(), f.name, f.mode) for f in (sys.stdin, sys.stdout, sys.stderr)])`},
	{name: "environment", script: `import os; print(sorted(os.environ.items())); print(sorted(os.environb)); import posix; print(sorted(posix.environ)); os.system("env | sort")`, boxed: true},
	{name: "descriptors", script: `import os; print([n for n in range(256) if os.path.exists(f"/proc/{os.getpid()}/fd/{n}")]); print(os.open("/dev/null", 0))`},
	{name: "umask, directory, ids", script: `import os; print(os.umask(0), os.getcwd(), os.getpid(), os.getppid(), os.getsid(0), os.getpgid(0), os.getuid(), os.getgroups())`, boxed: true},
	{name: "limits", script: `import resource as r; print([(n, r.getrlimit(getattr(r, n))) for n in sorted(dir(r)) if n.startswith("RLIMIT")])`, boxed: true},
	{name: "locale", script: `import locale, sys; print(locale.setlocale(locale.LC_ALL), locale.getpreferredencoding(), sys.getfilesystemencoding())`},
	{name: "warnings", script: "import warnings\nwarnings.warn('w')\nprint(len(warnings.filters))"},
	{name: "a module of its own", script: "import sys, os\nopen(os.environ['TMPDIR'] + '/abc_own.py', 'w').write('x = 1')\nsys.path.insert(0, os.environ['TMPDIR'])\nimport abc_own; print(abc_own.x, abc_own.__file__)"},
	{name: "its own directory", script: `import os; print(sorted(os.listdir("/hook")), oct(os.stat(__file__).st_mode), os.stat(__file__).st_uid, os.stat("/hook").st_uid)`, boxed: true},
	{name: "threads", script: `import threading, os; print(threading.active_count(), os.listdir(f"/proc/{os.getpid()}/task"))`, boxed: true},
	{name: "inspect and linecache", script: "import inspect\ndef f(): pass\nprint(inspect.getsource(f))"},
	{name: "no hash seed shared", script: `import sys; print(sys.flags.hash_randomization, hash("a") == hash("a"))`},
	{name: "re's cache", script: `import re; print(len(re._cache) < 100, re.sub("a", "b", "aa"))`},
	{name: "recursion", script: "def f(): f()\ntry: f()\nexcept RecursionError as e: print(e)"},
	{name: "a broken pipe", script: "import os, sys\nos.close(1)\nprint('x')"},
	{name: "SystemExit with None", script: `raise SystemExit(None)`},
	{name: "SystemExit with 256", script: `raise SystemExit(256)`},
	{name: "SystemExit with -1", script: `raise SystemExit(-1)`},
	{name: "SystemExit with an object", script: `raise SystemExit((2, "x"))`},
	{name: "exit in atexit", script: "import atexit, sys\natexit.register(sys.exit, 2)\nprint('on')"},
	{name: "os._exit in atexit", script: "import atexit, os\natexit.register(os._exit, 2)\nprint('lost')"},
	{name: "an error in atexit", script: "import atexit\natexit.register(int, 'x')"},
	{name: "KeyboardInterrupt", script: `import os, signal; os.kill(os.getpid(), signal.SIGINT)`},
	{name: "a handler of its own", script: "import os, signal, sys\nsignal.signal(signal.SIGINT, lambda *a: sys.exit(7))\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nos.kill(os.getpid(), signal.SIGINT)"},
	{name: "an alarm", script: "import signal\nsignal.alarm(1)\nsignal.pause()"},
	{name: "a mask and a stop of itself", script: "import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})\nos.kill(os.getpid(), signal.SIGTERM)\nprint(signal.sigpending())"},
	{name: "kills its parent", boxed: true, script: "import os, signal\nfor s in sorted(signal.valid_signals()): os.kill(os.getppid(), s)\nprint('alive')"},
	{name: "kills everybody", boxed: true, script: "import os, signal, time\nif os.fork() == 0: time.sleep(600)\ntry: print(os.kill(-1, signal.SIGTERM))\nexcept OSError as e: print(e)\nprint(os.wait()[1])"},
	{name: "kills everybody for good", boxed: true, script: "import os\nprint('a', flush=True)\nos.kill(-1, 9)\nprint(os.listdir('/tmp'))"},
	{name: "a session of its own", script: "import os, sys, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: time.sleep(600)\n  os._exit(0)\nprint(os.wait()[1])"},
	{name: "an orphan's parent", boxed: true, script: "import os, time\nr, w = os.pipe()\nif os.fork() == 0:\n  if os.fork() == 0:\n    while os.getppid() != 1: time.sleep(.01)\n    os.write(w, b'1')\n  os._exit(0)\nos.wait(); print(os.read(r, 9))"},
	{name: "no descriptor left", script: "import os\nos.closerange(0, 256)"},
	{name: "blocking streams", script: "import os; print([os.get_blocking(n) for n in range(3)], open('/dev/stdin').read(), open('/dev/stderr', 'w').write('e'))"},
	{name: "files of its own in /tmp", boxed: true, script: "import os\nfor d in '/tmp', '/dev/shm':\n  print(sorted(os.listdir(d)), oct(os.stat(d).st_mode), os.stat(d).st_uid, os.statvfs(d).f_blocks)\n  open(d + '/mark', 'w').write('x')\n  os.mkdir(d + '/sub', 0)"},
	{name: "a full /tmp", boxed: true, script: "import os\ntry:\n  for d in '/dev/shm', '/tmp':\n    with open(d + '/f', 'wb') as f:\n      try:\n        while True: f.write(bytes(1 << 20))\n      except OSError as e: print(e)\nexcept OSError as e: print(e)\nprint(os.path.getsize('/dev/shm/f'), os.path.getsize('/tmp/f'))"},
	{name: "processes", boxed: true, script: `import os; print([p for p in os.listdir("/proc") if p.isdigit()], os.listdir("/proc/self/task"), open("/proc/self/comm").read(), open("/proc/self/cmdline").read())`},
	{name: "its status", boxed: true, script: "for line in open('/proc/self/status'):\n  if line.split(':')[0] in 'Name Umask Uid Gid Groups NSpid NSsid NSpgid FDSize Threads SigQ SigPnd ShdPnd SigBlk SigIgn SigCgt CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp'.split(): print(line, end='')"},
	{name: "what it may not", boxed: true, script: "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nfor call, *args in (('unshare', 0x10000000), ('unshare', 0x20000000), ('mount', b'x', b'/tmp', b'tmpfs', 0, 0), ('umount', b'/proc'), ('sethostname', b'x', 1), ('ptrace', 16, 1, 0, 0), ('prctl', 23, 21, 0, 0, 0), ('setuid', 0), ('socket', 1, 1, 0)):\n  print(call, getattr(libc, call)(*args), ctypes.get_errno())"},
	{name: "its parent's memory", boxed: true, script: "for f, how in (('/proc/1/mem', 'r+b'), ('/proc/1/oom_score_adj', 'w'), ('/proc/self/oom_score_adj', 'w')):\n  try: open(f, how); print('open')\n  except OSError as e: print(e.strerror in ('Permission denied', 'Read-only file system'))"},
	{name: "loopback", boxed: true, script: "import socket, threading\ns = socket.create_server(('127.0.0.1', 4711))\nthreading.Thread(target=lambda: s.accept()[0].sendall(b'hi')).start()\nprint(socket.create_connection(('127.0.0.1', 4711)).recv(9), socket.if_nameindex())\ntry: socket.create_connection(('192.0.2.1', 80), 1)\nexcept OSError as e: print(e)"},
	{name: "modules that a server needs", script: `import ctypes, socket, fcntl, struct, signal; print(ctypes.CDLL(None).abs(-3), socket.AF_INET, struct.pack("h", 1), ctypes.sizeof(ctypes.c_long))`},
	{name: "priority", script: `import os; print(os.nice(0), os.sched_getaffinity(0), os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))`},
	{name: "oom", boxed: true, script: `print(open("/proc/self/oom_score_adj").read())`},
	{name: "ipc", boxed: true, script: "import ctypes\nlibc = ctypes.CDLL(None)\nprint(libc.semget(1, 1, 0), libc.msgget(1, 0), libc.semget(1, 1, 0o1600), libc.msgget(1, 0o1600))"},
	{name: "processor time", script: `import time, os; print(time.process_time() < 1, sum(os.times()[2:4]))`},
}

// trace is everything that a caller sees of a run.
type trace struct {
	Stdout, Stderr string
	Code           int
	Signal         string
	Failure        *gate.Failure
}

func traced(e ending, failure *gate.Failure) trace {
	tr := trace{Stdout: string(e.stdout.kept), Stderr: string(e.stderr.kept), Code: e.code, Signal: e.signal, Failure: failure}
	if tr.Signal != "" {
		tr.Code = 0 // bubblewrap has both
	}
	return tr
}

// TestWarmIsCold compares runs in sandboxes that were started ahead with runs in
// others, and both with none, byte for byte. What does differ is in
// docs/writing-hooks.md.
func TestWarmIsCold(t *testing.T) {
	for _, language := range []struct {
		name, first string
		behaviours  []behaviour
	}{{"bash", "", bashBehaviours}, {"python3", python, pythonBehaviours}} {
		t.Run(language.name, func(t *testing.T) {
			bare, cold, warm := newRunner(t, Options{Mode: Process}), newRunner(t, Options{}), warmRunner(t, Options{})
			if language.first != "" {
				needsPython(t, cold)
			}
			for _, tt := range language.behaviours {
				t.Run(tt.name, func(t *testing.T) {
					j := planned(t, cold, language.first+tt.script)
					want := runTraced(t, cold, j)
					awaitWarm(t, warm, j)
					before := warm.Use().Warm
					got := runTraced(t, warm, j)
					if warm.Use().Warm != before+1 {
						t.Error("the sandbox was not started ahead")
					}
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("cold -, warm +\n%s", d)
					}
					if tt.boxed {
						return
					}
					if d := cmp.Diff(bareAs(runTraced(t, bare, j)), want); d != "" {
						t.Errorf("bare -, cold +\n%s", d)
					}
				})
			}
		})
	}
}

func planned(t *testing.T, r *Runner, script string, change ...func(*gate.Input)) job {
	t.Helper()
	change = append([]func(*gate.Input){withContext([]byte("a first line\na second, without an end"))}, change...)
	j, failure := r.plan(input(script, change...))
	if failure != nil {
		t.Fatal(failure)
	}
	return j
}

func runTraced(t *testing.T, r *Runner, j job) trace {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	e, failure := run(ctx, r.launch, j)
	if e.timedOut {
		t.Error("took too long")
	}
	return traced(e, failure)
}

// awaitWarm runs the job's like until a sandbox waits for the next.
func awaitWarm(t *testing.T, r *Runner, j job) {
	t.Helper()
	if j.script != "" {
		j.script = ":"
		if strings.HasSuffix(j.fileName, ".py") {
			j.script = "pass"
		}
	}
	awaitWaiting(t, r, j)
}

// awaitWaiting runs the job itself until a sandbox waits for the next.
func awaitWaiting(t *testing.T, r *Runner, j job) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if n, _ := r.pool.waits(); n > 0 {
			return
		}
		p := r.pool.(*pool)
		p.mu.Lock()
		wanted := 0
		for _, s := range p.shapes {
			wanted += s.wants(time.Now())
		}
		p.mu.Unlock()
		if wanted == 0 {
			runTraced(t, r, j)
		}
		r.pool.answered()
	}
	t.Fatal("no sandbox waits")
}

// bareAs is what a run without a sandbox shows, its own directory taken for the
// sandbox's.
func bareAs(tr trace) trace {
	own := regexp.MustCompile(`/[^\s:'"]*/stopgate-scratch-[0-9]+`)
	for _, text := range []*string{&tr.Stdout, &tr.Stderr} {
		*text = own.ReplaceAllString(*text, "/hook")
		*text = strings.ReplaceAll(*text, "/hook/tmp", "/tmp")
	}
	return tr
}

// TestWarmLinesAreCold: a shell line is part of what its sandbox was started
// with, and only the same line gets it.
func TestWarmLinesAreCold(t *testing.T) {
	cold, warm := newRunner(t, Options{}), warmRunner(t, Options{})
	for _, line := range []string{
		`cat; echo "$0" "$@" $- $$ "$_" "${PIPESTATUS[@]}"; exit 3`,
		`set | grep -Ev '^(RANDOM|SRANDOM|EPOCH[A-Z]+)='; declare -p | grep -Ev ' (RANDOM|SRANDOM|EPOCH[A-Z]+)='; tr '\0' '|' < /proc/$$/environ`,
		`exit 2; return`,
	} {
		j := planned(t, cold, line, inline)
		want := runTraced(t, cold, j)
		awaitWarm(t, warm, j)
		before := warm.Use().Warm
		if d := cmp.Diff(want, runTraced(t, warm, j)); d != "" || warm.Use().Warm != before+1 {
			t.Errorf("%s: %d were warm, cold -, warm +\n%s", line, warm.Use().Warm-before, d)
		}
		forgetAll(warm)
	}
}

// TestNoInterpreterWaits where our program would not be what it runs first, or
// not all.
func TestNoInterpreterWaits(t *testing.T) {
	line, bash, py := job{inline: "exit 0", fileName: "script.sh"}, job{script: ":", fileName: "script.sh"}, job{script: "pass", fileName: "script.py"}
	for _, tt := range []struct {
		name    string
		j       job
		environ []string
		want    bool
	}{
		{"bash", bash, []string{"PATH=/bin", "PYTHONPATH=/x"}, true},
		{"bash with a program of its own", bash, []string{"BASH_ENV=/x"}, false},
		{"bash with options", bash, []string{"SHELLOPTS=xtrace"}, false},
		{"bash with a function", bash, []string{"BASH_FUNC_read%%=() { :; }"}, false},
		{"a line", line, nil, false},
		{"python", py, []string{"PATH=/bin", "BASH_ENV=/x"}, true},
		{"python with modules of its own", py, []string{"PYTHONPATH=/x"}, false},
		{"python without a site", py, []string{"PYTHONNOUSERSITE=1"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, ok := tt.j.early(tt.environ, false); ok != tt.want {
				t.Errorf("waits: %t", ok)
			}
		})
	}
}

// TestWarmImportsOfAProject: a project's modules come before Python's own where
// a script wants them to, whatever a Python that waits would have loaded.
func TestWarmImportsOfAProject(t *testing.T) {
	dir := openDir(t)
	if err := os.WriteFile(filepath.Join(dir, "types.py"), []byte("mine = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	opt := Options{Workspace: Workspace{Access: ReadOnly, Roots: []string{dir}}}
	cold, warm := newRunner(t, opt), warmRunner(t, opt)
	needsPython(t, cold)
	j := planned(t, cold, python+"import os, sys\nsys.path.insert(0, os.getcwd())\nimport types\nprint(types.mine, sorted(sys.modules))", in(dir))
	want := runTraced(t, cold, j)
	awaitWarm(t, warm, j)
	before := warm.Use().Warm
	if d := cmp.Diff(want, runTraced(t, warm, j)); d != "" || warm.Use().Warm != before+1 || want.Code != 0 {
		t.Errorf("%d were warm, cold -, warm +\n%s", warm.Use().Warm-before, d)
	}
}

// TestWarmDiffersAsDocumented: the exceptions of docs/writing-hooks.md, each
// held here so that none of them grows or outlives its reason.
func TestWarmDiffersAsDocumented(t *testing.T) {
	cold, warm := newRunner(t, Options{}), warmRunner(t, Options{})
	needsPython(t, cold)
	for _, tt := range []struct{ name, script, cold, warm string }{
		{"bash, before the first command", `echo "${PIPESTATUS[@]-unset}"`, "unset\n", "0\n"},
		{"bash, arguments of functions", `set | grep ^BASH_ARGC=`, "BASH_ARGC=()\n", "BASH_ARGC=([0]=\"0\")\n"},
		{"bash, SECONDS shown unread", `declare -p | grep ' SECONDS'`, "declare -- SECONDS\n", "declare -- SECONDS=\"0\"\n"},
		{"bash's first environment", `tr '\0' '\n' < /proc/$$/environ | grep BASH_ENV`, "", "BASH_ENV=/hook/ahead.sh\n"},
		{"python's first environment", python + `print("PYTHONPATH=/hook" in open("/proc/self/environ").read().split("\0"))`, "False\n", "True\n"},
		{"python's modules", python + `import sys; print("json" in sys.modules, "re" in sys.modules)`, "False False\n", "True True\n"},
		{"a mount", `grep -c ' /hook ' /proc/self/mounts`, "0\n", "1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := planned(t, cold, tt.script)
			if got := runTraced(t, cold, j).Stdout; got != tt.cold {
				t.Errorf("cold: %q", got)
			}
			forgetAll(warm)
			awaitWarm(t, warm, j)
			if got := runTraced(t, warm, j).Stdout; got != tt.warm {
				t.Errorf("warm: %q", got)
			}
		})
	}
}

// forgetAll ends what waits, and counts no job of before.
func forgetAll(r *Runner) {
	p := r.pool.(*pool)
	p.mu.Lock()
	var all []func()
	for id, s := range p.shapes {
		for _, w := range s.waiting {
			all = append(all, w.end)
		}
		delete(p.shapes, id)
	}
	p.mu.Unlock()
	for _, end := range all {
		end()
	}
}
