package commandhooks

import (
	"bytes"
	"encoding/binary"
	"fmt"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// seccompProgram is the filter that bubblewrap loads just before the
// interpreter starts, as an array of struct sock_filter.
//
// It allows by default and forbids what no hook needs and what opens the
// kernel to attack: new namespaces, mounts, tracing, keys, BPF, io_uring,
// modules, clocks, foreign socket families, typing into a terminal. A list of
// what is allowed would break with every new libc.
//
// There are no unix sockets but connected pairs. One that lies in what is
// mounted, an agent's or a container runtime's, leads out with the rights of
// whoever listens, and with the host's network come its abstract ones (a session
// bus, an X server). A pair of datagram sockets is none: each of them can be
// turned to any other address.
func seccompProgram(network bool) ([]byte, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("seccomp filter: %w", err)
	}
	pairs := []uint64{unix.AF_UNIX}
	sockets := []uint64{unix.AF_INET, unix.AF_INET6}
	if network {
		sockets = append(sockets, unix.AF_NETLINK) // by which getaddrinfo lists interfaces
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
		{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: known(info, missing)},
		{Action: seccomp.ActionErrno | seccomp.Action(unix.EPERM), Names: known(info, forbidden),
			NamesWithCondtions: []seccomp.NameWithConditions{
				{Name: "clone", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsSet, Value: newNamespaces}}},
				{Name: "ioctl", Conditions: lowWordIs(1, unix.TIOCSTI)},
				{Name: "ioctl", Conditions: lowWordIs(1, unix.TIOCLINUX)},
				{Name: "socket", Conditions: noneOf(0, sockets)},
				{Name: "socketpair", Conditions: noneOf(0, pairs)},
				{Name: "socketpair", Conditions: bitsAre(1, socketType, unix.SOCK_DGRAM)},
				{Name: "socketpair", Conditions: bitsAre(1, socketType, unix.SOCK_RAW)}, // datagrams by another name
			}},
	}}
	program, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("seccomp filter: %w", err)
	}
	// The library lets calls of another architecture pass: int 0x80 would get
	// round everything above.
	const offsetArch = 4
	guarded := append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionKillProcess)},
	}, program...)
	return assemble(guarded)
}

// everything is a filter that lets every call through, for a sandbox whose jobs
// load their own: that it is loaded shows how far bwrap is; see [boxed.build].
func everything() ([]byte, error) {
	return assemble([]bpf.Instruction{bpf.RetConstant{Val: uint32(seccomp.ActionAllow)}})
}

func assemble(program []bpf.Instruction) ([]byte, error) {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("seccomp filter: %w", err)
	}
	var b bytes.Buffer
	err = binary.Write(&b, binary.NativeEndian, raw) // the fields are those of sock_filter
	return b.Bytes(), err
}

// socketType are the bits of a socket's type; above them are flags.
const socketType = 0xf

const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWTIME

// missing calls look like those of an older kernel, so that programs fall back:
// libc from clone3, whose flags a filter cannot see, to clone.
var missing = []string{"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_create", "memfd_secret",
	"shmget", "userfaultfd"}

// forbidden calls end with EPERM. memfd_create, memfd_secret and shmget above
// are memory that no limit counts.
var forbidden = []string{
	"unshare", "setns",
	"mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
	"bpf", "perf_event_open", "add_key", "request_key", "keyctl",
	"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "create_module",
	"open_by_handle_at", "name_to_handle_at", "fanotify_init", "quotactl", "quotactl_fd", "lookup_dcookie",
	"acct", "swapon", "swapoff", "reboot", "syslog", "vhangup", "sethostname", "setdomainname", "nfsservctl",
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "stime",
	"iopl", "ioperm", "modify_ldt", "vm86", "vm86old", "uselib", "personality", "mbind", "move_pages", "migrate_pages", "set_mempolicy",
}

// known leaves out what the architecture does not have.
func known(info *arch.Info, names []string) []string {
	var have []string
	for _, name := range names {
		if _, ok := info.SyscallNames[name]; ok {
			have = append(have, name)
		}
	}
	return have
}

// lowWordIs holds when the low 32 bits of an argument are value. The kernel
// drops the high ones of an int, so comparing all 64 would let through a call
// that sets any of them.
func lowWordIs(argument uint32, value uint32) seccomp.ArgumentConditions {
	return bitsAre(argument, ^uint32(0), value)
}

// bitsAre holds when those bits of an argument that are in the mask are value.
func bitsAre(argument uint32, mask, value uint32) seccomp.ArgumentConditions {
	conditions := seccomp.ArgumentConditions{{Argument: argument, Operation: seccomp.BitsNotSet, Value: uint64(mask &^ value)}}
	for bit := uint32(1); bit != 0; bit <<= 1 {
		if value&bit != 0 {
			conditions = append(conditions, seccomp.Condition{Argument: argument, Operation: seccomp.BitsSet, Value: uint64(bit)})
		}
	}
	return conditions
}

// noneOf holds when an argument is none of the values; with high bits set it
// is none.
func noneOf(argument uint32, values []uint64) seccomp.ArgumentConditions {
	var conditions seccomp.ArgumentConditions
	for _, v := range values {
		conditions = append(conditions, seccomp.Condition{Argument: argument, Operation: seccomp.NotEqual, Value: v})
	}
	return conditions
}
