package transcripts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"stopgate/gate"
)

// message is one message of a conversation, in the shape that chat APIs share.
// Fields that are not listed are ignored.
type message struct {
	Role       string     `json:"role"`
	Content    content    `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
	Name       string     `json:"name"`
}

// toolCall is {id, function:{name, arguments}}, or the flat {id, name,
// arguments} or {id, name, input}. Arguments are a value, or a string of JSON.
type toolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`
	Function  struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

func (c *toolCall) name() string {
	if c.Function.Name != "" {
		return c.Function.Name
	}
	return c.Name
}

func (c *toolCall) arguments() json.RawMessage {
	for _, a := range []json.RawMessage{c.Function.Arguments, c.Arguments, c.Input} {
		if len(a) > 0 {
			return a
		}
	}
	return nil
}

// content is a text, or an array of parts; null and absent are no parts.
type content []part

// part of a content: a text, a tool call or a tool result; of other kinds
// (images, files) only the kind is kept.
type part struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	ToolUseID string `json:"tool_use_id"`
	// Content of a tool result, a content that is read when it is rendered:
	// reading it here, at every depth, would take time squared.
	Content json.RawMessage `json:"content"`
	toolCall
}

func (c *content) UnmarshalJSON(b []byte) error {
	*c = nil
	switch b[0] {
	case 'n':
		return nil
	case '"':
		*c = content{{Type: "text"}}
		return json.Unmarshal(b, &(*c)[0].Text)
	case '[':
		return json.Unmarshal(b, (*[]part)(c))
	}
	return errors.New("content must be a string or an array of parts")
}

func (p *part) UnmarshalJSON(b []byte) error {
	*p = part{}
	switch b[0] {
	case '"':
		p.Type = "text"
		return json.Unmarshal(b, &p.Text)
	case '{':
		type fields part // without this method
		return json.Unmarshal(b, (*fields)(p))
	}
	return errors.New("a part of content must be a string or an object")
}

// parseMessage reads one message. An error is a *[gate.Error] with
// CodeInvalidJSON, or CodeValidation where the JSON is no message.
func parseMessage(b []byte) (message, error) {
	if crowded(b) {
		return message{}, gate.Errorf(gate.CodeValidation, "the message holds too many values: a hundred thousand in one message is no conversation")
	}
	var m message
	err := json.Unmarshal(bytes.TrimPrefix(b, []byte(byteOrderMark)), &m)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return message{}, gate.Errorf(gate.CodeInvalidJSON, "not valid JSON, at byte %d: %w", syntax.Offset, err)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "" {
			return message{}, gate.Errorf(gate.CodeValidation, "a message must be an object, not a JSON %s", wrong.Value)
		}
		return message{}, gate.Errorf(gate.CodeValidation, "the message's %s must not be a JSON %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return message{}, gate.Errorf(gate.CodeValidation, "the message is malformed: %w", err)
	}
	if m.Role == "" {
		return message{}, &gate.Error{Code: gate.CodeValidation, Message: "the message has no role"}
	}
	return m, nil
}

func blank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

// skippedLine ends the view of a host's file in which lines were no messages.
func skippedLine(n int64) string {
	return fmt.Sprintf("%slines left out since they are no messages: %d%s\n", markBegin, n, markEnd)
}
