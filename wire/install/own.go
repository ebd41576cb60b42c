package install

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"stopgate/gate"
)

// Own reports whether a hook of another system's file is an entry of stopgate's: one
// by which a host, whichever it is, asks a gate. A gate that took it for a hook would
// ask itself.
//
// A command is, if it does nothing but ask a gate: whatever else stands in it may be
// its owner's check, which nobody may lose because a gate is asked too. What such a
// check asks in its turn is not asked again: see [gate.FromHook].
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
	}
	r := ownReader{}
	if h.Args != nil { // no shell reads it
		return r.words(append([]string{h.Command}, h.Args...)) && r.asks
	}
	return r.text(h.Command) && r.asks
}

// speaks reports whether a gate is asked by a protocol of that name.
func speaks(protocol string) bool {
	return protocol == gate.Native || protocol == string(gate.Antigravity) || slices.Contains(Names(), protocol)
}

// ownReader reads a shell text as long as it has nothing in it but calls of a gate,
// and what people put round them. Its methods report whether that is so.
type ownReader struct {
	asks   bool // it has such a call
	shells int  // within each other
}

// maxShells is how many shells within each other are looked into.
const maxShells = 4

func (r *ownReader) text(text string) bool {
	if r.shells++; r.shells > maxShells {
		return false
	}
	defer func() { r.shells-- }()
	file, err := parseCommand(text)
	return err == nil && r.statements(file.Stmts)
}

func (r *ownReader) statements(list []*syntax.Stmt) bool {
	return !slices.ContainsFunc(list, func(s *syntax.Stmt) bool { return !r.statement(s) })
}

func (r *ownReader) statement(s *syntax.Stmt) bool {
	if s.Background || s.Coprocess || s.Negated || !within(r, s.Redirs...) {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		words, _ := wordsOf(c)
		return within(r, c.Assigns...) && within(r, c.Args...) && r.words(words)
	case *syntax.DeclClause:
		return within(r, c.Args...)
	case *syntax.TestClause:
		return within(r, c)
	case *syntax.Block:
		return r.statements(c.Stmts)
	case *syntax.Subshell:
		return r.statements(c.Stmts)
	case *syntax.IfClause:
		return r.condition(c)
	case *syntax.BinaryCmd: // of a pipeline too
		return r.statement(c.X) && r.statement(c.Y)
	}
	return false
}

func (r *ownReader) condition(c *syntax.IfClause) bool {
	return r.statements(c.Cond) && r.statements(c.Then) && (c.Else == nil || r.condition(c.Else))
}

// within looks into what a shell runs to make words of.
func within[N syntax.Node](r *ownReader, nodes ...N) bool {
	own := true
	for _, n := range nodes {
		syntax.Walk(n, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CmdSubst:
				own = own && r.statements(n.Stmts)
				return false
			case *syntax.ProcSubst:
				own = own && r.statements(n.Stmts)
				return false
			}
			return own
		})
	}
	return own
}

// words are those of one command.
func (r *ownReader) words(words []string) bool {
	words = behindStarters(words)
	if len(words) == 0 {
		return true
	}
	var e Entry
	if e.readWords(words, speaks) && e.start[0] == words[0] {
		r.asks = true
		return true
	}
	name := programName(words[0])
	switch {
	case !slices.Contains(shellNames, name):
	case len(words) > 2 && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c"):
		return r.text(words[2])
	default:
		return false // it runs a script
	}
	harmless, known := roundCalls[name]
	return known && (harmless == nil || harmless.MatchString(strings.Join(words[1:], " ")))
}

var shellNames = []string{"sh", "bash", "dash", "zsh", "ksh"}

// roundCalls are what people put round the call of a gate, which checks nothing by
// itself: that the program is there, where to work, how to end if it is not. Their
// arguments, where not all of them do nothing, are of this form.
var roundCalls = map[string]*regexp.Regexp{
	"command": regexp.MustCompile(`^-[vV] `), "which": nil, "type": nil, "hash": nil, "[": nil, "test": nil,
	"true": nil, ":": nil, "exit": regexp.MustCompile(`^0?$`), "return": regexp.MustCompile(`^0?$`),
	"cd": nil, "set": nil, "cat": regexp.MustCompile(`^-?$`), "umask": nil, "ulimit": nil, "unset": nil,
	"git": regexp.MustCompile(`^rev-parse `), "dirname": nil, "basename": nil, "pwd": nil, "realpath": nil, "hostname": nil, "whoami": nil, "id": nil, "date": nil,
}

// behindStarters are the words of the command that others start.
func behindStarters(words []string) []string {
	for len(words) > 0 {
		takes, is := starterOptions[programName(words[0])]
		if !is {
			return words
		}
		rest := words[1:]
		for len(rest) > 0 && takes.MatchString(rest[0]) {
			if two := takesNext[rest[0]]; two && len(rest) > 1 {
				rest = rest[1:]
			}
			rest = rest[1:]
		}
		if len(rest) == len(words)-1 && programName(words[0]) == "command" && len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
			return words // which only looks for it
		}
		words = rest
	}
	return nil
}

// starterOptions are programs that start another, with what may stand before that.
var (
	starterOptions = map[string]*regexp.Regexp{
		"exec": regexp.MustCompile(`^$`), "command": regexp.MustCompile(`^$`), "nohup": regexp.MustCompile(`^$`),
		"env":     regexp.MustCompile(`^(?:-[iu]|--ignore-environment|--unset=.*|\w+=.*)$`),
		"nice":    regexp.MustCompile(`^(?:-n|-?\d+|-n-?\d+)$`),
		"timeout": regexp.MustCompile(`^(?:-[ksv]|--\S+|[\d.]+[smhd]?)$`),
	}
	takesNext = map[string]bool{"-u": true, "-n": true, "-k": true, "-s": true}
)
