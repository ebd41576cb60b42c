package shell

import (
	"regexp"
	"strings"
)

// gitTexts are the texts that a git runs as a shell would, by its configuration, its
// options and its verbs. An alias counts where the verb is one: it may be of another.
func (r *reader) gitTexts(args []Word) (all []Word) {
	if !r.Spend(perByte * len(args)) {
		return nil
	}
	verb := 0
	for verb < len(args) && strings.HasPrefix(args[verb].Text, "-") {
		if gitTakes[args[verb].Text] {
			verb++
		}
		verb++
	}
	own, rest := args[:min(verb, len(args))], args[min(verb, len(args)):]
	var aliases []Word
	aliased, behind := false, Quoted(rest[min(1, len(rest)):])
	for _, a := range args { // remote.x.url=ext::…, too
		if _, text, is := strings.Cut(a.Text, "ext::"); is {
			all = append(all, Word{text, a.Literal})
		}
	}
	for i, a := range own {
		key, value, is := strings.Cut(a.Text, "=")
		if !is || i == 0 || own[i-1].Text != "-c" || !gitRuns.MatchString(key) {
			continue
		}
		text := gitSetting(key, Word{value, a.Literal})
		name, alias := strings.CutPrefix(strings.ToLower(key), "alias.")
		switch {
		case !alias:
			all = append(all, text)
		case len(rest) > 0 && r.Spend(perByte*len(behind)):
			aliased = aliased || !rest[0].Literal || name == strings.ToLower(rest[0].Text)
			text = Word{text.Text + behind, text.Literal && joined(rest[1:]).Literal}
			aliases = append(aliases, text)
		}
	}
	if aliased {
		all = append(all, aliases...)
	}
	if len(rest) == 0 {
		return all
	}
	return append(all, r.gitVerb(rest[0].Text, rest[1:])...)
}

func (r *reader) gitVerb(verb string, args []Word) (all []Word) {
	options := func(letter byte, names ...string) { all = append(all, texts(r.optionTexts(args, letter, names...))...) }
	rest, _ := operands(args, "", nil)
	switch verb {
	case "rebase":
		options('x', "exec")
	case "difftool":
		options('x', "extcmd")
	case "clone", "fetch", "pull", "ls-remote":
		options('u', "upload-pack")
		if verb != "clone" {
			break
		}
		for _, set := range r.optionTexts(args, 'c', "config") {
			if key, value, is := strings.Cut(set.text.Text, "="); is && gitRuns.MatchString(key) {
				all = append(all, gitSetting(key, Word{value, set.text.Literal}))
			}
		}
	case "push", "send-pack", "archive":
		options(0, "receive-pack", "exec")
	case "grep":
		options('O', "open-files-in-pager")
	case "filter-branch":
		options(0, "env-filter", "tree-filter", "index-filter", "parent-filter", "msg-filter", "commit-filter", "tag-name-filter", "setup")
	case "bisect", "submodule":
		if len(rest) == 0 || rest[0].Text != "run" && rest[0].Text != "foreach" {
			return nil
		}
		words, _ := operands(rest[1:], "", nil)
		if verb == "bisect" {
			return []Word{{Quoted(words), joined(words).Literal}}
		}
		return r.all(words)
	case "config":
		for i, w := range rest[:max(len(rest)-1, 0)] {
			if gitRuns.MatchString(w.Text) {
				all = append(all, gitSetting(w.Text, rest[i+1]))
			}
		}
	}
	return all
}

// gitTakes are options before the verb that take the next word.
var gitTakes = map[string]bool{"-c": true, "-C": true, "--git-dir": true, "--work-tree": true, "--namespace": true, "--super-prefix": true, "--config-env": true, "--attr-source": true}

// gitRuns are the names of settings whose value is run.
var gitRuns = regexp.MustCompile(`(?i)^alias\.|^pager\.|command$|editor$|pager$|askpass$|\.external$|program$|textconv$|\.clean$|\.smudge$|\.process$|\.cmd$|\.driver$|helper$|fsmonitor$|gitproxy$|filter$|uploadpack$|receivepack$|\.vcs$`)

// gitSetting is the text of a setting. An alias is a verb unless it begins with
// an exclamation mark, as others may too.
func gitSetting(key string, value Word) Word {
	text, runs := strings.CutPrefix(value.Text, "!")
	if !runs && strings.HasPrefix(strings.ToLower(key), "alias.") {
		text = "git " + text
	}
	return Word{text, value.Literal}
}
