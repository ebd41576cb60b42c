package transcripts

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What was rendered and written as messages is rendered the same again: a test of a
// hook is about what the hook was asked about.
func TestWriteMessagesIsRenderedAgain(t *testing.T) {
	golden, err := os.ReadFile("testdata/deploy.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, text string }{
		// An escape inside a call's arguments, which are a text by now, is escaped once more.
		{"golden", strings.Replace(string(golden), "    \\=== user ===", "    user", 1)},
		{"nothing", ""},
		{"an empty message, and empty lines", "=== user ===\n=== assistant ===\n\n=== user ===\n\na\n\n\n"},
		{"names and ids", "=== user bob ===\nx\n=== tool (c1) ===\ny\n=== tool Bash (c1) ===\n{\n \"a\": 1\n}\n"},
		{"marks in a text", "=== user ===\n\\=== assistant calls Bash ===\n\\\\=== user ===\n\\ no mark\n"},
		{"a line longer than any buffer, with characters of several bytes", "=== user ===\nx" + strings.Repeat("äöü🎉", block) + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var messages strings.Builder
			if err := WriteMessages(&messages, strings.NewReader(c.text)); err != nil {
				t.Fatal(err)
			}
			var again []byte
			for line := range strings.Lines(messages.String()) {
				m, err := parseMessage([]byte(line))
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				again = m.render(again)
			}
			if diff := cmp.Diff(c.text, string(again)); diff != "" {
				t.Errorf("rendered again (-want +got):\n%s\nfrom\n%s", diff, messages.String())
			}
		})
	}
}

// What is no message in a view is none of anybody's; a result's failure is left out.
func TestWriteMessages(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a note of the view", "=== user ===\nx\n" + skippedLine(2),
			`{"role":"user","content":"x\n"}` + "\n" + `{"role":"note","content":"lines left out since they are no messages: 2"}` + "\n"},
		{"what stands before a marker", "x\n", `{"role":"note","content":"x\n"}` + "\n"},
		{"a failed result", "=== tool Bash (c) failed ===\nno\n", `{"role":"tool","name":"Bash","tool_call_id":"c","content":"no\n"}` + "\n"},
		{"a call", "=== assistant calls Bash (c) ===\n{\"command\":\"ls <a>\"}\n",
			`{"role":"assistant","tool_calls":[{"id":"c","name":"Bash","arguments":"{\"command\":\"ls <a>\"}\n"}]}` + "\n"},
		{"the end is cut", "=== user ===\nx", `{"role":"user","content":"x"}` + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got strings.Builder
			if err := WriteMessages(&got, strings.NewReader(c.text)); err != nil || got.String() != c.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got.String(), c.want)
			}
		})
	}
}
