package main

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"stopgate/gate"
	"stopgate/rulehooks"
	"stopgate/rulehooks/expressions"
	"stopgate/wire"
)

// draftEvents are events that a hook is about: one for each alternative of its
// matcher. They have what its conditions ask for, and those of the others of all that
// are about them.
func draftEvents(h *gate.Hook, all []*gate.Hook) (events []map[string]any) {
	ev := map[string]any{"hook_event_name": h.Event}
	switch {
	case h.Event == gate.Stop:
		ev["final_output"] = "All done."
	case h.Event == gate.UserPromptSubmit:
		ev["prompt"] = "Please begin."
	case h.Event.ForTool():
		for _, m := range h.Matcher.Alternatives() {
			tool := m.Example()
			if own := "code_execution"; h.Dialect == gate.Antigravity && m.Match(own) {
				tool = own // "*" is about the environment's own tools alone there
			}
			if tool == "" {
				continue
			}
			of := maps.Clone(ev)
			of["tool_name"] = tool
			if h.Event == gate.PostToolUse {
				of["tool_result"] = "README.md"
			}
			events = append(events, asAskedFor(h, of, all))
		}
		return events
	}
	if !h.Event.Known() {
		return nil
	}
	return []map[string]any{asAskedFor(h, ev, all)}
}

// asAskedFor gives an event what the conditions on it ask for: members of a tool's
// input, labels, and a conversation.
func asAskedFor(h *gate.Hook, event map[string]any, all []*gate.Hook) map[string]any {
	input, labels := map[string]any{}, map[string]any{}
	for _, o := range aboutEvent(h, event, all) {
		for _, c := range conditionsOf(o) {
			for _, name := range c.Members("tool_input") {
				input[name] = "README.md"
			}
			for _, name := range c.Members("labels") {
				labels[name] = "none"
			}
			if c.Reads("user_prompt", "tools_used") {
				event[talkKey] = draftTalk{prompt: "Please begin."}
			}
		}
	}
	if _, command := input["command"]; command || len(input) == 0 {
		input["command"] = "ls"
	}
	if h.Event.ForTool() {
		event["tool_input"] = input
	}
	if len(labels) > 0 {
		event["labels"] = labels
	}
	return event
}

// talkKey is the place of a [draftTalk] in a draft's event, of which it is no field: a
// case has it beside the event.
const talkKey = "transcript"

// draftTalk is a conversation: what was asked, and which tools were called.
type draftTalk struct {
	gate.Transcript // of which conditions read nothing else
	prompt          string
	tools           []string
}

// Recall implements [gate.Recalling].
func (d draftTalk) Recall(context.Context) (gate.Recalled, error) { //nolint:unparam // as the interface has it
	return gate.Recalled{Prompt: d.prompt, Tools: d.tools}, nil
}

// written is the conversation as messages.
func (d draftTalk) written() string {
	messages := "{role: user, content: " + scalar(d.prompt) + "}"
	for _, tool := range d.tools {
		messages += ", {role: assistant, tool_calls: [{name: " + scalar(tool) + ", arguments: {}}]}"
	}
	return "[" + messages + "]"
}

// conditionsOf are a hook's when and its rules' conditions.
func conditionsOf(h *gate.Hook) (all []*expressions.Condition) {
	if when, is := h.When.(*expressions.Condition); is {
		all = append(all, when)
	}
	rules, _ := h.Rules.(expressions.Rules)
	for _, r := range rules {
		all = append(all, r.If)
	}
	return all
}

// Bounds of the search for an event that conditions decide otherwise.
const (
	maxTriedWords = 14 // and each two and three of them: some three thousand texts
	maxTrying     = 2 * time.Second
)

// likeEvents are events like one, with a text of the conditions' own words in the
// place of one of its texts: each word, then each two, then each three. A pattern is
// also a text that it matches.
func likeEvents(event map[string]any, conditions []*expressions.Condition) iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		texts := make([][]string, len(conditions)) // the words of one are fewer than those of all
		for length := 1; length <= 3; length++ {
			for i, c := range conditions {
				texts[i] = longer(texts[i], wordsOf(c))
				for _, text := range texts[i] {
					for e := range withText(event, text) {
						if !yield(e) {
							return
						}
					}
				}
			}
		}
	}
}

// longer are texts with one word more: each text with each; at first the words.
func longer(texts, words []string) (more []string) {
	if texts == nil {
		return words
	}
	for _, text := range texts {
		for _, word := range words {
			more = append(more, text+" "+word)
		}
	}
	return more
}

func wordsOf(c *expressions.Condition) (words []string) {
	add := func(word string) {
		if word != "" && len(words) < maxTriedWords && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	for _, literal := range c.Literals() {
		if m, err := gate.CompileMatcher(literal); err == nil {
			add(m.Example())
		}
		add(literal)
	}
	return words
}

// withText are an event's variants in which one of its texts is another.
func withText(event map[string]any, text string) iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		for _, key := range []string{"final_output", "prompt", "tool_result"} {
			if _, there := event[key]; there {
				e := maps.Clone(event)
				if e[key] = text; !yield(e) {
					return
				}
			}
		}
		for _, within := range []string{"tool_input", "labels"} {
			members, _ := event[within].(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(members)) {
				of := maps.Clone(members)
				of[key] = text
				e := maps.Clone(event)
				if e[within] = of; !yield(e) {
					return
				}
			}
		}
		if talk, there := event[talkKey].(draftTalk); there {
			for _, of := range []draftTalk{{prompt: talk.prompt, tools: strings.Fields(text)}, {prompt: text, tools: talk.tools}} {
				e := maps.Clone(event)
				if e[talkKey] = of; !yield(e) {
					return
				}
			}
		}
	}
}

// askedAbout is an event like one for which the hook's when holds; if none is found
// the event itself, and asked is false. Conditions run nothing.
func askedAbout(ctx context.Context, h *gate.Hook, event map[string]any) (_ map[string]any, asked bool) {
	when, conditional := h.When.(*expressions.Condition)
	if !conditional || whenHolds(ctx, h, event) {
		return event, true
	}
	ctx, cancel := context.WithTimeout(ctx, maxTrying)
	defer cancel()
	for e := range likeEvents(event, []*expressions.Condition{when}) {
		if whenHolds(ctx, h, e) {
			return e, true
		}
		if ctx.Err() != nil {
			break
		}
	}
	return event, false
}

// whenHolds reports whether the hook's when holds for an event.
func whenHolds(ctx context.Context, h *gate.Hook, event map[string]any) bool {
	in, ok := inputOf(h, event)
	if !ok {
		return false
	}
	is, failure := h.When.Holds(ctx, in)
	return is && failure == nil
}

// ruled is what a rule hook comes to on an event.
func ruled(ctx context.Context, h *gate.Hook, event map[string]any) gate.Outcome {
	in, ok := inputOf(h, event)
	if !ok || h.When != nil && !whenHolds(ctx, h, event) {
		return gate.Skipped
	}
	return rulehooks.Evaluate(ctx, in).Outcome
}

// inputOf is an event as conditions see it; false: it is none.
func inputOf(h *gate.Hook, event map[string]any) (gate.Input, bool) {
	named := maps.Clone(event)
	delete(named, talkKey)
	named["agent_name"] = gate.DefaultAgent
	body, err := json.Marshal(named)
	if err != nil {
		return gate.Input{}, false
	}
	ev, err := wire.DecodeNative(body)
	in := gate.Input{Hook: h, Event: &ev}
	if talk, there := event[talkKey].(draftTalk); there {
		in.Transcript = talk
	}
	return in, err == nil
}
