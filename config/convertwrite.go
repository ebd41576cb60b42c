package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"stopgate/gate"
)

// convertedName is what stands where a name is asked for and none was given.
const convertedName = "converted"

// write is the hooks as a file of the target's.
func (c Conversion) write(hooks []gate.Hook) []byte {
	switch c.To {
	case gate.Antigravity:
		return indented(c.writeAntigravity(hooks))
	case gate.AXCode:
		return indented(writeAXCode(hooks))
	case gate.ClaudeCode:
		return indented(writeClaudeCode(hooks))
	}
	return c.writeAgent(hooks)
}

// Values of a file that is written.
func textNode(s string) *node   { return &node{kind: textKind, text: s} }
func objectNode() *node         { return &node{kind: objectKind} }
func (n *node) push(item *node) { n.items = append(n.items, item) }
func trueNode() *node           { return &node{kind: boolKind, text: "true"} }
func numberNode(f float64) *node {
	return &node{kind: numberKind, text: strconv.FormatFloat(f, 'f', -1, 64)}
}

// put adds a member; nil is left out.
func (n *node) put(name string, value *node) *node {
	if value != nil {
		n.fields = append(n.fields, field{name: name, value: value})
	}
	return n
}

// optional is a text that is left out if it is empty.
func optional(s string) *node {
	if s == "" {
		return nil
	}
	return textNode(s)
}

// listOf is a member that is a list, made if it is not there.
func (n *node) listOf(name string) *node {
	if l := n.find(name); l != nil {
		return l
	}
	l := &node{kind: listKind}
	n.put(name, l)
	return l
}

func indented(n *node) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, n.ordered(), "", "  "); err != nil { // it was written just now
		panic(err)
	}
	return append(b.Bytes(), '\n')
}

// group is the last entry of a list if it has the matcher, so that hooks in turn
// with one matcher stand together; else a new one.
func group(list *node, matcher string, always bool) *node {
	if n := len(list.items); n > 0 {
		last := list.items[n-1].find("matcher")
		if last == nil && matcher == "" || last != nil && last.text == matcher {
			return list.items[n-1].listOf("hooks")
		}
	}
	entry := objectNode()
	if matcher != "" || always {
		entry.put("matcher", textNode(matcher))
	}
	list.push(entry)
	return entry.listOf("hooks")
}

func (c Conversion) writeAntigravity(hooks []gate.Hook) *node {
	of := objectNode()
	for _, h := range hooks {
		group(of.listOf(EventName(gate.Antigravity, h.Event)), h.Matcher.String(), true).push(handlerNode(&h))
	}
	return objectNode().put(cmp.Or(c.Agent, convertedName), of)
}

func writeClaudeCode(hooks []gate.Hook) *node {
	events := objectNode()
	for _, h := range hooks {
		n := handlerNode(&h)
		if h.Type == gate.PromptHook && (h.Event == gate.PostToolUse || h.Event == gate.PostToolUseFailure) {
			n.put("continueOnBlock", trueNode())
		}
		group(events.listOf(EventName(gate.ClaudeCode, h.Event)), h.Matcher.String(), false).push(n)
	}
	return objectNode().put("hooks", events)
}

// handlerNode is a hook in the form that antigravity and claude-code share.
func handlerNode(h *gate.Hook) *node {
	n := objectNode().put("type", textNode(string(h.Type)))
	n.put("command", optional(h.Command)).put("url", optional(h.URL)).put("prompt", optional(h.Prompt))
	if len(h.Headers) > 0 {
		headers := objectNode()
		for _, header := range h.Headers {
			headers.put(header.Name, textNode(header.Value))
		}
		n.put("headers", headers)
	}
	if h.Model != "" && h.Model != gate.DefaultModel {
		n.put("model", textNode(h.Model))
	}
	return n.put("timeout", numberNode(h.Timeout.Seconds()))
}

func writeAXCode(hooks []gate.Hook) *node {
	list := &node{kind: listKind}
	for _, h := range hooks {
		n := objectNode().put("event", textNode(EventName(gate.AXCode, h.Event))).put("matcher", optional(h.Matcher.String())).put("command", textNode(h.Command))
		if h.BlockOnFailure {
			n.put("blockOnFailure", trueNode())
		}
		if h.ReadsAnswer {
			n.put("protocol", textNode("claude-code"))
		}
		list.push(n)
	}
	return objectNode().put("hooks", list)
}

// writeAgent is an ExtendedAgent in YAML, its scripts as they are read best.
func (c Conversion) writeAgent(hooks []gate.Hook) []byte {
	events := objectNode()
	for _, h := range hooks {
		n := objectNode().put("type", textNode(string(h.Type)))
		if h.Event.ForTool() {
			n.put("matcher", textNode(h.Matcher.String()))
		}
		n.put("prompt", optional(h.Prompt)).put("command", optional(h.Command)).put("script", optional(h.Script))
		if h.Model != "" && h.Model != gate.DefaultModel {
			n.put("model", textNode(h.Model))
		}
		n.put("timeout", numberNode(h.Timeout.Seconds()))
		if h.FailMode == gate.FailBlock {
			n.put("failMode", textNode(string(gate.FailBlock)))
		}
		events.listOf(string(h.Event)).push(n)
	}
	doc := objectNode().put("api_version", textNode(apiVersion)).put("kind", textNode(extendedAgent)).
		put("metadata", objectNode().put("name", textNode(cmp.Or(c.Agent, convertedName)))).
		put("spec", objectNode().put("hooks", events))
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(doc.yaml()); err != nil { // it was made just now
		panic(fmt.Errorf("converted agent: %w", err))
	}
	return b.Bytes()
}

func (n *node) yaml() *yaml.Node {
	switch n.kind {
	case objectKind:
		y := &yaml.Node{Kind: yaml.MappingNode}
		for _, f := range n.fields {
			y.Content = append(y.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: f.name}, f.value.yaml())
		}
		return y
	case listKind:
		y := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range n.items {
			y.Content = append(y.Content, item.yaml())
		}
		return y
	case textKind:
		y := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: n.text}
		switch lines := strings.Contains(n.text, "\n"); {
		case lines && literal(n.text):
			y.Style = yaml.LiteralStyle
		case lines || strings.ContainsFunc(n.text, unprintable):
			y.Style = yaml.DoubleQuotedStyle
		}
		return y
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: n.text}
}

// literal reports whether a text of several lines keeps all of itself in a
// block: no space is lost at its ends, and no character needs an escape.
func literal(s string) bool {
	lines := strings.Split(s, "\n")
	return !strings.HasPrefix(s, " ") && !strings.HasPrefix(s, "\n") && !slices.ContainsFunc(lines, func(l string) bool { return strings.HasSuffix(l, " ") }) &&
		!strings.ContainsFunc(s, unprintable)
}

func unprintable(r rune) bool {
	return r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff)
}
