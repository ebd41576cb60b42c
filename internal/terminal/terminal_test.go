package terminal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"stopgate/internal/terminal"
)

// What turns the direction of writing, and what a terminal takes for an order.
const obeyed = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\x1b\x07\r\x00\x7f\u009b"

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\né שלום 日本 🙂": "a\tb\né שלום 日本 🙂",
		"\x1b[31mred":       "␛[31mred",
		"a\u202etxt.exe":    "a\ufffdtxt.exe",
		"\u009b31m\x7f":     "\ufffd31m\ufffd",
	} {
		if got := terminal.Visible(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := terminal.Visible(obeyed); strings.ContainsAny(got, obeyed) {
		t.Errorf("%q", got)
	}
}

// A line of JSON stands for what it stood for, and is the same line where it can be.
func TestInJSON(t *testing.T) {
	for _, text := range []string{"plain", "é שלום 日本 🙂 \\ \" \t", obeyed, "\\\u202e"} {
		line, err := json.Marshal(map[string]string{"of " + text: text})
		if err != nil {
			t.Fatal(err)
		}
		got := string(terminal.InJSON(append(line, '\n')))
		if strings.ContainsAny(got, obeyed) || !strings.HasSuffix(got, "}\n") {
			t.Errorf("%q became %q", line, got)
		}
		var back map[string]string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back["of "+text] != text {
			t.Errorf("%q stands for %q, %v", got, back, err)
		}
		if !strings.ContainsAny(string(line), obeyed) && got != string(line)+"\n" {
			t.Errorf("%q became %q", line, got)
		}
	}
}
