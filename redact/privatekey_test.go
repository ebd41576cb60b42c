package redact_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Heads of private keys, as tools show them: %s is a line of the key, and what follows
// the key begins with "then".
var cutKeys = map[string]string{
	"numbered":             "     1\t-----BEGIN RSA PRIVATE KEY-----\n     2\t%[1]s\n     3\t%[1]s\n     4\tMIIEow\n",
	"numbered to ten":      "9\t-----BEGIN RSA PRIVATE KEY-----\n10\t%[1]s\n11\t%[1]s\n\nthen what",
	"numbered by arrows":   "  1→-----BEGIN PRIVATE KEY-----\n  2→%[1]s\n  3→%[1]s\n\nthen what",
	"numbered, escaped":    `"  1→-----BEGIN PRIVATE KEY-----\n  2→%[1]s\n  3→%[1]s\n\nthen what"`,
	"quoted":               "> -----BEGIN PRIVATE KEY-----\n> %[1]s\n> MIIE0\n\nthen what",
	"quoted twice":         "> > -----BEGIN PRIVATE KEY-----\r\n> > %[1]s\r\n> > %[1]s\r\nthen what",
	"indented":             "key: |\n    -----BEGIN PRIVATE KEY-----\n    %[1]s\n    %[1]s\nthen: what",
	"encrypted":            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0011\n\n%[1]s\n%[1]s\n",
	"encrypted, quoted":    "> -----BEGIN RSA PRIVATE KEY-----\n> Proc-Type: 4,ENCRYPTED\n> DEK-Info: AES-128-CBC,0011\n>\n> %[1]s\nthen what",
	"added":                "+-----BEGIN PRIVATE KEY-----\n+%[1]s\n+%[1]s\n then what",
	"removed":              "-  -----BEGIN PRIVATE KEY-----\n-  %[1]s\n-  %[1]s\n then what",
	"found":                "a/key2.pem:1:-----BEGIN PRIVATE KEY-----\na/key2.pem:2:%[1]s\na/key2.pem:3:%[1]s\na/other.go:3:then",
	"of a container":       "web-1  | -----BEGIN PRIVATE KEY-----\nweb-1  | %[1]s\nweb-1  | %[1]s\nweb-1  | then what",
	"with times":           "2026-12-01T04:25:56.1Z -----BEGIN PRIVATE KEY-----\n2026-12-01T04:25:56.27Z %[1]s\n2026-12-01T04:25:57.3Z %[1]s\n2026-12-01T04:25:58Z then what",
	"a string in pieces":   "k = \"-----BEGIN PRIVATE KEY-----\\n\" +\n    \"%[1]s\\n\" +\n    \"%[1]s\\n\" +\n  then",
	"in one line":          "KEY='-----BEGIN PRIVATE KEY----- %[1]s %[1]s then what",
	"escaped":              `{\"key\": \"-----BEGIN PRIVATE KEY-----\\n%[1]s\\n%[1]s\\n\", \"then\": 1}`,
	"escaped with returns": `"-----BEGIN PRIVATE KEY-----\r\n%[1]s\r\n%[1]s\r\n" then`,
	"cut off within":       "   1  -----BEGIN PRIVATE KEY-----\n   2  %[1]s\n   3  %[1]s... then what",
	"with empty lines":     "-----BEGIN PRIVATE KEY-----\n\n%[1]s\n\n%[1]s\n\nthen\n",
	"of words to follow":   "-----BEGIN PRIVATE KEY-----\n%[1]s\nthen more than that\n",
	"another after it":     "-----BEGIN PRIVATE KEY-----\n%[1]s\n# and\n> -----BEGIN PRIVATE KEY-----\n> %[1]s\nthen what",
}

func TestCutKeys(t *testing.T) {
	r := all(t)
	const line = "MIIEowIBAAKCAQEAxyzSECRETSECRETSECRETabcdefghijklmnop"
	for name, format := range cutKeys {
		text := fmt.Sprintf(format, line)
		doc, _ := json.Marshal(map[string]string{"tool_result": text})
		read, err := io.ReadAll(r.Masks().Reader(iotest.OneByteReader(strings.NewReader(text))))
		if err != nil {
			t.Fatal(err)
		}
		_, then, follows := strings.Cut(text, "then")
		for how, got := range map[string]string{
			"shown": r.Text(text), "in JSON": string(r.JSON(doc)), "masked": checkMasked(t, r.Masks().Text, text), "masked in JSON": checkMasked(t, r.Masks().JSON, string(doc)), "read": string(read),
		} {
			if strings.Contains(got, "SECRET") || strings.Contains(got, "MIIE") || !strings.Contains(got, "[redacted:private_key]") {
				t.Errorf("%s, %s: %q", name, how, got)
			}
			if how != "in JSON" && how != "masked in JSON" && follows && !strings.HasSuffix(got, "then"+then) {
				t.Errorf("%s, %s: of what follows something is gone: %q", name, how, got)
			}
		}
	}
}

// Keys with something before each line that come line by line.
func TestMaskCutKeysBehind(t *testing.T) {
	m := all(t).Masks()
	for name, prefix := range map[string]string{"numbered": "  %d\t", "quoted": "> %.0d", "plain": "%.0d"} {
		masked := []byte("see this:\n")
		for i, line := range []string{"-----BEGIN PRIVATE KEY-----", "MIIEowIBAAKCAQEAxyz", "MIIEowIBAAKCAQEAxyz", "MIIEow==", "-----END PRIVATE KEY-----", "Done"} {
			masked = append(masked, m.Behind(masked, fmt.Appendf(nil, prefix+"%s\n", i+1, line))...)
		}
		if got := string(masked); strings.Contains(got, "MIIE") || strings.Contains(got, "END") || !strings.HasSuffix(got, "Done\n") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What only looks like the beginning of a key has nothing taken from what follows.
func TestNoKeyFollows(t *testing.T) {
	for text, want := range map[string]string{
		"grep -----BEGIN PRIVATE KEY----- in files":                    "grep [redacted:private_key] in files",
		"`-----BEGIN PRIVATE KEY-----` found":                          "`[redacted:private_key]` found",
		"-----BEGIN PRIVATE KEY-----\nthe rest of the file is missing": "[redacted:private_key]\nthe rest of the file is missing",
		"1: -----BEGIN PRIVATE KEY-----\n2: [cut]\n3: end of it":       "1: [redacted:private_key]\n2: [cut]\n3: end of it",
	} {
		if got := all(t).Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
