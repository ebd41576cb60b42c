package shell

import (
	"slices"
	"strings"
)

// bareOptions are those of a program that take no next word.
type bareOptions struct {
	letters string
	names   string // each with a blank before it and behind it
	hanging string // those letters whose value hangs on them if they have one
	// joined: whatever else begins with two dashes has its value in the same word.
	joined bool
}

const (
	setarchNames = " 32bit 3gb 4gb addr-compat-layout addr-no-randomize fdpic-funcptrs help list mmap-page-zero read-implies-exec short-inode show sticky-timeouts uname-2.6 verbose version whole-seconds "
	setarchShort = "3BFILRSTXZvhV"
)

// bare are the other options of those in [starters] that are not loose. A program is
// opaque with one that is in neither, since it may take the next word.
var bare = map[string]bareOptions{
	"env":              {letters: "i0v", names: " block-signal debug default-signal help ignore-environment ignore-signal list-signal-handling null version "},
	"command":          {letters: "pvV"},
	"exec":             {letters: "cl"},
	"sudo":             {letters: "ABbEeHhiKklnPSsVvN", names: " askpass background bell edit help list login no-update non-interactive preserve-env preserve-groups remove-timestamp reset-timestamp set-home shell stdin validate version "},
	"doas":             {letters: "Lns"},
	"run0":             {names: " help no-ask-password pipe pty slice-inherit version via-shell "},
	"pkexec":           {names: " disable-internal-agent help keep-cwd version "},
	"setpriv":          {letters: "dhV", names: " clear-groups dump help init-groups keep-groups list-caps nnp no-new-privs reset-env version "},
	"runuser":          {letters: "flmPphTV", names: " fast help login no-pty preserve-environment pty version "},
	"capsh":            {joined: true},
	"unshare":          {letters: "mnpuiUCTfrchV", names: " cgroup fork forward-signals help ipc keep-caps kill-child map-auto map-current-user map-root-user mount mount-binfmt mount-proc net pid time user uts version "},
	"nsenter":          {letters: "amuinpUCTrwFZeckhV", names: " all cgroup env follow-context help ipc join-cgroup keep-caps mount net no-fork pid preserve-credentials root time user user-parent uts version wd "},
	"chroot":           {names: " help skip-chdir version "},
	"fakeroot":         {letters: "uhv", names: " help unknown-is-real version "},
	"fakechroot":       {letters: "shv", names: " help use-system-libs version "},
	"firejail":         {letters: "h", joined: true},
	"systemd-run":      {letters: "rtTPqGdSh", names: " collect expand-environment help ignore-failure no-ask-password no-block pipe pty pty-late quiet remain-after-exit same-dir scope send-sighup shell slice-inherit system user version wait "},
	"systemd-inhibit":  {letters: "h", names: " help list no-ask-password no-legend no-pager version "},
	"systemd-cat":      {letters: "h", names: " help version "},
	"dbus-run-session": {names: " help version "},
	"ssh-agent":        {letters: "cDdksxX"},
	"xvfb-run":         {letters: "adhl", names: " auto-display auto-servernum help listen-tcp "},
	"faketime":         {letters: "fmhv", names: " exclude-monotonic help version "},
	"proxychains":      {letters: "q"}, "proxychains4": {letters: "q"},
	"torsocks": {letters: "diqh", names: " debug help isolate quiet shell version "},
	"chronic":  {letters: "ve"}, "ifne": {letters: "n"},
	"setarch": {letters: setarchShort, names: setarchNames}, "linux32": {letters: setarchShort, names: setarchNames}, "linux64": {letters: setarchShort, names: setarchNames}, "i386": {letters: setarchShort, names: setarchNames},
	"i686": {letters: setarchShort, names: setarchNames}, "x86_64": {letters: setarchShort, names: setarchNames}, "aarch64": {letters: setarchShort, names: setarchNames}, "uname26": {letters: setarchShort, names: setarchNames},
	"nohup":      {names: " help version "},
	"setsid":     {letters: "cfwhV", names: " ctty fork help version wait "},
	"time":       {letters: "apqvV", names: " append help portability quiet verbose version "},
	"timeout":    {letters: "fpv", names: " foreground help preserve-status verbose version "},
	"nice":       {letters: "0123456789", names: " help version "},
	"ionice":     {letters: "thV", names: " help ignore version "},
	"chrt":       {letters: "abdefimorRphvV", names: " all-tasks batch deadline ext fifo help idle max other pid reset-on-fork rr verbose version "},
	"taskset":    {letters: "acphV", names: " all-tasks cpu-list help pid version "},
	"numactl":    {letters: "laHs", names: " all balancing cpu-compress hardware huge localalloc show strict "},
	"prlimit":    {letters: "cdefilmnqrstuvxyhV", names: " as core cpu data fsize help locks memlock msgqueue nice nofile noheadings nproc raw rss rtprio rttime sigpending stack verbose version "},
	"cpulimit":   {letters: "bfhikmqvz", names: " background foreground help include-children kill lazy monitor-forks verbose "},
	"cgexec":     {letters: "h", names: " sticky "},
	"stdbuf":     {names: " help version "},
	"unbuffer":   {letters: "p"},
	"script":     {letters: "aefqthV", hanging: "t", names: " append flush force help quiet return timing version "},
	"caffeinate": {letters: "dimsu"},
	"flock":      {letters: "sxeunoFcvhV", names: " close command exclusive fcntl help nb no-fork nonblock nonblocking shared unlock verbose version "},
	"strace": {letters: "cCdDfFhiknqrtTvVwxyYzZA", names: " absolute-timestamps daemonize daemonized debug decode-fds decode-pids failed-only failing-only follow-forks help instruction-pointer no-abbrev output-append-mode output-separately " +
		"quiet relative-timestamps seccomp-bpf stack-traces strings-in-hex successful-only summary summary-only summary-wall-clock syscall-number syscall-times tips version "},
	"ltrace":    {letters: "bcCfhiLrSTtVk", names: " demangle help no-signals version "},
	"valgrind":  {letters: "dhqv", joined: true},
	"xargs":     {letters: "0eiloprtx", hanging: "eil", names: " eof exit help interactive max-lines no-run-if-empty null open-tty replace show-limits verbose version "},
	"choom":     {letters: "hV", names: " help version "},
	"logsave":   {letters: "asv"},
	"uclampset": {letters: "asRvhV", names: " all-tasks help reset-on-fork system verbose version "},
}

