package commandhooks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"stopgate/gate"
	"stopgate/internal/scratch"
)

// enterBubblewrap looks for bwrap and believes in the sandbox only after a
// script has looked round in it.
func (r *Runner) enterBubblewrap(ctx context.Context) {
	usable := func(file string) bool {
		user := sandboxUser()
		return user == nil || permits(file, user, 0o1)
	}
	r.tools = findTools(ctx, r.opt, usable)
	found := candidates(filepath.SplitList(systemPath+":"+r.opt.Path), "bwrap")
	if len(found) == 0 {
		r.status.Reason = "bubblewrap (bwrap) was not found: install it (Debian, Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap; Alpine: apk add bubblewrap)"
		return
	}
	b, err := newBubblewrap(r.opt, r.tools, found[0])
	if err != nil {
		r.status.Reason = err.Error()
		return
	}
	if r.root != nil {
		r.root.leave(b.mounted)
		b.root = r.root
	}
	if r.tools.bash.file == "" {
		r.status.Reason = "bash was not found where the sandbox's user can run it: install bash"
		return
	}
	if err := b.selfTest(ctx); err != nil {
		r.status.Reason = err.Error()
		return
	}
	r.start, r.status.Working = b.start, true
	if r.opt.Pool > 0 {
		r.keepAhead(b)
	}
}

// selfTestTime is ample for one bash in a sandbox on a busy machine.
const selfTestTime = 20 * time.Second

// selfTest runs a script in the sandbox that tries what must not work.
func (b *bubblewrap) selfTest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, selfTestTime)
	defer cancel()
	canary, err := b.canary()
	if err != nil {
		return fmt.Errorf("sandbox self-test: %w", err)
	}
	defer canary.Remove()
	port := 0
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		defer l.Close()
		port = l.Addr().(*net.TCPAddr).Port
	}
	script := fmt.Sprintf("network=%t port=%d processes=%d files=%d canary=%q\n", b.opt.Network, port,
		b.opt.Limits.Processes, b.opt.Limits.OpenFiles, canary.Path()) + lookRound
	e, failure := run(ctx, b.start, job{interpreter: b.tools.bash, script: script, fileName: "script.sh"})
	switch {
	case failure != nil:
		return fmt.Errorf("sandbox self-test: %s%s", failure.Message, hint(failure.Message))
	case e.timedOut:
		return fmt.Errorf("sandbox self-test: no answer within %s", selfTestTime)
	case e.code == 9:
		return fmt.Errorf("sandbox self-test: the sandbox is not tight: %s", strings.TrimSpace(clean(e.stdout.kept)))
	case e.code != 0 || e.signal != "":
		return fmt.Errorf("sandbox self-test: bash ended with %d %s%s", e.code, e.signal, e.lastWords())
	}
	return nil
}

// canary makes a directory of the host that no sandbox may show: not in a
// temporary directory below the system's, which every sandbox has.
func (b *bubblewrap) canary() (*scratch.Dir, error) {
	var errs []error
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil && slices.ContainsFunc(b.mounted, func(m mounted) bool { return within(real, m.source) }) {
			err = fmt.Errorf("the temporary directory %q lies in the system", dir)
		}
		if err == nil {
			var made *scratch.Dir
			if made, err = scratch.Make(real); err == nil {
				return made, nil
			}
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// lookRound exits with 9 and says what it could do that it should not. It uses
// nothing but bash.
const lookRound = `
leak() { echo "$1"; exit 9; }
while read -r key value rest; do
	case $key in
	Seccomp:) seccomp=$value ;;
	NoNewPrivs:) nonewprivs=$value ;;
	CapEff:) caps=$value ;;
	esac
done < /proc/self/status
[ "$seccomp" = 2 ] || leak "no seccomp filter"
[ "$nonewprivs" = 1 ] || leak "new privileges can be gained"
[ "$caps" = 0000000000000000 ] || leak "capabilities are left ($caps)"
for dir in / /usr /etc /dev; do
	{ : > "$dir/stopgate-self-test"; } 2> /dev/null && leak "$dir can be written"
done
{ : > /tmp/stopgate-self-test; } 2> /dev/null || leak "/tmp cannot be written"
for process in /proc/[0-9]*; do
	[ "${process#/proc/}" -lt 10 ] || leak "foreign processes can be seen"
done
{ echo 0 > /proc/self/oom_score_adj; } 2> /dev/null && leak "/proc can be written"
[ -e "$canary" ] && leak "the host's files can be seen"
[ "$(ulimit -u)" = "$processes" ] || [ "$(ulimit -u)" -lt "$processes" ] || leak "processes are not limited"
[ "$(ulimit -n)" = "$files" ] || [ "$(ulimit -n)" -lt "$files" ] || leak "open files are not limited"
[ "$(ulimit -c)" = 0 ] || leak "core dumps are on"
if [ "$network" = false ]; then
	while read -r name rest; do
		case $name in Inter-* | face* | lo:) ;; *) leak "network interface $name" ;; esac
	done < /proc/net/dev
	if [ "$port" != 0 ]; then
		{ : > "/dev/tcp/127.0.0.1/$port"; } 2> /dev/null && leak "the host's loopback can be reached"
	fi
fi
exit 0
`

// hint names what usually keeps bubblewrap from working, by what it said and
// what the kernel's settings are.
func hint(said string) string { return hintFor(said, readSetting) }

func readSetting(path string) (int, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	return n, err == nil
}

func hintFor(said string, setting func(path string) (int, bool)) string {
	if strings.Contains(said, "Unknown option") {
		return ". This bubblewrap is too old: 0.7 or later is needed"
	}
	if n, ok := setting("/proc/sys/user/max_user_namespaces"); ok && n == 0 {
		return ". User namespaces are switched off: sysctl user.max_user_namespaces=15000"
	}
	if n, ok := setting("/proc/sys/kernel/unprivileged_userns_clone"); ok && n == 0 {
		return ". User namespaces are switched off for users: sysctl kernel.unprivileged_userns_clone=1"
	}
	if n, ok := setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"); ok && n == 1 {
		return ". AppArmor restricts user namespaces (Ubuntu 24.04 and later): give bwrap a profile that has \"userns,\" (package apparmor-profiles has bwrap-userns-restrict), or sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	}
	for _, sign := range []string{"Operation not permitted", "Permission denied", "Creating new namespace failed", "No permissions"} {
		if strings.Contains(said, sign) {
			return ". In a container, its seccomp profile and masked /proc forbid this: run it with --security-opt seccomp=unconfined --security-opt systempaths=unconfined, or let the container be the sandbox (sandbox mode container)"
		}
	}
	return ""
}

var _ gate.Evaluator = (*Runner)(nil)
