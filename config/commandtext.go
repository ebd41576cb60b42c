package config

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"stopgate/gate"
)

// Where a credential belongs that a command needs.
const credentialPlace = "have the command read it from a file, or ask by an http hook whose headers name a variable of the server's"

// checkCredentials warns of credentials that stand in a shell text.
func checkCredentials(warn func(format string, args ...any), field string, file *syntax.File) {
	for _, name := range literalCredentials(file) {
		warn("%s sets %s to a text that stands in it, and %[2]s looks like a credential, which every reader of this file then has: %s", field, cut(name), credentialPlace)
	}
}

// literalCredentials are the variables by the names of credentials that a text sets
// to what stands in it, once each. Paths, and texts too short to be secret, are
// none.
func literalCredentials(file *syntax.File) (names []string) {
	add := func(name, value string) {
		secret := len(value) >= gate.ShortestSecret && !strings.Contains(value, unplain) && !strings.ContainsAny(value[:1], "/~.")
		if credentialName.MatchString(name) && secret && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Assign:
			if n.Name != nil && n.Value != nil {
				add(n.Name.Value, spelled(n.Value))
			}
		case *syntax.CallExpr: // env NAME=value program
			if len(n.Args) > 0 && spelled(n.Args[0]) == "env" {
				for _, w := range n.Args[1:] {
					name, value, _ := strings.Cut(spelled(w), "=")
					add(name, value)
				}
			}
		}
		return true
	})
	return names
}

// runsAtHome reports whether a hook runs what lies in a home directory or a plugin,
// where a hook's sandbox has no files.
func runsAtHome(h *gate.Hook) bool {
	if h.Args != nil {
		return slices.ContainsFunc(append([]string{h.Command}, h.Args...), atHomeWord.MatchString)
	}
	file, err := parseBash(h.Command)
	return err == nil && scriptAtHome(file)
}

// atHomeWord is a word that no shell reads.
var atHomeWord = regexp.MustCompile(`\A(?:~/|\$\{CLAUDE_PLUGIN_)`)

// scriptAtHome reports whether a shell text runs what lies in a home directory or a
// plugin, or gives it to an interpreter as a script.
func scriptAtHome(file *syntax.File) (found bool) {
	syntax.Walk(file, func(node syntax.Node) bool {
		call, ok := node.(*syntax.CallExpr)
		if !ok {
			return !found
		}
		words := started(call.Args)
		if len(words) == 0 {
			return true
		}
		program := path.Base(spelled(words[0]))
		how, interpreter := interpreters[program]
		found = found || homeWord(words[0])
		for i, w := range words[1:] {
			text := spelled(w)
			switch {
			case !interpreter && program != "." && program != "source":
				return true
			case text == how.inline && i+2 < len(words):
				if inner, err := parseBash(spelled(words[i+2])); err == nil && isShell(program) {
					found = found || scriptAtHome(inner)
				}
				return true
			case !strings.HasPrefix(text, "-"):
				found = found || homeWord(w)
				return true
			}
		}
		return true
	})
	return found
}

// started are the words of the command that others start: env, timeout and the like,
// behind their options and variables.
func started(words []*syntax.Word) []*syntax.Word {
	if len(words) == 0 || !slices.Contains([]string{"exec", "env", "timeout", "nohup", "nice"}, path.Base(spelled(words[0]))) {
		return words
	}
	for i, w := range words[1:] {
		if !beforeStarted.MatchString(spelled(w)) {
			return words[i+1:]
		}
	}
	return nil
}

var beforeStarted = regexp.MustCompile(`^(-.*|\w+=.*|[\d.]+[smhd]?|[A-Z]+)$`)

// homeWord reports whether a word begins with a home directory, or a plugin's.
func homeWord(w *syntax.Word) bool {
	parts := w.Parts
	if quoted, ok := parts[0].(*syntax.DblQuoted); ok {
		parts = quoted.Parts
	}
	if len(parts) == 0 {
		return false
	}
	switch p := parts[0].(type) {
	case *syntax.Lit:
		return strings.HasPrefix(p.Value, "~/")
	case *syntax.ParamExp:
		return p.Param != nil && (p.Param.Value == "HOME" || strings.HasPrefix(p.Param.Value, "CLAUDE_PLUGIN_"))
	}
	return false
}

// changesCall is what a hook would change of a call by its answer, which a gate
// cannot; empty: nothing that its text shows.
func changesCall(h *gate.Hook) string {
	if !h.Event.ForTool() {
		return ""
	}
	return rewriting.FindString(strings.Join(append([]string{h.Command}, h.Args...), "\n"))
}

var rewriting = regexp.MustCompile(`\bupdated(?:Input|ToolOutput|MCPToolOutput)\b`)
