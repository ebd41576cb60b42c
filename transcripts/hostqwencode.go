package transcripts

import "encoding/json"

// qwenCode reads Qwen Code's session files, ~/.qwen/projects/…/chats/ID.jsonl:
// a tree as Claude Code's, its messages in parts as the Gemini API has them. Every
// line names the version that wrote it.
type qwenCode struct {
	writer
	tree tree
}

func (q *qwenCode) line(text []byte, at int64) error {
	var l treeLine
	var kind, version []byte
	whole := members(text, func(key, value []byte) {
		switch string(key) {
		case "type":
			kind = value
		case "uuid":
			l.id = value
		case "parentUuid":
			l.parent = value
		case "isSidechain":
			if string(value) == "true" {
				l.flags |= side
			}
		case "version":
			version = value
		}
	})
	if !whole {
		return errNoMessage
	}
	q.is(version)
	switch {
	case string(kind) == `"user"` || string(kind) == `"assistant"`:
		l.flags |= talk
	case string(kind) == `"tool_result"`:
		l.flags |= talk | result
	case l.id == nil:
		return nil
	}
	return q.tree.add(l, extentOf(text, at))
}

func (q *qwenCode) held() int { return q.tree.held() }

func (q *qwenCode) chosen() []extent { return q.tree.chosen() }

func (q *qwenCode) steps(text []byte) ([]step, error) {
	var l struct {
		Type    string `json:"type"`
		UUID    string `json:"uuid"`
		Message struct {
			Parts json.RawMessage `json:"parts"`
		} `json:"message"`
		ToolCallResult struct {
			Status string `json:"status"`
		} `json:"toolCallResult"`
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, err
	}
	parts, err := geminiParts(l.Message.Parts)
	if err != nil {
		return nil, err
	}
	role := user
	if l.Type == assistant {
		role = assistant
	}
	steps := stepsOf(parts, role, l.UUID)
	for i := range steps {
		if s := &steps[i]; s.kind == results && l.ToolCallResult.Status == "error" {
			s.failed = true
		}
	}
	return steps, nil
}
