package gate

import (
	"strings"
	"testing"
)

func TestHeaderFault(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"Authorization", "Bearer a b", ""},
		{"x-team_1", "", ""},
		{"X-Umlaut", "ü\ta", ""},
		{"Content-Type", "application/json", ""},
		{"", "a", "no name"},
		{"X Y", "a", "no name"},
		{"X:", "a", "no name"},
		{"X\r\nY", "a", "no name"},
		{"Ü", "a", "no name"},
		{"HOST", "a", "cannot be set"},
		{"Connection", "close", "cannot be set"},
		{"content-length", "0", "cannot be set"},
		{"Accept-Encoding", "br", "cannot be set"},
		{"proxy-connection", "a", "cannot be set"},
		{"X", "secret\r\nY: b", "line break"},
		{"X", "secret\x00", "control character"},
		{"X", "secret\x7f", "control character"},
		{"X", "secret ", "white space"},
		{"X", strings.Repeat("s", 8<<10), "too long"},
	} {
		got := HeaderFault(c.name, c.value)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.Contains(got, "secret") {
			t.Errorf("%q: %q is %q, want %q", c.name, c.value, got, c.want)
		}
	}
}
