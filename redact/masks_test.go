package redact_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"stopgate/redact"
)

// A mask is as long as its secret and says what it was, where there is room; lines
// stay, and what was masked stays as it is.
func TestMaskText(t *testing.T) {
	r, err := redact.New(redact.BuiltIn(), []redact.Pattern{{Name: "pin", Expr: `PIN (\d+)`}, {Name: "note", Expr: `(?s)note\(.*?\)`}}, []string{"correct horse"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ in, want string }{
		{"nothing", "nothing"},
		{"to jane.doe@example.com now", "to [redacted:email]**** now"},
		{"to anna@example.org, é", "to [redacted:email], é"},
		{"to jo@example.org", "to [redacted]****"}, // no room for the name
		{"to a@b.co", "to ******"},
		{"PIN 7", "PIN *"},
		{"a correct horse", "a [redacted]***"},
		{"note(one\ntwo, é)", "********\n********"},
		{"note(one and two,\nthree)", "[redacted:note]**\n******"},
		{"-----BEGIN EC PRIVATE KEY-----\nAAAA\r\nBBBB\n-----END EC PRIVATE KEY-----\nend", "[redacted:private_key]********\n*****\n****\n****************************\nend"},
	} {
		got := string(r.Masks().Text([]byte(c.in)))
		if got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
		if again := string(r.Masks().Text([]byte(got))); again != got || r.Text(got) != got {
			t.Errorf("%q, done again %q, shown %q", got, again, r.Text(got))
		}
	}
}

func TestMaskJSON(t *testing.T) {
	m := all(t, redact.Pattern{Name: "n", Expr: `\b7\b`}).Masks()
	for _, c := range []struct{ name, in, want string }{
		{"nothing in it stays byte for byte", "{ \"a\" : [1, 2.50, -0, \"\\u00e9\\/\\ud800\"] }\n", "{ \"a\" : [1, 2.50, -0, \"\\u00e9\\/\\ud800\"] }\n"},
		{"a string", `{"a":"to anna@example.org","b":1}`, `{"a":"to [redacted:email]","b":1}`},
		{"a name", `{"anna@example.org":1}`, `{"[redacted:email]":1}`},
		{"an escaped one", `["\n\u00e9 anna\u0040example.org \t"]`, `["\n\u00e9 [redacted:email]***** \t"]`},
		{"a pair of escapes", `["\ud83d\ude00anna@example.org\/"]`, `["\ud83d\ude00[redacted:email]\/"]`},
		{"lines within a string", `["-----BEGIN PRIVATE KEY-----\nAAAA\nBBBB\n-----END PRIVATE KEY-----\nend"]`, `["[redacted:private_key]*****\n****\n****\n*************************\nend"]`},
		{"a number", `{"pan": 4111111111111111, "n": 4111111111111112, "x": 7, "y": -7e0}`, `{"pan": 1111111111111111, "n": 4111111111111112, "x": 1, "y": -7e0}`},
		{"a field known by its name", `{"x-api-key" : "0123456789abcdef0123","k":"0123456789abcdef0123"}`, `{"x-api-key" : "[redacted]**********","k":"0123456789abcdef0123"}`},
		{"a list is no field", `["api_key","0123456789abcdef0123"]`, `["api_key","0123456789abcdef0123"]`},
		// The e of both is where it was, and so are the stars before it.
		{"JSON in a string", `{"arguments":"{\"to\":\"anna\\u0040example.org\",\"pan\":4111111111111111}"}`, `{"arguments":"{\"to\":\"[redacted:*email]*****\",\"pan\":1111111111111111}"}`},
		{"a name in JSON in a string", `["{\"x-api-key\":\"0123456789abcdef\\u0041\"}"]`, `["{\"x-api-key\":\"[redacted]*************\"}"]`},
		{"no JSON", `{"a": anna@example.org`, `{"a": [redacted:email]`},
		{"empty", ``, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := []byte(c.in)
			if got := string(m.JSON(in)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if string(in) != c.in {
				t.Error("what was given has changed")
			}
		})
	}
}

// Every secret goes, wherever it stands: as long as it was, line by line.
func TestMasksHideEverySecret(t *testing.T) {
	m := all(t).Masks()
	for _, s := range secrets {
		text := fmt.Sprintf(s.text, s.secret)
		inJSON, _ := json.Marshal(map[string]any{"tool_input": map[string]any{"command": text, "n": 1.5e3}, "list": []any{text, nil, true}})
		twice, _ := json.Marshal(map[string]any{"arguments": string(inJSON)})
		for where, doc := range map[string]string{
			"alone": text, "in lines": "first\n" + text + "\nlast", "in bytes": "\xff " + text + " \xfe", "in JSON": string(inJSON), "in JSON in JSON": string(twice),
			"in broken JSON": `{"a": "` + text, "with all others": everySecret() + " " + text,
			"far on": strings.Repeat("word ", 13000) + text + strings.Repeat(" word", 10000),
		} {
			got := checkMasked(t, m.JSON, doc)
			if json.Valid([]byte(doc)) && !json.Valid([]byte(got)) {
				t.Errorf("%s %s: no JSON any more: %s", s.name, where, got)
			}
			for _, part := range lines(s.secret) {
				if strings.Contains(got, part) {
					t.Errorf("%s %s: %q is left in %.300q", s.name, where, part, got)
				}
			}
			if again := string(m.JSON([]byte(got))); again != got {
				t.Errorf("%s %s: %.300q, done again %.300q", s.name, where, got, again)
			}
		}
		read, err := io.ReadAll(m.Reader(iotest.HalfReader(strings.NewReader(text))))
		if err != nil || string(read) != string(m.Text([]byte(text))) {
			t.Errorf("%s is read as %q, %v", s.name, read, err)
		}
	}
}

// checkMasked checks what every mask promises of a text.
func checkMasked(t *testing.T, mask func([]byte) []byte, text string) string {
	t.Helper()
	got := string(mask([]byte(text)))
	if len(got) != len(text) {
		t.Fatalf("%d bytes became %d: %.300q", len(text), len(got), got)
	}
	for i := range text {
		if (text[i] == '\n') != (got[i] == '\n') {
			t.Fatalf("the lines of %.300q are others", got)
		}
	}
	if utf8.ValidString(text) && !utf8.ValidString(got) {
		t.Errorf("no UTF-8 any more: %.300q", got)
	}
	return got
}

// A key that comes line by line is hidden to its end, wherever its first line is cut.
func TestMaskBehindLineByLine(t *testing.T) {
	m := all(t).Masks()
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEowIBAAKCAQEA0123\n", 5) + "ab==\n-----END PRIVATE KEY-----\n"
	for cut := range len("-----BEGIN PRIVATE KEY-----\n") {
		masked := m.Text([]byte(key[:cut]))
		for line := range strings.Lines(key[cut:]) {
			masked = append(masked, m.Behind(masked, []byte(line))...)
		}
		if masked = append(masked, m.Behind(masked, []byte("Done.\n"))...); strings.Contains(string(masked), "MII") || strings.Contains(string(masked), "ab=") ||
			!strings.HasSuffix(string(masked), "\nDone.\n") {
			t.Errorf("cut at %d: %s", cut, masked)
		}
	}
}

// A document of nothing but secrets costs no more than others do.
func TestMaskDocumentFullOfSecrets(t *testing.T) {
	doc, _ := json.Marshal(strings.SplitAfter(strings.Repeat("mail jane@example.com,plain,", 5000), ","))
	got := checkMasked(t, all(t).Masks().JSON, string(doc))
	if strings.Contains(got, "jane") || strings.Count(got, `"plain,"`) != 5000 {
		t.Errorf("it ends %s", got[len(got)-100:])
	}
}

// A secret that is cut into two texts, wherever it is cut: of what comes second
// nothing is left, whether the first part was enough to be known or not.
func TestMaskBehind(t *testing.T) {
	m := all(t).Masks()
	for _, s := range secrets {
		text := "see " + fmt.Sprintf(s.text, s.secret)
		at := strings.Index(text, s.secret)
		end := at + len(s.secret)
		if s.name == "private_key" {
			if strings.Contains(s.secret, "Version") { // no line of a key: nothing is known from there on
				continue
			}
			if n := strings.Index(text, "-----END"); n >= 0 {
				end = n - 1
			}
		}
		for cut := at + 1; cut < end-4; cut++ {
			before, behind := m.Text([]byte(text[:cut])), text[cut:]
			if i := bytes.LastIndexByte(before, ']'); i >= 0 && len(bytes.Trim(before[i+1:], "*\n")) > 0 {
				continue // what was one secret was followed by what was none, as in a@b.co and .uk
			}
			got := checkMasked(t, func(b []byte) []byte { return m.Behind(before, b) }, behind)
			if strings.HasPrefix(got, text[cut:cut+4]) {
				t.Errorf("%s cut at %d: %q goes on as %q", s.name, cut-at, before, got)
			}
		}
	}
	for _, c := range []struct{ before, text, want string }{
		{"card 4111 1111", " 1111 1111.", "[redacted]."},
		{"card 4111 1111", " is half of it", " is half of it"},
		{"[redacted:email]", ", she said", ", she said"},
		{"[redacted:email]***", "\nand more", "\nand more"},
		{"-- ****", "starred", "starred"}, // nobody knows what that was
		{"[redacted:private_key]***\n****\n", "Done\n", "Done\n"},
		{"[redacted:private_key]***\n****\n", "MIIEowIBAAKCAQEA0123\nMIIEowIB\n-----END PRIVATE KEY-----\nDone", "********************\n********\n*************************\nDone"},
		{"", "anna@example.org", "[redacted:email]"},
	} {
		if got := string(m.Behind([]byte(c.before), []byte(c.text))); got != c.want {
			t.Errorf("%q behind %q became %q, want %q", c.text, c.before, got, c.want)
		}
	}
}

func FuzzMasks(f *testing.F) {
	f.Add(everySecret(), "")
	f.Add(`{"a":"jane\u0040example.com","api_key":"0123456789abcdef0123","n":4111111111111111,"s":"{\"b\":\"\\ud800\"}"}`, "-----BEGIN PRIVATE KEY-----\nAA")
	f.Add("Bearer [redacted:x]://a:b@c 4111-1111 1111-1111[redacted:card]1", "[redacted:jwt]**")
	m := all(f).Masks()
	f.Fuzz(func(t *testing.T, doc, before string) {
		if got := checkMasked(t, m.JSON, doc); json.Valid([]byte(doc)) && !json.Valid([]byte(got)) {
			t.Errorf("no JSON any more: %q of %q", got, doc)
		}
		checkMasked(t, m.Text, doc)
		checkMasked(t, func(b []byte) []byte { return m.Behind([]byte(before), b) }, doc)
	})
}
