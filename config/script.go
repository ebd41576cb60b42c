package config

import (
	"errors"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"stopgate/gate"
)

// Shebangs that a script may begin with; none means bash (spec/azure.md 20).
var shebangs = []string{"#!/bin/bash", "#!/usr/bin/env python3"}

// checkScript refuses what would not run, and warns about what would not do
// what it looks like.
func checkScript(o *object, h *gate.Hook) {
	at, path := o.place("script"), o.child("script")
	first, _, _ := strings.Cut(h.Script, "\n")
	switch {
	case strings.HasPrefix(first, "#!"):
		checkShebang(o, first)
	case strings.HasPrefix(strings.TrimLeft(h.Script, " \t\r\n"), "#!"):
		o.warnf(path, at, "shebang is not at the very start, so bash runs the script; remove what is before it")
	case strings.Contains(h.Script, "\r\n"):
		o.warnf(path, at, "script has Windows line ends, which bash takes for a part of each line's last word; save it with LF")
	case pythonStart.MatchString(h.Script):
		o.warnf(path, at, "script looks like Python but has no shebang, so bash runs it; begin it with %s", shebangs[1])
	}
	if !strings.HasPrefix(first, "#!/usr/bin/env") {
		checkBash(o, path, at, h.Script)
	}
	if h.FailMode == gate.FailAllow && exitOne.MatchString(h.Script) {
		o.warnf(path, at, "script can exit with 1, which is a failure and does not block under failMode allow; exit 2 blocks")
	}
}

// checkBash warns about a script that bash could not read: bash would end with
// 2, which blocks, or go on and end with 0, which allows.
func checkBash(o *object, path string, at pos, script string) {
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if parse, ok := errors.AsType[syntax.ParseError](err); ok {
		o.warnf(path, at, "script is not valid bash, in its line %d: %s", parse.Pos.Line(), parse.Text)
	}
}

func checkShebang(o *object, line string) {
	at, path := o.place("script"), o.child("script")
	for _, s := range shebangs {
		if line == s {
			return
		}
		if strings.TrimRight(line, "\r") == s {
			o.errorf(path, at, "shebang ends in a carriage return: save the script with Unix line ends (LF)")
			return
		}
	}
	o.errorf(path, at, "shebang %q is not supported, want %s, or none for bash", cut(line), strings.Join(shebangs, " or "))
}

var (
	pythonStart = regexp.MustCompile(`\A\s*(?:import|from) [a-z_]+`)
	// exitOne is an exit with 1 as a statement of its own.
	exitOne = regexp.MustCompile(`(?m)(?:^|[\s;&|{])(?:exit 1|(?:sys\.|os\._)?exit\(1\))(?:$|[\s;&|})])`)
)

// foreignAnswer is the word that a prompt asks for where the contract is JSON
// (spec/azure.md 31), or "". A prompt that shows the contract is left alone.
func foreignAnswer(prompt string) string {
	if strings.Contains(prompt, `"ok"`) || strings.Contains(prompt, `"decision"`) {
		return ""
	}
	if found := bareAnswer.FindStringSubmatch(prompt); found != nil {
		return found[1]
	}
	return ""
}

// bareAnswer is a verb of answering, words that add nothing, and a verdict's
// word.
var bareAnswer = regexp.MustCompile(`(?i)\b(?:respond|reply|answer|return|output|print|say)\b` +
	`(?:\s+(?:with|only|just|exactly|simply|either|the|a|an|single|one|bare|word|words|by|saying|as))*[\s:]+["'“‘*` + "`" + `]*` +
	`(approved?|block(?:ed)?|yes|no|pass|fail|allow|deny|denied|reject(?:ed)?|accept(?:ed)?|true|false|ok|stop|continue)\b`)
