package transcripts

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzPastString compares with the plainest reading of a JSON string.
func FuzzPastString(f *testing.F) {
	for _, text := range []string{`"a"`, `"a\"b" x`, `"\\"`, `"\\\""`, `"`, `"\`, `"\"`, `"a\"\`, strings.Repeat(`"\"a\\`, 50) + `" "`,
		`"\"` + strings.Repeat("a", 126) + `\"" "`, `"\"` + strings.Repeat("a", 127) + `\`, `"\"` + strings.Repeat("a", 127) + `\\""`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		text = append([]byte{'"'}, bytes.TrimPrefix(text, []byte{'"'})...)
		want := -1
		for i := 1; i < len(text) && want < 0; i++ {
			switch text[i] {
			case '"':
				want = i + 1
			case '\\':
				i++
			}
		}
		if got := pastString(text, 0); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	})
}
