package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// A terminal that the log is read on obeys nothing in it; it says what it said.
func TestLogIsVisible(t *testing.T) {
	const text = "a\u202egnp.exe\u2066\x1b[2J\u009b"
	var out bytes.Buffer
	newLog(&out).With("of", text).Error("failed", "reason", text)
	if strings.ContainsAny(out.String(), "\u202e\u2066\x1b\u009b") || strings.Count(out.String(), `\u202e`) != 2 {
		t.Errorf("%q", out.String())
	}
	var line struct{ Of, Reason string }
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Of != text || line.Reason != text {
		t.Errorf("%+v, %v", line, err)
	}
}
