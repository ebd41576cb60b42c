package commandhooks

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// treeMemory is what a process and everything below it hold, in bytes. In a
// sandbox that is everybody: whose parent ends is a child of process 1.
func treeMemory(pid int) int64 { return treeMemoryBut(map[int]bool{}, pid) }

// treeMemoryBut leaves out whom it has seen: a process whose parent ends
// meanwhile is found a second time.
func treeMemoryBut(seen map[int]bool, pid int) int64 {
	if seen[pid] {
		return 0
	}
	seen[pid] = true
	total := heldMemory(pid)
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, task := range tasks {
		list, _ := os.ReadFile(task)
		for _, field := range strings.Fields(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				total += treeMemoryBut(seen, child)
			}
		}
	}
	return total
}

// fileMemory is what the files of a file system in memory cost beside their
// content, in bytes: the kernel sets no bound to their number but the machine's
// memory, and no process holds them.
func fileMemory(fs *os.File) int64 {
	const each = 1 << 10 // measured: 1.0 KiB, with a name of 200 bytes 1.3
	var info unix.Statfs_t
	if unix.Fstatfs(int(fs.Fd()), &info) != nil {
		return 0
	}
	return int64(info.Files-info.Ffree) * each
}

// groupMemory is what the processes of a group hold, in bytes.
func groupMemory(group int) int64 {
	var total int64
	proc, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if of, err := syscall.Getpgid(pid); err == nil && of == group {
			total += heldMemory(pid)
		}
	}
	return total
}

// heldMemory is the memory of one process that the kernel cannot take back:
// private, shared, swapped out, and its page tables. What it maps of files,
// libraries above all, is not counted; pages that several processes share count
// for each of them. A process that has ended holds none.
func heldMemory(pid int) int64 {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	var total int64
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch string(name) {
		case "RssAnon", "RssShmem", "VmSwap", "VmPTE":
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(string(value)), " kB"), 10, 64)
			total += kib << 10
		}
	}
	return total
}
