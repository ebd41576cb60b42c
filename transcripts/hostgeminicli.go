package transcripts

import (
	"encoding/json"
	"hash/maphash"
	"strings"
)

// geminiCLI reads Gemini CLI's session files, ~/.gemini/tmp/…/chats/….jsonl. A
// record with an id that was there before replaces it; {"$set":{"messages":…}}
// replaces them all.
type geminiCLI struct {
	records []extent
	seed    maphash.Seed
	ids     map[uint64]int32 // of a record: its index
	begun   bool             // a message was seen
	setup   uint64           // id of the message by which the CLI sets up a session
}

func (g *geminiCLI) line(text []byte, at int64) error {
	if g.ids == nil {
		g.seed, g.ids = maphash.MakeSeed(), map[uint64]int32{}
	}
	var kind, id, patch []byte
	whole := members(text, func(key, value []byte) {
		switch string(key) {
		case "type":
			kind = value
		case "id":
			id = value
		case "$set":
			patch = value
		}
	})
	switch {
	case !whole:
		return errNoMessage
	case patch != nil:
		return g.patch(text, patch, at)
	case kind == nil: // the file's head
		return nil
	}
	g.begun = true
	return g.put(id, extentOf(text, at))
}

// version is empty: neither a line nor a hook of Gemini CLI names it.
func (g *geminiCLI) version() string { return "" }

// put adds a record, or puts it in the place of the one with its id.
func (g *geminiCLI) put(id []byte, sp extent) error {
	hash := maphash.Bytes(g.seed, id)
	switch i, known := g.ids[hash]; {
	case id != nil && hash == g.setup:
		return nil
	case id != nil && known:
		g.records[i] = sp
		return nil
	case len(g.records) == maxSpans:
		return errTooManyLines
	case id != nil:
		g.ids[hash] = int32(len(g.records))
	}
	g.records = append(g.records, sp)
	return nil
}

// maxPatch bounds the messages that one line may set.
const maxPatch = 1 << 18

// patch replaces all messages, if it is they that are set. One message of the
// user before any other is the CLI's own, by which it sets up the session.
func (g *geminiCLI) patch(text, patch []byte, at int64) error {
	var messages []byte
	members(patch, func(key, value []byte) {
		if string(key) == "messages" {
			messages = value
		}
	})
	if messages == nil {
		return nil
	}
	var ids, kinds, records [][]byte
	whole := elements(messages, func(record []byte) {
		var id, kind []byte
		members(record, func(key, value []byte) {
			switch string(key) {
			case "id":
				id = value
			case "type":
				kind = value
			}
		})
		if len(records) <= maxPatch {
			ids, kinds, records = append(ids, id), append(kinds, kind), append(records, record)
		}
	})
	if !whole || len(records) > maxPatch {
		return errNoMessage
	}
	if !g.begun && len(records) == 1 && string(kinds[0]) == `"user"` {
		g.begun = true
		if ids[0] != nil { // it may be set again with all the others
			g.setup = maphash.Bytes(g.seed, ids[0])
		}
		return nil
	}
	g.begun = true
	g.records = g.records[:0]
	clear(g.ids)
	for i, r := range records {
		if err := g.put(ids[i], extentOf(r, at+offsetIn(text, r))); err != nil {
			return err
		}
	}
	return nil
}

func (g *geminiCLI) held() int { return len(g.records) }

func (g *geminiCLI) chosen() []extent { return g.records }

func (g *geminiCLI) steps(text []byte) ([]step, error) {
	var r struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		Content   json.RawMessage `json:"content"`
		ToolCalls []struct {
			ID     string          `json:"id"`
			Name   string          `json:"name"`
			Args   json.RawMessage `json:"args"`
			Status string          `json:"status"`
			Result json.RawMessage `json:"result"`
		} `json:"toolCalls"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	role := user
	switch r.Type {
	case "user":
	case "gemini":
		role = assistant
	default: // info, warning, error: what the CLI shows
		return nil, nil
	}
	parts, err := geminiParts(r.Content)
	if err != nil {
		return nil, err
	}
	var steps []step
	for _, s := range stepsOf(parts, role, r.ID) {
		switch {
		case s.kind == says && role == user && strings.HasPrefix(s.text, "<session_context>"):
			s = step{kind: hears}
		case s.kind == results:
			s.again = true // the call's own record has it as well
		}
		steps = append(steps, s)
	}
	for _, c := range r.ToolCalls {
		steps = append(steps, step{kind: calls, role: role, toolCall: toolCall{ID: c.ID, Name: c.Name, Arguments: c.Args}})
		given, err := geminiParts(c.Result)
		if err != nil {
			return nil, err
		}
		for _, s := range stepsOf(given, role, r.ID) {
			s.failed = c.Status == "error" || c.Status == "cancelled"
			if s.kind == says || s.kind == shows { // beside the response: an image, a text
				s = step{kind: results, toolCall: toolCall{ID: c.ID}, text: s.text, failed: s.failed}
			}
			steps = append(steps, s)
		}
	}
	return steps, nil
}

// geminiPart is a part of a content, as the Gemini API has it; qwen-code's files
// have the same.
type geminiPart struct {
	Text         string `json:"text"`
	Thought      bool   `json:"thought"`
	FunctionCall *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	FunctionResponse *struct {
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
	InlineData *struct {
		MIMEType string `json:"mimeType"`
	} `json:"inlineData"`
	FileData *struct {
		MIMEType string `json:"mimeType"`
	} `json:"fileData"`
}

// geminiParts reads a content: a text, a part, an array of parts, or nothing.
func geminiParts(raw json.RawMessage) ([]geminiPart, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	switch raw[0] {
	case '"':
		parts := make([]geminiPart, 1)
		return parts, json.Unmarshal(raw, &parts[0].Text)
	case '{':
		parts := make([]geminiPart, 1)
		return parts, json.Unmarshal(raw, &parts[0])
	}
	var parts []geminiPart
	err := json.Unmarshal(raw, &parts)
	return parts, err
}

func stepsOf(parts []geminiPart, role, message string) []step {
	var steps []step
	for _, p := range parts {
		switch {
		case p.Thought:
		case p.FunctionCall != nil:
			c := p.FunctionCall
			steps = append(steps, step{kind: calls, role: role, toolCall: toolCall{ID: c.ID, Name: c.Name, Arguments: c.Args}})
		case p.FunctionResponse != nil:
			r := p.FunctionResponse
			text, failed := responseText(r.Response)
			steps = append(steps, step{kind: results, toolCall: toolCall{ID: r.ID, Name: r.Name}, text: text, failed: failed})
		case p.Text != "":
			steps = append(steps, step{kind: says, role: role, message: message, text: p.Text})
		case p.InlineData != nil:
			steps = append(steps, step{kind: shows, role: role, message: message, shown: p.InlineData.MIMEType})
		case p.FileData != nil:
			steps = append(steps, step{kind: shows, role: role, message: message, shown: p.FileData.MIMEType})
		}
	}
	return steps
}

// responseText reads a function's response: {output} or {error}, or any other
// value as its JSON.
func responseText(raw json.RawMessage) (text string, failed bool) {
	var r map[string]json.RawMessage
	if json.Unmarshal(raw, &r) == nil && len(r) == 1 {
		if r["output"] != nil {
			return resultText(r["output"]), false
		}
		if r["error"] != nil {
			return resultText(r["error"]), true
		}
	}
	return resultText(raw), false
}
