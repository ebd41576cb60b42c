package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"stopgate/wire/contracts"
)

// Blocks reports whether the host takes an answer as a block whose reason has
// the mark: an answer is read as the host reads it, so that text around the
// JSON, a missing key or one too many is no block (EFFECTS §3). The error says
// what is wrong with it.
func Blocks(event contracts.Event, answer []byte, mark string) error {
	if strings.TrimSpace(string(answer)) == "" {
		return errors.New("it says nothing, which is no objection")
	}
	var got any
	if err := json.Unmarshal(answer, &got); err != nil {
		return fmt.Errorf("it is not JSON alone: %w", err)
	}
	var want any
	if err := json.Unmarshal([]byte(event.Answers.Block), &want); err != nil || !carriesReason(want) {
		return fmt.Errorf("%s cannot block anything", event.Host)
	}
	if !alike(want, got, mark) {
		return fmt.Errorf("it is no block as the host takes one, with the mark in its reason")
	}
	return nil
}

// Unobjected reports whether the host takes an answer as no objection, and as
// nothing else: no context, no text for the model. The error says what is wrong.
func Unobjected(event contracts.Event, answer []byte) error {
	said := strings.TrimSpace(string(answer))
	if said == "" && event.Answers.NoObjection == "" {
		return nil
	}
	var got, want any
	if json.Unmarshal([]byte(said), &got) == nil && json.Unmarshal([]byte(event.Answers.NoObjection), &want) == nil && alike(want, got, "") {
		return nil
	}
	return errors.New("it is neither a block nor no objection, as the host takes them")
}

// alike compares an answer with the contract's, whose REASON stands for any
// text with the mark.
func alike(want, got any, mark string) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for key := range w {
			if v, ok := g[key]; !ok || !alike(w[key], v, mark) {
				return false
			}
		}
		return true
	case string:
		g, ok := got.(string)
		if strings.Contains(w, "REASON") {
			return ok && strings.Contains(g, mark)
		}
		return ok && g == w
	}
	return false
}

func carriesReason(want any) bool {
	switch w := want.(type) {
	case map[string]any:
		for _, v := range w {
			if carriesReason(v) {
				return true
			}
		}
	case string:
		return strings.Contains(w, "REASON")
	}
	return false
}
