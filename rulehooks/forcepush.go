package rulehooks

import (
	"path"
	"slices"
	"strings"

	"stopgate/rulehooks/shell"
)

// pushes looks for forced pushes in one call.
type pushes struct{ budget *shell.Budget }

// anyForced reports whether a text, read as a shell would, has a forced push.
// settings are those of a git that runs it: they hold for every git below.
func (p pushes) anyForced(text string, settings []string) bool {
	for c := range shell.Read(p.budget, text) {
		if p.forced(c, settings) {
			return true
		}
	}
	return false
}

// forced reports whether a command is a git push that may overwrite what the
// remote has (spec/ax-code.md 23): -f, --force and its kin, --mirror, a refspec
// with a plus, also by configuration that stands in the command (git -c). That a
// branch is deleted, or that nothing is sent (--dry-run), makes no difference.
//
// What is configured elsewhere, as an alias in a file, and what only a running
// shell knows is not seen; but a program that is not known is a git if its
// arguments are those of a forced push.
func (p pushes) forced(c shell.Command, settings []string) bool {
	switch strings.TrimSuffix(c.Name(), ".exe") {
	case "git":
	case "git-push", "git-send-pack":
		return p.budget.Spend(len(c.Args)) && forcedBy(c.Args)
	default:
		if !maybeGit(c) {
			return false
		}
	}
	if !p.budget.Spend(len(c.Args) + len(c.Assignments) + len(settings)) {
		return false
	}
	own, args := globalOptions(c.Args)
	settings = slices.Concat(settings, p.inEnvironment(c.Assignments), own)
	if len(args) == 0 {
		return false
	}
	return p.verbForced(args[0].Text, args[1:], settings)
}

// maybeGit reports whether a program that only a running shell knows may be git:
// $(which git), gi[t].
func maybeGit(c shell.Command) bool {
	if c.Name() != "" {
		return false
	}
	matches, _ := path.Match(path.Base(c.Program.Text), "git")
	return matches || strings.ContainsAny(c.Program.Text, "$`(")
}

// verbForced reports whether a verb of git's is a forced push, or runs one.
func (p pushes) verbForced(verb string, args []shell.Word, settings []string) bool {
	switch verb {
	case "push", "send-pack":
		return slices.ContainsFunc(settings, forcing) || forcedBy(args)
	case "rebase":
		return slices.ContainsFunc(executed(args), func(text string) bool { return p.anyForced(text, settings) })
	case "submodule":
		if words := behind(args, "foreach"); len(words) == 1 {
			return p.anyForced(words[0].Text, settings)
		} else if len(words) > 0 {
			return p.anyForced(shell.Quoted(words), settings)
		}
		return false
	case "bisect":
		return p.anyForced(shell.Quoted(behind(args, "run")), settings)
	}
	if line, at := aliasOf(verb, settings); at >= 0 { // git follows an alias once
		return p.anyForced(line+shell.Quoted(args), slices.Delete(slices.Clone(settings), at, at+1))
	}
	return false
}

// executed are the texts that git rebase runs.
func executed(args []shell.Word) (all []string) {
	for i, a := range args {
		name, value, joined := strings.Cut(a.Text, "=")
		switch {
		case len(name) > len("--e") && abbreviates(name, "--exec") && joined:
			all = append(all, value)
		case len(name) > len("--e") && abbreviates(name, "--exec"):
			if i+1 < len(args) {
				all = append(all, args[i+1].Text)
			}
		case strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--"):
			letters, text, is := strings.Cut(a.Text, "x")
			switch {
			case !is || strings.ContainsAny(letters, "sXSC"): // whose value it stands in
			case text != "":
				all = append(all, text)
			case i+1 < len(args):
				all = append(all, args[i+1].Text)
			}
		}
	}
	return all
}

// behind are the words that a verb's own verb is given, without its options.
func behind(args []shell.Word, verb string) []shell.Word {
	at := slices.IndexFunc(args, func(w shell.Word) bool { return !strings.HasPrefix(w.Text, "-") })
	if at < 0 || args[at].Text != verb {
		return nil
	}
	args = args[at+1:]
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") {
		args = args[1:]
	}
	return args
}

// aliasOf is the shell line that an alias among the settings stands for, and which
// of them that is, -1 where there is none.
func aliasOf(verb string, settings []string) (line string, at int) {
	for at, s := range slices.Backward(settings) {
		key, value, _ := strings.Cut(s, "=")
		if name, is := strings.CutPrefix(strings.ToLower(key), "alias."); !is || name != strings.ToLower(verb) {
			continue
		}
		if line, runs := strings.CutPrefix(value, "!"); runs {
			return line, at
		}
		return "git " + value, at
	}
	return "", -1
}

// inEnvironment are the settings that variables have, as
// GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=a.b GIT_CONFIG_VALUE_0=c.
func (p pushes) inEnvironment(variables []shell.Assignment) (settings []string) {
	values := map[string]string{}
	for _, v := range variables {
		if n, is := strings.CutPrefix(v.Name, "GIT_CONFIG_VALUE_"); is {
			values[n] = v.Value.Text
		}
	}
	for _, v := range variables {
		if n, is := strings.CutPrefix(v.Name, "GIT_CONFIG_KEY_"); is {
			settings = append(settings, v.Value.Text+"="+values[n])
		}
		if v.Name == "GIT_CONFIG_PARAMETERS" { // 'a.b=c' 'd.e'='f'
			for c := range shell.Read(p.budget, "git "+v.Value.Text) {
				for _, w := range c.Args {
					settings = append(settings, w.Text)
				}
				break
			}
		}
	}
	return settings
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
			case !joined && !negated && valued(name) && len(args) > 0:
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
	return slices.ContainsFunc([]string{"repo", "receive-pack", "exec", "push-option", "recurse-submodules"},
		func(option string) bool { return abbreviates(name, option) })
}
