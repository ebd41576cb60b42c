package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"stopgate/gate"
)

// A directory is read anew whenever one file changes; what is to be said of the
// others was said.
func TestFindingsAreLoggedOncePerChange(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	warning := func(message string) gate.Finding {
		return gate.Finding{Severity: gate.SeverityWarning, Line: 1, Column: 1, Message: message}
	}
	var told map[string][]gate.Finding
	for _, c := range []struct {
		name     string
		findings map[string][]gate.Finding
		want     int
	}{
		{"first", map[string][]gate.Finding{"a": {warning("x")}, "b": {warning("y")}}, 2},
		{"the same", map[string][]gate.Finding{"a": {warning("x")}, "b": {warning("y")}}, 0},
		{"one has changed", map[string][]gate.Finding{"a": {warning("x"), warning("z")}, "b": {warning("y")}}, 2},
		{"one is mended", map[string][]gate.Finding{"b": {warning("y")}}, 0},
		{"and broken again", map[string][]gate.Finding{"a": {warning("x")}, "b": {warning("y")}}, 1},
	} {
		out.Reset()
		logFindings(log, c.findings, told)
		told = c.findings
		if got := strings.Count(out.String(), "level=WARN"); got != c.want {
			t.Errorf("%s: %d lines, want %d: %s", c.name, got, c.want, out.String())
		}
	}
}
