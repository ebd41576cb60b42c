package install

import (
	"net/url"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"stopgate/gate"
)

// Own reports whether a hook of another system's file is an entry of stopgate's: one
// by which a host, whichever it is, asks a gate. A gate that took it for a hook would
// ask itself, and so without end.
//
// It sees what stands in the file. What a script does, or a redirection, it does not:
// of that [gate.FromHook] takes care.
func Own(h *gate.Hook) bool {
	switch {
	case h.Type == gate.HTTPHook:
		base, _, _ := strings.Cut(h.URL, "#")
		base, _, _ = strings.Cut(base, "?")
		if plain, err := url.PathUnescape(base); err == nil {
			base = plain
		}
		e := Entry{URL: strings.TrimRight(base, "/")}
		return e.readURL(speaks)
	case h.Type != gate.CommandHook:
		return false
	case h.Args != nil: // no shell reads it
		return ownCall(append([]string{h.Command}, h.Args...), maxShells)
	}
	return ownCommand(h.Command, maxShells)
}

// speaks reports whether a gate is asked by a protocol of that name.
func speaks(protocol string) bool {
	return protocol == gate.Native || protocol == string(gate.Antigravity) || slices.Contains(Names(), protocol)
}

// maxShells is how many shells within each other are looked into.
const maxShells = 4

// ownCommand reports whether a shell that reads the text would ask a gate.
func ownCommand(text string, shells int) (own bool) {
	file, err := parseCommand(text)
	if err != nil {
		return false
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && !own {
			words, _ := wordsOf(call)
			own = ownCall(words, shells)
		}
		return !own
	})
	return own
}

// ownCall is about one command, with what it hands to a shell, as in bash -c '…'.
func ownCall(words []string, shells int) bool {
	var e Entry
	if e.readWords(words, speaks) {
		return true
	}
	for i := 1; i < len(words) && shells > 0; i++ {
		option := words[i-1]
		if strings.HasPrefix(option, "-") && strings.HasSuffix(option, "c") && ownCommand(words[i], shells-1) {
			return true
		}
	}
	return false
}
