package transcripts

import (
	"encoding/json"
	"path/filepath"
	"strings"
)

// claudeCode reads Claude Code's session files, ~/.claude/projects/…/ID.jsonl.
// Lines of type user and assistant are the conversation, a tree by parentUuid;
// several lines, with a part each, share one message.id. Lines of isSidechain
// are a sub-agent's: left out, unless the file is a sub-agent's own. Every line of
// the tree names the version that wrote it.
type claudeCode struct {
	writer
	tree tree
}

func (c *claudeCode) line(text []byte, at int64) error {
	var l treeLine
	var kind, message, version []byte
	whole := members(text, func(key, value []byte) {
		switch string(key) {
		case "type":
			kind = value
		case "uuid":
			l.id = value
		case "parentUuid":
			l.parent = value
		case "logicalParentUuid":
			l.logical = value
		case "isSidechain":
			if string(value) == "true" {
				l.flags |= side
			}
		case "message":
			message = value
		case "version":
			version = value
		}
	})
	if !whole {
		return errNoMessage
	}
	c.is(version)
	switch string(kind) {
	case `"user"`:
		l.flags |= talk
		if onlyResults(message) {
			l.flags |= result
		}
	case `"assistant"`:
		l.flags |= talk
		members(message, func(key, value []byte) {
			if string(key) == "id" {
				l.message = value
			}
		})
	default:
		if l.id == nil {
			return nil
		}
	}
	return c.tree.add(l, extentOf(text, at))
}

// onlyResults reports whether a message begins with a tool's result; then all of
// it is.
func onlyResults(message []byte) bool {
	found := false
	members(message, func(key, value []byte) {
		if string(key) != "content" {
			return
		}
		first := true
		elements(value, func(block []byte) {
			if first {
				members(block, func(key, value []byte) {
					found = found || string(key) == "type" && string(value) == `"tool_result"`
				})
			}
			first = false
		})
	})
	return found
}

func (c *claudeCode) held() int { return c.tree.held() }

func (c *claudeCode) chosen() []extent { return c.tree.chosen() }

type claudeBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

func (c *claudeCode) steps(text []byte) ([]step, error) {
	var l struct {
		Type      string `json:"type"`
		UUID      string `json:"uuid"`
		IsMeta    bool   `json:"isMeta"`
		IsSummary bool   `json:"isCompactSummary"`
		IsAPI     bool   `json:"isApiErrorMessage"`
		Message   struct {
			ID      string          `json:"id"`
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, err
	}
	blocks, err := claudeBlocks(l.Message.Content)
	if err != nil {
		return nil, err
	}
	role, message := l.Type, l.Message.ID
	if message == "" {
		message = l.UUID
	}
	switch {
	case l.IsMeta && role == user:
		return []step{{kind: hears}}, nil
	case l.IsMeta || l.IsAPI:
		return nil, nil
	case l.IsSummary: // what a compaction put in the place of the conversation before it
		role = "summary"
	}
	var steps []step
	for _, b := range blocks {
		switch b.Type {
		case "text":
			if b.Text != "" {
				steps = append(steps, step{kind: says, role: role, message: message, text: b.Text})
			}
		case "thinking", "redacted_thinking":
		case "tool_use", "server_tool_use", "mcp_tool_use":
			steps = append(steps, step{kind: calls, role: role, toolCall: toolCall{ID: b.ID, Name: b.Name, Input: b.Input}})
		case "tool_result":
			steps = append(steps, step{kind: results, toolCall: toolCall{ID: b.ToolUseID}, text: resultText(b.Content), failed: b.IsError})
		default:
			steps = append(steps, step{kind: shows, role: role, message: message, shown: b.Type})
		}
	}
	return steps, nil
}

// claudeBlocks reads a content: a text, or an array of blocks.
func claudeBlocks(raw json.RawMessage) ([]claudeBlock, error) {
	if len(raw) > 0 && raw[0] == '"' {
		b := claudeBlock{Type: "text"}
		err := json.Unmarshal(raw, &b.Text)
		return []claudeBlock{b}, err
	}
	var blocks []claudeBlock
	err := json.Unmarshal(raw, &blocks)
	return blocks, err
}

// ofSubAgent reports whether a file of Claude Code is a sub-agent's.
func ofSubAgent(path string) bool {
	return filepath.Base(filepath.Dir(path)) == "subagents" && strings.HasPrefix(filepath.Base(path), "agent-")
}

// subAgentFile is where Claude Code keeps the conversation of a sub-agent whose
// parent's file is given; false if the id can be no part of a name.
func subAgentFile(parent, id string) (string, bool) {
	session, ok := strings.CutSuffix(parent, ".jsonl")
	if !ok || !plainID(id) {
		return "", false
	}
	return filepath.Join(session, "subagents", "agent-"+id+".jsonl"), true
}

// plainID: up to 128 letters, digits, hyphens and underscores. As a regular
// expression it took 6 ms of every process's start.
func plainID(id string) bool {
	return id != "" && len(id) <= 128 && !strings.ContainsFunc(id, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && !(r >= '0' && r <= '9') && r != '-' && r != '_'
	})
}

// parentsFileLine begins the view of an event inside a sub-agent whose own file
// is not there.
const parentsFileLine = markBegin + "the sub-agent's own conversation was not found: this is its parent's" + markEnd + "\n"
