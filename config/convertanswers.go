package config

import (
	"regexp"
	"slices"
	"strings"

	"stopgate/gate"
)

// wording is an answer in words that holds the agent back.
type wording struct {
	shown  string
	at     []string               // the members that it stands in
	member func(text string) bool // whether a script has what the answer stands in
	value  *regexp.Regexp         // the word that it is
}

// is reports whether an object is this answer.
func (w wording) is(object *node) bool {
	for _, name := range w.at {
		if object = object.find(name); object == nil {
			return false
		}
	}
	return object.text != "" && w.value.FindString(object.text) == object.text
}

func hasMember(pattern string) func(string) bool { return regexp.MustCompile(pattern).MatchString }

// In the nested form each permissionDecision stands in a hookSpecificOutput.
func nested(text string) bool {
	return permission.MatchString(text) && strings.Contains(text, hookOutput)
}

func flat(text string) bool {
	return len(permission.FindAllString(text, -1)) > strings.Count(text, hookOutput)
}

const (
	hookOutput = "hookSpecificOutput"
	// A member by a name that is a word of everyday too has a colon or an equals
	// sign after it, in JSON, jq, Python and JavaScript.
	assigned = `[\\"'\]]*\s*[:=]`
)

var (
	permission                   = regexp.MustCompile(`\bpermissionDecision\b`)
	decides                      = hasMember(`\bdecision\b`)
	denyWord, blockWord, askWord = regexp.MustCompile(`\bdeny\b`), regexp.MustCompile(`\bblock\b`), regexp.MustCompile(`\b(?:ask|defer)\b`)
	falseWord                    = regexp.MustCompile(`(?i)\bfalse\b`)
	inDecision                   = []string{"decision"}
	inPermission                 = []string{"permissionDecision"}
	inNested                     = []string{hookOutput, "permissionDecision"}

	saysDeny      = wording{`{"decision":"deny"}`, inDecision, decides, denyWord}
	saysBlock     = wording{`{"decision":"block"}`, inDecision, decides, blockWord}
	saysAsk       = wording{`{"decision":"ask"}`, inDecision, decides, regexp.MustCompile(`\bask\b`)}
	saysNotOK     = wording{`{"ok":false}`, []string{"ok"}, hasMember(`\bok\b` + assigned), falseWord}
	saysFlat      = wording{`{"permissionDecision":"deny"}`, inPermission, flat, denyWord}
	saysFlatAsk   = wording{`{"permissionDecision":"ask"}`, inPermission, flat, askWord}
	saysNested    = wording{`{"hookSpecificOutput":{"permissionDecision":"deny"}}`, inNested, nested, denyWord}
	saysNestedAsk = wording{`{"hookSpecificOutput":{"permissionDecision":"ask"}}`, inNested, nested, askWord}
	saysHalt      = wording{`{"continue":false}`, []string{"continue"}, hasMember(`\bcontinue\b` + assigned), falseWord}
	// saysMore keeps a turn of Claude Code going, also alone.
	saysMore = wording{`{"hookSpecificOutput":{"additionalContext":"…"}}`, []string{hookOutput, "additionalContext"}, hasMember(`\badditionalContext\b`), regexp.MustCompile(`(?s).+`)}

	axCodeWords = []wording{saysFlat, saysNested, saysFlatAsk, saysNestedAsk}
)

// answersIn are the words by which a dialect's hooks hold the agent back. None can
// at the start of a session.
var answersIn = map[gate.Dialect]map[gate.EventName][]wording{
	gate.Antigravity: {gate.PreToolUse: {saysDeny}},
	gate.AXCode:      {gate.PreToolUse: axCodeWords, gate.UserPromptSubmit: axCodeWords, gate.PostToolUse: {saysBlock}},
	gate.Azure: {
		gate.PreToolUse:  {saysDeny, saysBlock, saysNotOK, saysNested, saysAsk, saysNestedAsk},
		gate.PostToolUse: {saysBlock, saysNotOK},
		gate.Stop:        {saysBlock, saysNotOK},
	},
	gate.ClaudeCode: {
		gate.PreToolUse:         {saysBlock, saysNested, saysNestedAsk, saysHalt},
		gate.PostToolUse:        {saysBlock, saysHalt},
		gate.PostToolUseFailure: {saysBlock, saysHalt},
		gate.Stop:               {saysBlock, saysHalt, saysMore},
		gate.SubagentStop:       {saysBlock, saysHalt, saysMore},
		gate.UserPromptSubmit:   {saysBlock, saysHalt},
	},
}

// sight is whether a hook gives an answer, as far as its text tells.
type sight int

const (
	unsaid sight = iota // it does not
	unseen              // it may: not all of the text is there, or it makes up the word as it runs
	said
)

func (w wording) in(t hookText) sight {
	switch {
	case t.doubt == "" && !slices.ContainsFunc(t.says, w.is):
		return unsaid
	case t.doubt == "" || w.spoken(t.all):
		return said
	}
	return unseen
}

// spoken reports whether a script has the answer's words in it.
func (w wording) spoken(text string) bool { return w.member(text) && w.value.MatchString(text) }

