package record

import (
	"encoding/json"
	"fmt"

	"stopgate/gate"
)

// EncodeProjects makes them a JSON object, or nothing of nil.
func EncodeProjects(p gate.Projects) string {
	if p == nil {
		return ""
	}
	text, _ := json.Marshal(p) // of texts: it cannot fail
	return string(text)
}

// DecodeProjects reads what [EncodeProjects] made.
func DecodeProjects(text string) (p gate.Projects, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("projects of a session: %w", err)
	}
	return p, nil
}
