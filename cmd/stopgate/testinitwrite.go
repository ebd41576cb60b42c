package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"stopgate/gate"
)

// createNew writes a file that is not there yet.
func createNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a file to commit, not a secret
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// wantOf is a decision as a test wants it.
func wantOf(d gate.Decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n      decision: %s\n", d.Outcome)
	for _, f := range []struct{ key, text string }{{"reason", d.Reason}, {"context", d.AdditionalContext}} {
		if f.text != "" {
			fmt.Fprintf(&b, "      %s: %s\n", f.key, scalar(f.text))
		}
	}
	if len(d.Hooks) > 0 {
		b.WriteString("      hooks:\n")
	}
	for _, v := range d.Hooks {
		fmt.Fprintf(&b, "        %s: %s\n", scalar(v.Name), v.Outcome)
	}
	return b.String()
}

// written is the test file.
func (f draftFile) written() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# stopgate test FILE runs this; docs/testing-hooks.md has every key.\nspec: %s\n", scalar(f.spec))
	if len(f.hosts) > 0 {
		fmt.Fprintf(&b, "allow_hosts: %s\n", inline(f.hosts))
	}
	b.WriteString("tests:\n")
	for _, d := range f.cases {
		if d.fill {
			b.WriteString(d.instructions())
		}
		event := maps.Clone(d.event)
		delete(event, talkKey)
		fmt.Fprintf(&b, "  - name: %s\n    event: %s\n", scalar(d.name), inline(event))
		if talk, there := d.event[talkKey].(draftTalk); there {
			fmt.Fprintf(&b, "    transcript: %s\n", talk.written())
		}
		if len(d.model) > 0 {
			fmt.Fprintf(&b, "    model:\n      %s\n", strings.Join(d.model, "\n      "))
		}
		for i, body := range d.http {
			fmt.Fprintf(&b, "%s      - body: %s\n", map[bool]string{true: "    http:\n"}[i == 0], body)
		}
		fmt.Fprintf(&b, "    want:%s", d.want)
	}
	return b.Bytes()
}

// plainScalar is a text that YAML reads as that text without quotes.
var plainScalar = regexp.MustCompile(`\A[A-Za-z][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*\z`)

// scalar is a text in YAML: plain where that is safe, else as JSON has it, which
// is YAML too.
func scalar(s string) string {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
	default:
		if plainScalar.MatchString(s) {
			return s
		}
	}
	return inline(s)
}

// inline is a value as JSON, spaced for a reader.
func inline(v any) string {
	text, err := gate.PlainJSON(v)
	if err != nil { // texts and maps of them have a JSON form
		panic(err)
	}
	fields, isObject := v.(map[string]any)
	if !isObject {
		return string(text)
	}
	var parts []string
	first := []string{"hook_event_name", "final_output", "prompt", "tool_name", "tool_input", "tool_result"}
	rank := func(key string) int { // of the others each stands behind these
		if i := slices.Index(first, key); i >= 0 {
			return i
		}
		return len(first)
	}
	for _, key := range slices.SortedFunc(maps.Keys(fields), func(a, b string) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a, b)) }) {
		parts = append(parts, scalar(key)+": "+inline(fields[key]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