// sayAnswers says what becomes of a hook's answers in words. Its exit code keeps
// its meaning, by the target's own law or a wrapping.
//
// What the text says and the target does not read, or reads as something else, is lost,
// and an error; so are
// answers of which the target reads none where no exit code refuses beside them.
// Of what cannot be seen it is a warning: it may not be said.
func (c *converter) sayAnswers(d *declared, event gate.EventName) {
	asked := d.Type == gate.HTTPHook || d.Type == gate.CommandHook && reads(lawOf(d))
	watched := watchedOnly(c.To, event)
	if !asked || watched && d.Type == gate.CommandHook { // that nothing of it counts was said
		return
	}
	from, to, name := systemNames[c.From], systemNames[c.To], EventName(c.To, event)
	text := c.textOf(d)
	own, known := answersIn[c.From][d.Event], answersIn[c.To][event]
	var lost, hidden []wording
	kept, worded := d.Type == gate.CommandHook && lawOf(d) != speaks, text.doubt != "" || strings.Contains(text.all, "additionalContext")
	for _, w := range own {
		s := w.in(text)
		worded = worded || s != unsaid
		switch read := slices.ContainsFunc(known, func(k wording) bool { return k.shown == w.shown }); {
		case read:
			kept = true
		case s == said:
			lost = append(lost, w)
		case s == unseen:
			hidden = append(hidden, w)
		}
	}
	if worded {
		c.once(d, "answer on %s: %s reads %s; %s reads %s", name, from, readOf(c.From, d.Event), to, readOf(c.To, event))
	}
	if watched {
		return
	}
	if c.To == gate.Azure && event == gate.Stop {
		c.needReason(d, text)
	}
	if !kept {
		lost, hidden = append(lost, hidden...), nil
	}
	if len(lost) > 0 {
		refusals := slices.DeleteFunc(slices.Clone(known), func(w wording) bool { return w.shown == saysHalt.shown || w.shown == saysMore.shown }) // which have other ends
		c.lose(d, "", "answer on %s: %s counts in %s and for nothing in %s, which reads %s: let the hook say that", name, either(lost), from, to, either(refusals))
	} else {
		c.sayMeanings(d, event, text)
	}
	if c.From != gate.ClaudeCode && c.To == gate.ClaudeCode && text.doubt != "" && strings.Contains(text.all, hookOutput) && !strings.Contains(text.all, "hookEventName") {
		c.lose(d, "", `answer on %s: a hookSpecificOutput without its hookEventName voids the whole answer in Claude Code: let the hook put "hookEventName":%q into it`, name, name)
	}
	var counting []string // in one system alone
	if len(hidden) > 0 {
		counting = append(counting, either(hidden)+", which counts in "+from+" and for nothing in "+to)
	}
	if more := c.readThere(d, event); len(more) > 0 && text.doubt != "" {
		counting = append(counting, either(more)+", which counts in "+to+" and for nothing in "+from)
	}
	if len(counting) > 0 {
		c.differ(d, "", "answer on %s: what the hook answers is not all seen here: %s; check that it is not %s", name, text.doubt, strings.Join(counting, ", nor "))
	}
}

// readThere are the words that hold the agent back in the target alone.
func (c *converter) readThere(d *declared, event gate.EventName) []wording {
	return slices.DeleteFunc(slices.Clone(answersIn[c.To][event]), func(w wording) bool {
		return slices.ContainsFunc(answersIn[c.From][d.Event], func(own wording) bool { return own.shown == w.shown })
	})
}

// voidAnswer is what a command of Claude Code says, in its own text, that voids its
// whole answer there, or counts for nothing in it; empty: nothing that is seen.
func voidAnswer(h *gate.Hook) string {
	text := strings.Join(append([]string{h.Command}, h.Args...), "\n")
	says := func(w wording) bool { return w.spoken(text) }
	switch {
	case slices.ContainsFunc(answersIn[gate.ClaudeCode][h.Event], says):
		return ""
	case deniesFlat.MatchString(text):
		return saysDeny.shown
	case h.Event == gate.PreToolUse && says(saysFlat) && quotedFlat.MatchString(text):
		return saysFlat.shown
	}
	return ""
}

var (
	deniesFlat = regexp.MustCompile(`\bdecision` + assigned + `[\s\\"']*deny\b`)
	quotedFlat = regexp.MustCompile(`\bpermissionDecision` + assigned)
)

// claudeCodeRefusal is how a hook of Claude Code refuses in words.
func claudeCodeRefusal(event gate.EventName) string {
	if event == gate.PreToolUse {
		return `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"…"}}`
	}
	return `{"decision":"block","reason":"…"}`
}

// needReason says of a block in words on Stop that it is none without a reason
// (spec/azure.md 34).
func (c *converter) needReason(d *declared, text hookText) {
	const why = `answer on Stop: {"decision":"block"} blocks in Claude Code also without a reason, or with an empty one, and lets the agent stop in Azure SRE Agent: `
	certain := text.doubt == ""
	mute := slices.IndexFunc(text.says, func(o *node) bool {
		reason := o.find("reason")
		return saysBlock.is(o) && (reason == nil || strings.TrimSpace(reason.text) == "" || !known(reason.text))
	})
	switch {
	case !certain:
		c.differ(d, "", why+"check that the hook always says why")
	case mute >= 0 && text.says[mute].has("reason") && !known(text.says[mute].find("reason").text):
		c.differ(d, "", why+"check that the hook always says why")
	case mute >= 0:
		c.lose(d, "", why+"let the hook say why")
	}
}

// either names several.
func either(list []wording) string {
	var texts []string
	for _, w := range list {
		texts = append(texts, w.shown)
	}
	return strings.Join(texts, " or ")
}
