package calibrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Run is one labelled conversation, up to the answer that the gate is asked
// about.
type Run struct {
	ID  string
	Bad bool // label fail: the gate should reject the answer
	// FinalOutput is the text of the last message of the assistant; empty where
	// that only calls a tool.
	FinalOutput string
	// Messages is the conversation as a JSON array, to the last message of the
	// assistant and the results of its calls. What came later was not there yet.
	Messages json.RawMessage
}

// maxID is how long the id of a run may be, in bytes.
const maxID = 256

// Words of a set.
const (
	labelPass, labelFail = "pass", "fail"
	roleAssistant        = "assistant"
)

// ReadRun reads one line of a set: {"id", "label": "pass" or "fail", "messages":
// [{role, content, tool_calls, …}]}. Other fields are ignored, also those whose
// names differ in case alone. A byte order mark before it is none of it. system, where it is
// not empty, is put before the conversation as a message of the system. An error
// says what is wrong with the line.
func ReadRun(line []byte, system string) (Run, error) {
	// A map: the fields of a struct are found in any case, and the last wins.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(line, []byte("\ufeff")), &fields); err != nil {
		return Run{}, fmt.Errorf("not a JSON object: %w", err)
	}
	var l struct {
		ID, Label string
		Messages  []json.RawMessage
	}
	for _, f := range []struct {
		name string
		to   any
	}{{"id", &l.ID}, {"label", &l.Label}, {"messages", &l.Messages}} {
		if fields[f.name] == nil {
			continue
		}
		err := json.Unmarshal(fields[f.name], f.to)
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return Run{}, fmt.Errorf("%s must not be a JSON %s", f.name, wrong.Value)
		}
		if err != nil {
			return Run{}, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	switch {
	case l.ID == "":
		return Run{}, errors.New("id is missing")
	case len(l.ID) > maxID || strings.ContainsFunc(l.ID, unicode.IsControl):
		return Run{}, fmt.Errorf("id must be at most %d bytes without control characters", maxID)
	case l.Label != labelPass && l.Label != labelFail:
		return Run{}, fmt.Errorf("label is %q, want \"pass\" or \"fail\"", short(l.Label))
	}
	messages, final, err := upToAnswer(l.Messages)
	if err != nil {
		return Run{}, err
	}
	if system != "" {
		first, err := json.Marshal(map[string]string{"role": "system", "content": system})
		if err != nil {
			return Run{}, err
		}
		messages = append([]json.RawMessage{first}, messages...)
	}
	conversation, err := json.Marshal(messages)
	if err != nil {
		return Run{}, err
	}
	return Run{ID: l.ID, Bad: l.Label == labelFail, FinalOutput: final, Messages: conversation}, nil
}

// upToAnswer is the messages up to the assistant's last, with the results of its
// calls, and that message's text.
func upToAnswer(all []json.RawMessage) ([]json.RawMessage, string, error) {
	end, final := 0, ""
	answered := true // results still belong to the last message of the assistant
	for i, raw := range all {
		var m struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if err := json.Unmarshal(raw, &m); err != nil || m.Role == "" {
			return nil, "", fmt.Errorf("messages[%d] is not an object with a role", i)
		}
		switch {
		case m.Role == roleAssistant:
			text, err := textOf(m.Content)
			if err != nil {
				return nil, "", fmt.Errorf("messages[%d].content %w", i, err)
			}
			end, final, answered = i+1, text, false
		case m.Role != "tool" && m.Role != "function":
			answered = true
		case !answered:
			end = i + 1
		}
	}
	if end == 0 {
		return nil, "", errors.New("messages hold none of the role \"assistant\"")
	}
	return all[:end], final, nil
}

// textOf is a content's text: a string, or the texts of an array of parts.
func textOf(content json.RawMessage) (string, error) {
	content = bytes.TrimSpace(content)
	if len(content) == 0 || string(content) == "null" {
		return "", nil
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text, nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil {
		return "", errors.New("must be a string or an array of parts")
	}
	var texts []string
	for _, raw := range parts {
		var part struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &text) == nil {
			texts = append(texts, text)
		} else if json.Unmarshal(raw, &part) == nil && part.Type == "text" {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n"), nil
}

func short(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}
