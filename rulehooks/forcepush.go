package rulehooks

import (
	"slices"
	"strings"

	"stopgate/rulehooks/shell"
)

// pushes looks for forced pushes in one call.
type pushes struct {
	aliases int // how many were followed: a hostile text can hold very many
}

const maxAliases = 100

// anyForced reports whether a text, read as a shell would, has a forced push.
func (p *pushes) anyForced(text string) bool {
	return slices.ContainsFunc(shell.Read(text).Commands, p.forced)
}

// forced reports whether a command is a git push that may overwrite what the
// remote has (spec/ax-code.md 23): -f, --force and its kin, --mirror, a refspec
// with a plus, also by configuration that stands in the command (git -c). That a
// branch is deleted, or that nothing is sent (--dry-run), makes no difference.
//
// What is configured elsewhere, as an alias in a file, and what only a running
// shell knows is not seen.
func (p *pushes) forced(c shell.Command) bool {
	switch strings.TrimSuffix(c.Name(), ".exe") {
	case "git":
	case "git-push", "git-send-pack":
		return forcedBy(c.Args)
	default:
		return false
	}
	settings, args := globalOptions(c.Args)
	if len(args) == 0 {
		return false
	}
	verb, args := args[0].Text, args[1:]
	if line, ok := aliasOf(verb, settings); ok && p.aliases < maxAliases {
		p.aliases++
		return p.anyForced(line + quoted(args))
	}
	if verb != "push" && verb != "send-pack" {
		return false
	}
	return slices.ContainsFunc(settings, forcing) || forcedBy(args)
}

// aliasOf is the shell line that an alias among the settings stands for.
func aliasOf(verb string, settings []string) (line string, ok bool) {
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		if name, is := strings.CutPrefix(strings.ToLower(key), "alias."); !is || name != strings.ToLower(verb) {
			continue
		}
		if line, runs := strings.CutPrefix(value, "!"); runs {
			return line, true
		}
		return "git " + value, true
	}
	return "", false
}

// forcing reports whether a setting makes every push to a remote a forced one.
func forcing(setting string) bool {
	key, value, given := strings.Cut(setting, "=")
	key = strings.ToLower(key)
	switch {
	case !strings.HasPrefix(key, "remote."):
		return false
	case strings.HasSuffix(key, ".push"):
		return strings.HasPrefix(value, "+")
	}
	return strings.HasSuffix(key, ".mirror") && (!given || !slices.Contains([]string{"false", "no", "off", "0", ""}, strings.ToLower(value)))
}

func quoted(args []shell.Word) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteString(" '" + strings.ReplaceAll(a.Text, "'", `'\''`) + "'")
	}
	return b.String()
}

// globalOptions are the settings of git's own -c, and the words from the verb on.
func globalOptions(args []shell.Word) (settings []string, rest []shell.Word) {
	takes := map[string]bool{"-C": true, "-c": true, "--git-dir": true, "--work-tree": true, "--namespace": true, "--super-prefix": true,
		"--config-env": true, "--attr-source": true}
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") {
		option := args[0].Text
		args = args[1:]
		if takes[option] && len(args) > 0 {
			if option == "-c" {
				settings = append(settings, args[0].Text)
			}
			args = args[1:]
		}
	}
	return settings, args
}

// forcedBy reads the arguments of git push. Of an option and its --no- the later
// one holds.
func forcedBy(args []shell.Word) bool {
	var force, lease, mirror, plus bool
	for len(args) > 0 {
		text := args[0].Text
		args = args[1:]
		name, long := strings.CutPrefix(text, "--")
		switch {
		case text == "--": // what follows is a remote and refspecs
			for _, a := range args {
				plus = plus || strings.HasPrefix(a.Text, "+")
			}
			args = nil
		case long:
			name, _, joined := strings.Cut(name, "=")
			name, negated := strings.CutPrefix(name, "no-")
			switch {
			case name == "force":
				force = !negated
			case strings.HasPrefix(name, "force-w") && abbreviates(name, "force-with-lease"):
				lease = !negated
			case name != "" && abbreviates(name, "mirror"):
				mirror = !negated
			case !joined && valued(name) && len(args) > 0:
				args = args[1:]
			}
		case strings.HasPrefix(text, "-") && text != "-":
			for i, letter := range text[1:] {
				if letter == 'o' { // a push option's text is the rest, or the next word
					if i+2 == len(text) && len(args) > 0 {
						args = args[1:]
					}
					break
				}
				force = force || letter == 'f'
			}
		default:
			plus = plus || strings.HasPrefix(text, "+")
		}
	}
	return force || lease || mirror || plus
}

// abbreviates reports whether git takes a word for a long option: it takes any
// beginning that no other option has.
func abbreviates(word, option string) bool { return strings.HasPrefix(option, word) }

// valued reports whether a long option of git push takes the next word.
func valued(name string) bool {
	switch name {
	case "repo", "receive-pack", "exec", "push-option", "recurse-submodules":
		return true
	}
	return false
}