// read takes a word of options: its letters, whether it takes the next word, and
// whether that is not known. short and long are those that do.
func (b bareOptions) read(text, short string, long []string) (letters string, takes, unsure bool) {
	if option, is := strings.CutPrefix(text, "--"); is {
		takes, unsure = b.name(option, long)
		return "", takes, unsure
	}
	for i := 1; i < len(text); i++ {
		switch {
		case strings.IndexByte(short, text[i]) >= 0:
			return text[1 : i+1], i+1 == len(text), unsure
		case strings.IndexByte(b.letters, text[i]) < 0:
			unsure = true
		case strings.IndexByte(b.hanging, text[i]) >= 0:
			return text[1 : i+1], false, unsure
		}
	}
	return text[1:], false, unsure
}

// name is whether an option takes the next word. An exact name is that option, and a
// beginning is any of those that have it.
func (b bareOptions) name(option string, long []string) (takes, unsure bool) {
	if strings.Contains(option, "=") || strings.Contains(b.names, " "+option+" ") {
		return false, false
	}
	if slices.Contains(long, option) {
		return true, false
	}
	takes = slices.ContainsFunc(long, func(name string) bool { return strings.HasPrefix(name, option) })
	other := strings.Contains(b.names, " "+option)
	number := strings.Trim(option, "0123456789") == "" && strings.Contains(b.letters, "0123456789") // nice --5
	return takes, takes == other && !b.joined && !number
}
