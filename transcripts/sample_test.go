package transcripts

import (
	"strings"
	"testing"
)

// A search goes by what is rare in the text at hand, not in texts at large.
func TestSearchGoesByTheRarest(t *testing.T) {
	for _, tc := range []struct{ name, text, pattern, want string }{
		{"of ordered literals", strings.Repeat("a connection of some length\n", 100), "connection.*ERROR", "ERROR"},
		{"the other way round", strings.Repeat("ERROR\n", 100), "connection.*ERROR", "connection"},
		{"before a class", strings.Repeat("the deployment\n", 100), `deployment\s+[0-9] of QQ`, " of QQ"},
		{"without case", strings.Repeat("The Deployment\n", 100), `(?i)deployment[0-9](?:alpha|omega)`, "alpha"},
		{"an empty text: the first", "", "connection.*ERROR", "connection"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := compile(tc.pattern)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(p.rarest([]byte(tc.text))[0].text); got != tc.want {
				t.Errorf("it goes by %q", got)
			}
		})
	}
	n := newNeedle([]byte("error"), false)
	seen := frequenciesOf([]byte(strings.Repeat("eror", 10) + "o"))
	seen['o'] = 0
	if n = n.fittedTo(&seen); n.text[n.rare] != 'o' {
		t.Errorf("the rarest byte is %q", n.text[n.rare])
	}
}
