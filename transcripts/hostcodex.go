package transcripts

import (
	"encoding/json"
	"strings"
)

// codex reads Codex's rollout files, ~/.codex/sessions/…/rollout-….jsonl. Lines
// of type response_item are what the model was sent and what it said; the
// event_msg lines tell the same again. The first line, session_meta, names the
// version that began the session.
type codex struct {
	writer
	items []extent
}

func (c *codex) line(text []byte, at int64) error {
	var kind, payload []byte
	whole := members(text, func(key, value []byte) {
		switch string(key) {
		case "type":
			kind = value
		case "payload":
			payload = value
		}
	})
	switch {
	case !whole:
		return errNoMessage
	case string(kind) == `"session_meta"`:
		c.is(member(payload, "cli_version"))
		return nil
	case string(kind) != `"response_item"`:
		return nil
	case len(c.items) == maxSpans:
		return errTooManyLines
	}
	c.items = append(c.items, extentOf(text, at))
	return nil
}

func (c *codex) held() int { return len(c.items) }

func (c *codex) chosen() []extent { return c.items }

type codexItem struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	// Calls: the arguments are a string of JSON, an input is a text.
	Name      string          `json:"name"`
	CallID    string          `json:"call_id"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`
	Action    json.RawMessage `json:"action"`
	Output    json.RawMessage `json:"output"`
	Metadata  struct {
		Items []struct {
			Provenance struct {
				Type string `json:"type"`
			} `json:"provenance"`
		} `json:"content_item_metadata"`
	} `json:"internal_chat_message_metadata_passthrough"`
}

func (c *codex) steps(text []byte) ([]step, error) {
	var l struct {
		Payload codexItem `json:"payload"`
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, err
	}
	item := &l.Payload
	switch item.Type {
	case "message":
		return item.message()
	case "function_call", "custom_tool_call":
		call := toolCall{ID: item.CallID, Name: item.Name, Arguments: item.Arguments, Input: item.Input}
		return []step{{kind: calls, role: assistant, toolCall: call}}, nil
	case "local_shell_call", "web_search_call":
		call := toolCall{ID: item.CallID, Name: strings.TrimSuffix(item.Type, "_call"), Arguments: item.Action}
		return []step{{kind: calls, role: assistant, toolCall: call}}, nil
	case "function_call_output", "custom_tool_call_output":
		return []step{codexResult(item)}, nil
	}
	return nil, nil
}

func (item *codexItem) message() ([]step, error) {
	if item.Role != user && item.Role != assistant { // developer, system: the host's
		return nil, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(item.Content, &parts); err != nil {
		return nil, err
	}
	var steps []step
	for i, p := range parts {
		switch {
		case item.Role == user && item.byHost(i, p.Text):
			steps = append(steps, step{kind: hears})
		case p.Text != "":
			steps = append(steps, step{kind: says, role: item.Role, message: item.ID, text: p.Text})
		case p.Type != "input_text" && p.Type != "output_text":
			steps = append(steps, step{kind: shows, role: item.Role, message: item.ID, shown: p.Type})
		}
	}
	return steps, nil
}

// byHost reports whether the i-th part of a user's message was written by Codex:
// its environment, instructions, reasons of hooks. Codex says who wrote a part;
// where it does not, older versions are known by how such a part begins.
func (item *codexItem) byHost(i int, text string) bool {
	if i < len(item.Metadata.Items) {
		if by := item.Metadata.Items[i].Provenance.Type; by != "" {
			return by == "harness" || by == "skills"
		}
	}
	for _, tag := range []string{"<environment_context>", "<user_instructions>", "<hook_prompt ", "<permissions instructions>", "# AGENTS.md instructions"} {
		if strings.HasPrefix(text, tag) {
			return true
		}
	}
	return false
}

// codexResult reads an output: a text, an array of parts, or {content, success}.
func codexResult(item *codexItem) step {
	s := step{kind: results, toolCall: toolCall{ID: item.CallID}}
	var wrapped struct {
		Content json.RawMessage `json:"content"`
		Success *bool           `json:"success"`
	}
	if json.Unmarshal(item.Output, &wrapped) == nil && wrapped.Content != nil {
		s.text = resultText(wrapped.Content)
		s.failed = wrapped.Success != nil && !*wrapped.Success
		return s
	}
	s.text = resultText(item.Output)
	return s
}
