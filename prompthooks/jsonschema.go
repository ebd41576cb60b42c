package prompthooks

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// MarshalJSON writes the schema as JSON Schema, the properties in their Order
// and the others, by name, after them: a model writes what it is held to in
// the order of its schema. No object has other properties than those named, as
// the structured outputs of OpenAI and Anthropic ask for.
func (s *Schema) MarshalJSON() ([]byte, error) {
	if s == nil {
		return []byte("null"), nil
	}
	var properties json.RawMessage
	var closed *bool
	if s.Type == "object" {
		closed = new(bool)
		var b bytes.Buffer
		b.WriteByte('{')
		for i, name := range s.names() {
			property, err := json.Marshal(s.Properties[name])
			if err != nil {
				return nil, err
			}
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(quoted(name))
			b.WriteByte(':')
			b.Write(property)
		}
		b.WriteByte('}')
		properties = b.Bytes()
	}
	return json.Marshal(struct {
		Type        string          `json:"type"`
		Description string          `json:"description,omitempty"`
		Enum        []string        `json:"enum,omitempty"`
		Items       *Schema         `json:"items,omitempty"`
		Properties  json.RawMessage `json:"properties,omitempty"`
		Required    []string        `json:"required,omitempty"`
		Closed      *bool           `json:"additionalProperties,omitempty"`
	}{s.Type, s.Description, s.Enum, s.Items, properties, s.Required, closed})
}

// names of the properties, in Order.
func (s *Schema) names() []string {
	var names []string
	for _, name := range s.Order {
		if s.Properties[name] != nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
