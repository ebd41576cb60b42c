package shell

// starter is a program that starts another, which it is given as words.
type starter struct {
	short     string   // options of one letter that take the next word
	long      []string // … and of a name
	operands  int      // words between the options and the other program
	variables bool     // NAME=value may stand there too
	names     string   // options that only say something about it
	shell     bool     // without words it starts a shell
	// loose: the other program may begin at any word, and a word with blanks be a
	// text that a shell reads. So with those that have verbs, each with its own
	// options, or more of these than can be kept here.
	loose bool
}

// starters are those that are known. [gate] has a list of its own, with what
// Claude Code says of them: its rules ask less, and about other programs.
var starters = map[string]starter{
	"env":     {short: "uCSa", long: []string{"unset", "chdir", "split-string", "argv0"}, variables: true},
	"command": {names: "vV"},
	"builtin": {},
	"exec":    {short: "a"},
	"noglob":  {}, "nocorrect": {}, "repeat": {operands: 1}, "sched": {operands: 1}, // of zsh
	"ld.so": {loose: true}, "ld-linux.so.2": {loose: true}, "ld-linux-x86-64.so.2": {loose: true}, "ld-linux-aarch64.so.1": {loose: true}, "ld-musl-x86_64.so.1": {loose: true}, "ld-musl-aarch64.so.1": {loose: true},

	// Another user, or other rights.
	"sudo":    {short: "acughpCDrtTUR", long: []string{"auth-type", "login-class", "user", "group", "host", "prompt", "close-from", "chdir", "role", "type", "command-timeout", "other-user", "chroot"}, variables: true, names: "lv", shell: true},
	"doas":    {short: "auC", shell: true},
	"run0":    {short: "ugDM", long: []string{"area", "lightweight", "shell-prompt-prefix", "unit", "property", "description", "slice", "user", "group", "nice", "chdir", "setenv", "background", "machine"}, shell: true},
	"pkexec":  {long: []string{"user"}, shell: true},
	"gosu":    {operands: 1},
	"su-exec": {operands: 1},
	"setpriv": {long: []string{"ruid", "euid", "reuid", "rgid", "egid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set", "securebits", "pdeathsig", "selinux-label", "apparmor-profile", "landlock-access", "landlock-rule", "seccomp-filter", "ptracer"}},
	"runuser": {short: "ugGcsw", long: []string{"user", "group", "supp-group", "command", "session-command", "shell", "whitelist-environment"}, shell: true},
	"capsh":   {},

	// Another environment on the same machine.
	"unshare":      {short: "RwSGl", long: []string{"root", "wd", "setuid", "setgid", "map-user", "map-group", "map-users", "map-groups", "propagation", "setgroups", "monotonic", "boottime", "load-interp"}, shell: true},
	"nsenter":      {short: "tSGNW", long: []string{"target", "setuid", "setgid", "net-socket", "wdns"}, shell: true},
	"chroot":       {long: []string{"groups", "userspec"}, operands: 1, shell: true},
	"fakeroot":     {short: "lsib", long: []string{"lib", "faked", "fd-base"}, shell: true},
	"fakechroot":   {short: "ldcbe", long: []string{"lib", "elfloader", "bindir", "config-dir", "environment"}, shell: true},
	"bwrap":        {loose: true},
	"sandbox-exec": {short: "fnpD"}, "arch": {loose: true}, "tini": {loose: true}, "dumb-init": {loose: true}, "catchsegv": {},
	"aws-vault": {operands: 1, loose: true}, "op": {operands: 1, loose: true}, "doppler": {operands: 1, loose: true}, "dotenv": {loose: true},
	"firejail":         {shell: true},
	"proot":            {loose: true},
	"systemd-run":      {short: "HMupEC", long: []string{"host", "machine", "unit", "property", "description", "slice", "service-type", "uid", "gid", "nice", "working-directory", "setenv", "on-active", "on-boot", "on-startup", "on-unit-active", "on-unit-inactive", "on-calendar", "timer-property", "path-property", "socket-property", "background", "job-mode"}, shell: true},
	"systemd-inhibit":  {long: []string{"what", "who", "why", "mode"}},
	"systemd-cat":      {short: "tp", long: []string{"identifier", "priority", "stderr-priority", "namespace", "level-prefix"}},
	"dbus-run-session": {long: []string{"config-file", "dbus-daemon"}},
	"ssh-agent":        {short: "aEtPO"},
	"xvfb-run":         {short: "efnpsw", long: []string{"error-file", "auth-file", "server-num", "xauth-protocol", "server-args", "wait"}},
	"faketime":         {short: "p", long: []string{"pid", "date-prog"}, operands: 1},
	"proxychains":      {short: "f"}, "proxychains4": {short: "f"}, "torsocks": {short: "uapP", long: []string{"user", "pass", "address", "port"}}, "torify": {}, "tsocks": {},
	"eatmydata": {}, "nocache": {}, "chronic": {}, "ifne": {},
	"setarch": {}, "linux32": {}, "linux64": {}, "i386": {}, "i686": {}, "x86_64": {}, "aarch64": {}, "uname26": {}, // which stand behind setarch too

	// A limit, a terminal, a time.
	"nohup":      {},
	"setsid":     {},
	"time":       {short: "fo", long: []string{"format", "output"}},
	"timeout":    {short: "ks", long: []string{"kill-after", "signal"}, operands: 1},
	"nice":       {short: "n", long: []string{"adjustment"}},
	"ionice":     {short: "cnpPu", long: []string{"class", "classdata", "pid", "pgid", "uid"}},
	"chrt":       {short: "TPD", long: []string{"sched-runtime", "sched-period", "sched-deadline"}, operands: 1},
	"taskset":    {operands: 1},
	"numactl":    {short: "imNCpPwfSoLMcn", long: []string{"interleave", "weighted-interleave", "membind", "cpunodebind", "physcpubind", "preferred", "preferred-many", "file", "shm", "offset", "length", "shmmode"}},
	"prlimit":    {short: "po", long: []string{"pid", "output"}},
	"cpulimit":   {short: "lpPec", long: []string{"limit", "pid", "path", "exe", "cpu"}},
	"cgexec":     {short: "g"},
	"stdbuf":     {short: "ioe", long: []string{"input", "output", "error"}},
	"unbuffer":   {},
	"script":     {short: "cEIOBmoTF", long: []string{"command", "echo", "log-in", "log-out", "log-io", "logging-format", "output-limit", "log-timing"}, operands: 1, shell: true},
	"rlwrap":     {loose: true},
	"caffeinate": {short: "tw"},
	"choom":      {short: "np", long: []string{"adjust", "pid"}},
	"logsave":    {operands: 1},
	"runcon":     {loose: true},
	"uclampset":  {short: "mMp", long: []string{"pid"}},
	"genv":       {loose: true}, "gnice": {loose: true}, "gnohup": {loose: true}, "gstdbuf": {loose: true}, "gtime": {loose: true}, "gtimeout": {loose: true}, "gxargs": {loose: true}, // coreutils of macOS
	"chpst": {loose: true}, "daemon": {loose: true}, "daemonize": {loose: true}, "envdir": {loose: true}, "nsjail": {loose: true}, "setuidgid": {loose: true}, "softlimit": {loose: true},
	"mpiexec": {loose: true}, "mpirun": {loose: true}, "salloc": {loose: true}, "scl": {operands: 1, loose: true}, "sem": {loose: true}, "env_parallel": {loose: true}, "srun": {loose: true},
	"flock": {short: "wE", long: []string{"timeout", "wait", "conflict-exit-code"}, operands: 1},

	// A look inside.
	"strace":            {short: "abeEIoOpPsSuUX", long: []string{"abbrev", "const-print-style", "kvm", "raw", "verbose", "argv0", "attach", "columns", "detach-on", "env", "fault", "inject", "interruptible", "output", "read", "signal", "status", "string-limit", "summary-columns", "summary-sort-by", "summary-syscall-overhead", "syscall-limit", "trace", "trace-path", "user", "write"}},
	"ltrace":            {short: "aAeDFlnopsuwxX", long: []string{"align", "config", "debug", "indent", "library", "output", "where"}},
	"valgrind":          {},
	"dpkg-architecture": {loose: true}, "dtruss": {loose: true}, "ktrace": {loose: true}, "heaptrack": {loose: true},
	"perf": {operands: 1, loose: true},
	"gdb":  {loose: true}, "lldb": {loose: true}, "rr": {operands: 1, loose: true},

	// More than one.
	"busybox": {}, "toybox": {},
	"xargs":    {short: "IndPLsaEJRS", long: []string{"max-args", "delimiter", "max-procs", "max-chars", "arg-file", "process-slot-var"}},
	"parallel": {loose: true}, "entr": {loose: true}, "watchexec": {loose: true}, "nodemon": {loose: true}, "hyperfine": {loose: true},
	"fd": {loose: true}, "fdfind": {loose: true},

	// Containers, machines, projects.
	"docker": {operands: 1, loose: true}, "podman": {operands: 1, loose: true}, "nerdctl": {operands: 1, loose: true}, "kubectl": {operands: 1, loose: true}, "oc": {operands: 1, loose: true},
	"lxc": {operands: 1, loose: true}, "incus": {operands: 1, loose: true}, "machinectl": {operands: 1, loose: true}, "systemd-nspawn": {loose: true}, "distrobox": {operands: 1, loose: true},
	"flatpak": {operands: 1, loose: true}, "wsl": {loose: true}, "cmd": {loose: true}, "mosh": {loose: true}, "start-stop-daemon": {loose: true},
	"tmux": {operands: 1, loose: true}, "screen": {loose: true}, "xterm": {loose: true},
	"npx": {loose: true}, "npm": {operands: 1, loose: true}, "pnpm": {operands: 1, loose: true}, "yarn": {operands: 1, loose: true}, "uv": {operands: 1, loose: true},
	"poetry": {operands: 1, loose: true}, "pipenv": {operands: 1, loose: true}, "conda": {operands: 1, loose: true}, "bundle": {operands: 1, loose: true},
	"nix": {operands: 1, loose: true}, "nix-shell": {loose: true}, "mise": {operands: 1, loose: true}, "asdf": {operands: 1, loose: true}, "direnv": {operands: 1, loose: true},
}
