package transcripts

import (
	"encoding/json"
	"time"
)

// copilot reads Copilot CLI's events.jsonl. It is written a little late: what
// belongs to a Stop is complete once the hook.start of that Stop is there. The
// first line, session.start, names the version that began the session.
type copilot struct {
	writer
	events []extent
	// until, where it is not zero, ends the conversation at the last hook.start
	// of that moment.
	until   time.Time
	reached bool
	before  int // events before it
}

func (c *copilot) line(text []byte, at int64) error {
	var kind, data []byte
	whole := members(text, func(key, value []byte) {
		switch string(key) {
		case "type":
			kind = value
		case "data":
			data = value
		}
	})
	if !whole {
		return errNoMessage
	}
	switch string(kind) {
	case `"user.message"`, `"assistant.message"`, `"tool.execution_complete"`:
		if len(c.events) == maxSpans {
			return errTooManyLines
		}
		c.events = append(c.events, extentOf(text, at))
	case `"session.start"`:
		c.is(member(data, "copilotVersion"))
	case `"hook.start"`:
		if !c.until.IsZero() && hookMoment(data).Equal(c.until.Truncate(time.Millisecond)) {
			c.reached, c.before = true, len(c.events)
		}
	}
	return nil
}

// hookMoment is when a hook was started, by its own input: milliseconds, or RFC
// 3339. Zero if it does not say.
func hookMoment(data []byte) time.Time {
	var start struct {
		Input struct {
			Timestamp json.RawMessage `json:"timestamp"`
		} `json:"input"`
	}
	if json.Unmarshal(data, &start) != nil {
		return time.Time{}
	}
	var ms int64
	var t time.Time
	if json.Unmarshal(start.Input.Timestamp, &ms) == nil && ms != 0 {
		return time.UnixMilli(ms)
	}
	if json.Unmarshal(start.Input.Timestamp, &t) == nil {
		return t.Truncate(time.Millisecond)
	}
	return time.Time{}
}

func (c *copilot) held() int { return len(c.events) }

func (c *copilot) chosen() []extent {
	if c.until.IsZero() {
		return c.events
	}
	return c.events[:c.before]
}

func (c *copilot) steps(text []byte) ([]step, error) {
	var l struct {
		Type string `json:"type"`
		ID   string `json:"id"`
		Data struct {
			Content      string `json:"content"`
			ToolRequests []struct {
				ID        string          `json:"toolCallId"`
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"toolRequests"`
			Attachments []struct {
				Type string `json:"type"`
			} `json:"attachments"`
			ToolCallID string `json:"toolCallId"`
			Success    *bool  `json:"success"`
			Result     struct {
				Content json.RawMessage `json:"content"`
			} `json:"result"`
			Error json.RawMessage `json:"error"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, err
	}
	d := &l.Data
	if l.Type == "tool.execution_complete" {
		s := step{kind: results, toolCall: toolCall{ID: d.ToolCallID}, text: resultText(d.Result.Content)}
		s.failed = d.Success != nil && !*d.Success
		if s.text == "" {
			s.text = copilotError(d.Error)
		}
		return []step{s}, nil
	}
	role := user
	if l.Type == "assistant.message" {
		role = assistant
	}
	var steps []step
	if d.Content != "" {
		steps = append(steps, step{kind: says, role: role, message: l.ID, text: d.Content})
	}
	for _, a := range d.Attachments {
		steps = append(steps, step{kind: shows, role: role, message: l.ID, shown: a.Type})
	}
	for _, call := range d.ToolRequests {
		steps = append(steps, step{kind: calls, role: role, toolCall: toolCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments}})
	}
	return steps, nil
}

// copilotError is why a tool failed: {message, …}, or a text.
func copilotError(raw json.RawMessage) string {
	var e struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &e) == nil && e.Message != "" {
		return e.Message
	}
	return resultText(raw)
}
