package config

import (
	"slices"
	"strings"
)

// displayOf is the object that a program of jq is, if that is all that it is.
func displayOf(program string) *node {
	tokens, ok := tokensOf(program, jqText)
	if !ok || len(tokens) == 0 || closing(tokens, 0) != len(tokens)-1 {
		return nil
	}
	object, _ := display(tokens)
	return object
}

// undeciding are the members of an answer whose values no system decides by; but a
// reason has to be there, and context alone keeps Claude Code going on Stop.
var undeciding = strings.Fields("reason permissionDecisionReason stopReason systemMessage additionalContext hookEventName message")

// display reads an object as it is written in Python, JavaScript or jq: every name
// and every value by which something is decided is there in plain. nil: it is not
// one; rest: what follows it.
func display(tokens []token) (object *node, rest []token) {
	if len(tokens) == 0 || !tokens[0].is("{") {
		return nil, nil
	}
	object = objectNode()
	for tokens = tokens[1:]; len(tokens) > 2; {
		if tokens[0].is("}") {
			return object, tokens[1:]
		}
		name := tokens[0]
		if name.kind != textToken && name.kind != wordToken || !known(name.text) || !tokens[1].is(":") || object.has(name.text) {
			return nil, nil
		}
		value, after := displayed(name.text, tokens[2:])
		if value == nil || len(after) == 0 {
			return nil, nil
		}
		object.put(name.text, value)
		switch tokens = after[1:]; {
		case after[0].is("}"):
			return object, tokens
		case !after[0].is(","):
			return nil, nil
		}
	}
	if len(tokens) > 0 && tokens[0].is("}") {
		return object, tokens[1:]
	}
	return nil, nil
}

// someText is a text of which nothing is known. A value that need not even be one is
// [unplain] alone.
func someText() *node { return textNode(unplain + unplain) }

// displayed is a member's value, and what follows it: a comma or the object's end.
func displayed(name string, tokens []token) (value *node, rest []token) {
	if object, after := display(tokens); object != nil {
		return object, after
	}
	if len(tokens) > 1 && (tokens[1].is(",") || tokens[1].is("}")) {
		switch t := tokens[0]; {
		case t.kind == textToken && known(t.text):
			return textNode(t.text), tokens[1:]
		case t.kind == textToken && slices.Contains(undeciding, name):
			return someText(), tokens[1:]
		case t.kind == wordToken && slices.Contains([]string{"true", "True", "false", "False"}, t.text):
			return &node{kind: boolKind, text: strings.ToLower(t.text)}, tokens[1:]
		}
	}
	if !slices.Contains(undeciding, name) {
		return nil, nil
	}
	if len(tokens) > 2 && tokens[0].is("$") && tokens[1].kind == wordToken && tokens[1].text != "ENV" && (tokens[2].is(",") || tokens[2].is("}")) {
		return someText(), tokens[2:] // a variable of jq's, which --arg sets
	}
	for i := 0; i < len(tokens); i++ {
		switch t := tokens[i]; {
		case t.is("("), t.is("["), t.is("{"):
			if i = closing(tokens, i); i < 0 {
				return nil, nil
			}
		case t.is(","), t.is("}"):
			return textNode(unplain), tokens[i:]
		}
	}
	return nil, nil
}
