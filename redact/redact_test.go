package redact_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"stopgate/redact"
)

// secrets are one of each kind, made up; a name is that of the pattern. They are
// put together here so that no scanner takes them for real ones.
var secrets = []struct{ name, text, secret string }{
	{"private_key", "%s", "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEowIBAAKCAQEA0123456789abcdef/+ab\n", 20) + "-----END RSA PRIVATE KEY-----"},
	{"private_key", "%s…", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + strings.Repeat("b3BlbnNzaC1rZXktdjEAAAAA", 3)}, // cut off
	{"private_key", "%s", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\nlQOYBF" + "\n-----END PGP PRIVATE KEY BLOCK-----"},
	{"url_userinfo", "postgres://%s@db:5432/x", "admin:hunter2"},
	{"url_userinfo", "https://%s@localhost/x.git", "oauth2:p@ss"},
	{"jwt", "token=%s", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"},
	{"bearer", "Authorization: Bearer %s", "abcdefABCDEF0123456789-._~+/=="},
	{"bearer", "authorization: basic %s", "dXNlcjpodW50ZXIyaHVudGVyMg=="},
	{"aws_key", "id %s", "AKIA" + "IOSFODNN7EXAMPLE"},
	{"aws_secret", "aws_secret_access_key = %s", "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY"},
	{"aws_secret", `AWS_SECRET_ACCESS_KEY="%s"`, "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY"},
	{"github_token", "GH=%s", "ghp_" + strings.Repeat("a1B2", 9)},
	{"github_token", "%s", "github_pat_" + strings.Repeat("a1B2_", 9)},
	{"gitlab_token", "%s", "glpat-" + strings.Repeat("a1B2-", 5)},
	{"slack_token", "%s", "xoxb-" + "123456789012-123456789012-abcdefABCDEF"},
	{"slack_token", "https://%s", "hooks.slack.com" + "/services/T00000000/B00000000/XXXXXXXXXXXX"},
	{"api_key", "%s", "sk-" + "ant-api03-" + strings.Repeat("a1B2", 8)},
	{"api_key", "key %s", "AIza" + strings.Repeat("SyA1_", 7)},
	{"api_key", "%s", "sk_" + "live_" + strings.Repeat("a1B2", 6)},
	{"api_key_field", "X-Api-Key: %s", "0123456789abcdef0123456789abcdef"},
	{"api_key_field", `{\"api_key\": \"%s\"}`, "0123456789abcdef0123456789abcdef"},
	{"email", "mail %s now", "jane.doe+x@mail.example.co.uk"},
	{"card", "card %s.", "4111 1111 1111 1111"},
	{"card", "card %s 12", "5500-0000-0000-0004"},
	{"card", "%s", "378282246310005"},
}

func all(t testing.TB, own ...redact.Pattern) *redact.Redactor {
	t.Helper()
	r, err := redact.New(redact.BuiltIn(), own, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEverySecretIsFound(t *testing.T) {
	r := all(t)
	for _, s := range secrets {
		got := r.Text(fmt.Sprintf(s.text, s.secret))
		if want := fmt.Sprintf(s.text, "[redacted:"+s.name+"]"); got != want {
			t.Errorf("%s: %q, want %q", s.name, got, want)
		}
	}
}

// What looks alike and is none stays.
func TestWhatIsNoSecret(t *testing.T) {
	r := all(t)
	for _, text := range []string{
		"", "done", "The tests pass.", "3 of 4 tests passed in 12.5 s", "https://example.com/a?mail=b#c", "see http://localhost:8790/v1/evaluate",
		"commit 2c26b46b68ffc68ff99b453c1d30413413422d70", "0198f2c4-5a3e-7c41-9d2b-4f6a8c1e2d3b", "at 1753862400000 ms", "4111111111111112", "id 41111111111111111111111",
		"x4111111111111111", "a @ b", "@decorator", "user@localhost", "bearer of bad news", "the api key is missing", "sk-short", "a\x00b", "\xff\xfe", "eyJ", "func (k *Key) Bearer() {}",
		"-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", "[redacted:email]", "a [redacted:card] b",
	} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// No secret survives, whatever stands round it; what is JSON stays JSON; and what
// was redacted stays as it is.
func TestNoSecretSurvives(t *testing.T) {
	r := all(t)
	for _, s := range secrets {
		text := fmt.Sprintf(s.text, s.secret)
		inJSON, _ := json.Marshal(map[string]any{"hook_event_name": "Stop", "tool_input": map[string]any{"command": text, "n": 1.5e3}, "list": []any{text, nil, true}})
		twice, _ := json.Marshal(map[string]any{"arguments": string(inJSON)})
		for where, doc := range map[string]string{
			"alone": text, "in lines": "first\n" + text + "\nlast", "in bytes": "\xff " + text + " \xfe", "in JSON": string(inJSON), "in JSON in JSON": string(twice),
			"in broken JSON": `{"a": "` + text, "with all others": everySecret() + " " + text,
		} {
			got := string(r.JSON([]byte(doc)))
			for _, part := range lines(s.secret) {
				if strings.Contains(got, part) {
					t.Errorf("%s %s: %q is left in %q", s.name, where, part, got)
				}
			}
			if json.Valid([]byte(doc)) && !json.Valid([]byte(got)) {
				t.Errorf("%s %s: no JSON any more: %s", s.name, where, got)
			}
			if again := string(r.JSON([]byte(got))); again != got {
				t.Errorf("%s %s: %q, done again %q", s.name, where, got, again)
			}
		}
	}
}

// lines are the parts of a secret that would give it away.
func lines(secret string) (parts []string) {
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") && len(line) > 5 && line != "Version: 1" {
			parts = append(parts, line)
		}
	}
	return parts
}

func everySecret() string {
	var b strings.Builder
	for _, s := range secrets {
		fmt.Fprintf(&b, s.text+"\n", s.secret)
	}
	return b.String()
}

func TestJSON(t *testing.T) {
	r := all(t, redact.Pattern{Name: "ticket", Expr: `TICKET-(\d+)`})
	for _, c := range []struct{ name, in, want string }{
		{"nothing in it stays byte for byte", "{ \"a\" : [1, 2.50, -0, \"\\u00e9\\/\"] }\n", "{ \"a\" : [1, 2.50, -0, \"\\u00e9\\/\"] }\n"},
		{"a string", `{"a":"to jane@example.com","b":1}`, `{"a":"to [redacted:email]","b":1}`},
		{"a name", `{"jane@example.com":1}`, `{"[redacted:email]":1}`},
		{"an escaped one", `["jane\u0040example.com"]`, `["[redacted:email]"]`},
		{"a number", `{"pan": 4111111111111111, "n": 4111111111111112}`, `{"pan": "[redacted:card]", "n": 4111111111111112}`},
		{"a field known by its name", `{"x-api-key" : "0123456789abcdef0123","k":"0123456789abcdef0123"}`, `{"x-api-key" : "[redacted:api_key_field]","k":"0123456789abcdef0123"}`},
		{"a list is no field", `["api_key","0123456789abcdef0123"]`, `["api_key","0123456789abcdef0123"]`},
		{"a group", `"TICKET-17"`, `"TICKET-[redacted:ticket]"`},
		{"quotes round it", `"\"jane@example.com\""`, `"\"[redacted:email]\""`},
		{"no JSON", `{"a": jane@example.com`, `{"a": [redacted:email]`},
		{"empty", ``, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(r.JSON([]byte(c.in))); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A long text, by whatever reads: no secret at any edge of a window survives, and
// nothing else is lost.
func TestReaderAtEveryEdge(t *testing.T) {
	r := all(t)
	for i, s := range secrets {
		text := " " + fmt.Sprintf(s.text, s.secret) + "\n"
		filler := []string{"word ", "x", "é"}[i%3]
		for _, before := range []int{48<<10 - 200, 64<<10 - 40, 64 << 10, 80<<10 - 20}[i%2*2 : i%2*2+2] {
			in := strings.Repeat(filler, before/len(filler)) + text + strings.Repeat(filler, (32<<10)/len(filler))
			got, err := io.ReadAll(r.Reader(iotest.HalfReader(strings.NewReader(in))))
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Replace(in, s.secret, "[redacted:"+s.name+"]", 1); string(got) != want {
				t.Fatalf("%s after %d of %q: %d bytes, want %d", s.name, before, filler, len(got), len(want))
			}
			if r.Text(in) != string(got) || r.Text(string(got)) != string(got) {
				t.Fatalf("%s after %d of %q: Text differs, or is not done with", s.name, before, filler)
			}
		}
	}
	if _, err := io.ReadAll(r.Reader(iotest.ErrReader(io.ErrUnexpectedEOF))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the source's error became %v", err)
	}
}

// A document of nothing but secrets: after the first thousands whole strings go.
func TestDocumentFullOfSecrets(t *testing.T) {
	r := all(t)
	doc, _ := json.Marshal(strings.SplitAfter(strings.Repeat("mail jane@example.com,plain,", 5000), ","))
	got := r.JSON(doc)
	if !json.Valid(got) || strings.Contains(string(got), "jane") || strings.Count(string(got), `"plain,"`) != 5000 || !strings.HasSuffix(string(got), `,"[redacted:email]","plain,",""]`) {
		t.Errorf("it ends %s", got[len(got)-100:])
	}
	if again := r.JSON(got); string(again) != string(got) {
		t.Error("done again it differs")
	}
}

func TestOwnPatterns(t *testing.T) {
	r, err := redact.New(nil, []redact.Pattern{{"project", `(?i)project [a-z]+`}, {"line", `(?m)^secret:.*$`}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := r.Text("jane@example.com on Project Bluebird\nsecret: [redacted:card] and more\n")
	if got != "jane@example.com on [redacted:project]\n[redacted:line][redacted:card][redacted:line]\n" || r.Text(got) != got {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("nothing here. ", 1000) + "project x " + strings.Repeat("nothing here. ", 1000)
	if got := r.Text(long); strings.Contains(got, "project x") || !strings.Contains(got, "[redacted:project] nothing") {
		t.Error("a long text keeps it")
	}
	if got := r.Text(strings.Repeat("project a,", 5000)); got != "[redacted:project]" {
		t.Errorf("too many of a kind: %.80q", got)
	}
	for name, p := range map[string]redact.Pattern{
		"a name": {"Up", "a"}, "no name": {"", "a"}, "look-ahead": {"a", "(?=a)"}, "empty text": {"a", "a*"}, "nothing": {"a", ""}, "too large": {"a", `\pL{900}`},
	} {
		if _, err := redact.New(nil, []redact.Pattern{p}, nil); err == nil || !strings.HasPrefix(err.Error(), "redaction pattern ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := redact.New([]string{"emails"}, nil, nil); err == nil {
		t.Error("an unknown built-in pattern is taken")
	}
}

// Secrets that are known go wherever they stand, also escaped in JSON; what is too
// short for one stays.
func TestKnownSecrets(t *testing.T) {
	r, err := redact.New(nil, nil, []string{"none", "", `pass"word`, "pass\"word-and-more"})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`none of pass"word,pass"word`: `none of [redacted:server_secret],[redacted:server_secret]`,
		`x pass"word-and-more`:        `x [redacted:server_secret]`,
		`{"a":"pass\"word"}`:          `{"a":"[redacted:server_secret]"}`,
		`["pass\u0022word"]`:          `["[redacted:server_secret]"]`,
	} {
		if got := string(r.JSON([]byte(in))); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add(everySecret())
	f.Add(`{"a":"jane@example.com","api_key":"0123456789abcdef0123","n":4111111111111111}`)
	f.Add("Bearer [redacted:x]://a:b@c 4111-1111 1111-1111[redacted:card]1")
	r := all(f)
	f.Fuzz(func(t *testing.T, doc string) {
		got := r.JSON([]byte(doc))
		if json.Valid([]byte(doc)) != json.Valid(got) && json.Valid([]byte(doc)) {
			t.Errorf("no JSON any more: %q of %q", got, doc)
		}
		if again := r.JSON(got); string(again) != string(got) {
			t.Errorf("%q became %q, then %q", doc, got, again)
		}
	})
}
