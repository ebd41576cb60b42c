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
		checkBash(o, "script", h.Script)
	}
	checkExit(o, "script", h.Script, h.FailMode)
}

// checkLine is [checkScript] of a command: it is run by bash.
func checkLine(o *object, h *gate.Hook) {
	checkBash(o, "command", h.Command)
	checkExit(o, "command", h.Command, h.FailMode)
	if line := strings.TrimSpace(h.Command); strings.HasPrefix(line, "./") || strings.HasPrefix(line, "../") {
		o.warnf(o.child("command"), o.place("command"), "command is looked for in the agent's working directory, where the server file lets hooks see that, "+
			"else in an empty /tmp, and never beside this file; give an absolute path, or write the commands into script")
	}
}

// checkBash warns about what bash could not read: it would end with 2, which
// blocks, or go on and end with 0, which allows; and of credentials in the text.
func checkBash(o *object, field, text string) {
	file, err := parseBash(text)
	if parse, ok := errors.AsType[syntax.ParseError](err); ok {
		o.warnf(o.child(field), o.place(field), "%s is not valid bash, in its line %d: %s", field, parse.Pos.Line(), parse.Text)
	}
	if err == nil {
		checkCredentials(func(format string, args ...any) { o.warnf(o.child(field), o.place(field), format, args...) }, field, file)
	}
}

// maxBrackets is how many opening brackets a script may have that is read: the
// reader descends into each, and takes 4 KiB of stack for it.
const maxBrackets = 2000

var errNotRead = errors.New("not looked into: it is long, or opens very many brackets")

// readBash is what bash could not read of a text; nil: it can.
func readBash(text string) error {
	_, err := parseBash(text)
	return err
}

func parseBash(text string) (*syntax.File, error) {
	if len(text) > gate.MaxScriptBytes || strings.Count(text, "(")+strings.Count(text, "[")+strings.Count(text, "{") > maxBrackets {
		return nil, errNotRead
	}
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
}

// checkExit warns about an exit code that people take for a block (fault exit-05).
func checkExit(o *object, field, text string, mode gate.FailMode) {
	if mode == gate.FailAllow && exitOne.MatchString(text) {
		o.warnf(o.child(field), o.place(field), "%s can exit with 1, which is a failure and does not block under failMode allow; exit 2 blocks", field)
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
