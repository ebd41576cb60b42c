// Command stopgate-hook is `stopgate hook` as a program of its own: what an agent
// host runs for every tool call. See docs/hosts.md.
package main

import (
	"os"

	"stopgate/cmd/internal/hookclient"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(hookclient.Main(version)) }
