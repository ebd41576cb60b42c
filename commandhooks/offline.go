package commandhooks

import (
	"path/filepath"
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"stopgate/gate"
)

// networked are programs that do nothing without a network.
var networked = []string{"curl", "wget", "nc", "ncat", "netcat", "ssh", "scp", "sftp", "telnet", "ftp", "ping", "dig", "nslookup"}

// Offline is a program that a hook's command starts and that needs a network, where
// hooks have none; empty: there is none that is certain.
func (r *Runner) Offline(h *gate.Hook) (program string) {
	if r.status.Mode != Bubblewrap || r.opt.Network || h.Type != gate.CommandHook {
		return ""
	}
	j, failure := r.plan(gate.Input{Hook: h, Event: &gate.Event{Name: h.Event}})
	if failure != nil {
		return ""
	}
	look := func(words []string) {
		if words = started(words); program == "" && len(words) > 0 && slices.Contains(networked, filepath.Base(words[0])) {
			program = filepath.Base(words[0])
		}
	}
	if h.Args != nil {
		look(append([]string{h.Command}, h.Args...))
		return program
	}
	reader := lineReader{sight: r.sight(j), set: map[string]string{}, defined: map[string]bool{}}
	file := reader.bashOf(j)
	if file == nil {
		return ""
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok {
			look(reader.words(call.Args))
		}
		return true
	})
	return program
}
