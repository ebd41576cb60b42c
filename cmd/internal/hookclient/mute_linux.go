package hookclient

import "golang.org/x/sys/unix"

func replace(from, to int) error { return unix.Dup3(from, to, 0) }
