package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
	{"bearer", "Authorization: Basic %s", "dXNlcjpwYXNz"},
	{"bearer", `"Authorization": "Basic %s"`, "YTpi"},
	{"jwt", "my_%s", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N"},
	{"stopgate_key", "export STOPGATE_API_KEY=%s", "sg_" + "kgznvcdxc2etjlb4t44kzzlxwqxkwbugt7earpvojv53b4ofmwol2rtmxv44ris2"},
	{"stopgate_key", "use_%s_now", "sg_" + "kgznvcdxc2etjlb4t44kzzlxwqxkwbugt7earpvojv53b4ofmwol2rtmxv44ris2"},
	{"stopgate_key", "use %s…", "sg_" + "kgznvcdxc2etjlb4t44kzzlxwqxkwbugt7earpvo"}, // cut off
	{"aws_key", "my_%s_old", "AKIA" + "IOSFODNN7EXAMPLE"},
	{"azure_key", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=%s;", strings.Repeat("Eby8vdM0/+", 8) + "2xNOcq=="},
	{"azure_key", "Endpoint=sb://x/;SharedAccessKey=%s", strings.Repeat("Eby8vdM0/+", 4) + "abc="},
	{"signed_url", "https://x.blob.core.windows.net/c?sv=2024-08-04&sig=%s", strings.Repeat("aB3%2F", 11) + "%3D"},
	{"signed_url", "https://b.s3.amazonaws.com/k?X-Amz-Signature=%s&x=1", strings.Repeat("0a1b", 16)},
	{"webhook", "https://%s", "discord.com" + "/api/webhooks/123456789012345678/" + strings.Repeat("aB3-_", 13)},
	{"webhook", "https://contoso%s", ".webhook.office.com" + "/webhookb2/01234567-89ab-cdef-0123-456789abcdef@01234567-89ab-cdef-0123-456789abcdef/IncomingWebhook/0123456789abcdef0123456789abcdef/01234567-89ab"},
	{"token_field", "aws_session_token=%s", "FwoGZXIvYXdzEBYaDKsecretsecretsecretsecret"},
	{"token_field", "https://x/y?access_token=%s&n=1", "0123456789abcdef0123456789"},
	{"token_field", `"refreshToken": "%s"`, "0123456789abcdef0123456789"},
	{"token_field", "CLIENT_SECRET=%s", "abC8Q~abcdefghijklmnopqrstuvwxyz.-_"},
	{"cookie", "Set-Cookie: session=%s; Path=/; HttpOnly", "abcdef0123456789abcdef0123456789"},
	{"cookie", "curl -H 'Cookie: sid=%s' https://x", "s%3Aabc.d+e/f=="},
	{"cookie", `"set-cookie": "__Host-id=%s; Secure"`, "9f8e7d6c"},
	{"gitlab_token", "%s", "glrt-" + strings.Repeat("a1B2.", 5) + "7"},
	{"github_token", "X_%s", "ghp_" + strings.Repeat("a1B2", 9)},
	{"github_token", `\n%s\n`, "ghp_" + strings.Repeat("a1B2", 9)},
	{"github_token", "TOKEN%s", "ghp_" + strings.Repeat("a1B2", 9)},
	{"api_key", "my_%s", "sk-" + "proj-" + strings.Repeat("Z9x8", 7)},
	{"api_key", `line\n%s`, "sk-" + "proj-" + strings.Repeat("Z9x8", 7)},
	{"api_key", `a\u003d%s`, "sk-" + "proj-" + strings.Repeat("Z9x8", 7)},
	{"api_key", "?k%%3D%s", "sk-" + "proj-" + strings.Repeat("Z9x8", 7)},
	{"api_key", "\x1b[1;31m%s\x1b[0m", "sk-" + "proj-" + strings.Repeat("Z9x8", 7)},
	{"api_key", "%s.", "ya29" + ".a0AfH6SMBx1234567890abcdefghijklmnop"},
	{"api_key", "%s", "GOCSPX" + "-abcdefghijklmnopqrstuvwxyz12"},
	{"api_key", "%s", "pypi-" + "AgEIcHlwaS5vcmcCJDAwMDAwMDAwLTAwMDA"},
	{"api_key", "%s", "shpat_" + "0123456789abcdef0123456789abcdef"},
	{"api_key", "%s", "dop_v1_" + strings.Repeat("0a1b", 16)},
	{"api_key", "%s", "npm_" + strings.Repeat("a1B2", 9)},
	{"api_key", "%s", "hf_" + strings.Repeat("a1B2", 9)},
	{"api_key", "mail.key = '%s'", "SG" + ".ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf09kqeF8tAmbihYzrnopKc1s5cr8g"},
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
	{"card", "%s.", "4111.1111.1111.1111"},
	{"card", "%s", "4111\u00a01111\u00a01111\u00a01111"},
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

// Everyday texts of code, tools and people have nothing taken out of them.
func TestEverydayTextsStay(t *testing.T) {
	image := base64.StdEncoding.EncodeToString(pseudorandom(48 << 10))
	for name, text := range map[string]string{
		"git log":            "commit f3abd4d7c1e09b2a4d5f60718293a4b5c6d7e8f9 (HEAD -> main)\nAuthor: A B\n\n    Merge branch 'sk-fix' into next\n",
		"diff":               "index 2c26b46b68ffc68ff99b453c1d30413413422d70..f3abd4d7c1e09b2a4d5f60718293a4b5c6d7e8f9 100644\n--- a/task.go\n+++ b/task.go\n",
		"UUIDs":              "0198f2c4-5a3e-7c41-9d2b-4f6a8c1e2d3b urn:uuid:4111c2c4-5a3e-4111-9d2b-4f6a8c1e2d3b",
		"sums":               "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 sha512-" + image[:86] + "==",
		"an image":           "data:image/png;base64," + image,
		"an image in lines":  strings.Join(strings.SplitAfter(image, "aa"), "\n"),
		"code of tokens":     "accessToken: getAccessTokenFromCookie(), refresh_token = request.cookies.refresh_token\nsession_token: str = Field(default=None)\nclient_secret = os.environ[CLIENT_SECRET]",
		"code of cookies":    "cookie := http.Cookie{Name: n}\ncookie, err := r.Cookie(name)\ncookie = parse(header)\nif cookie == nil { return }\nconst cookies = {}",
		"prose of cookies":   "A cookie: it is small. Set-Cookie: sent by servers. The Cookie header = what comes back.",
		"prose of bearers":   "Authorization: Basic auth is required; Basic authentication; Authorization: Bearer tokens; use Bearer **tokens**, or a Bearer <token>.",
		"prose of tokens":    "The access_token is missing; tokens: 4096, max_tokens: 8192, token_count=4096",
		"names":              "sk-folding-cube-container-wrapper task-sk-list disk-configuration-of-something npm_config_registry npm_lifecycle_event hf_hub_download sg_builder_prod sg_loadbalancer xoxo-with-love risk_live_abcdefghijklmnop shpat_ dop_v1_",
		"code of SG":         "SG.internal.very_long_package.with_names_of.classes.and_more.of_them",
		"keyJson":            "keyJsonReader.readSomething.else eyJ",
		"floats":             "3.141592653589793 4111.1111 2.718281828459045 1234.5678 9876.5432 41.111.111.111.111 4111.1111.1111.1112",
		"addresses":          "10.0.0.1:8080 192.168.100.200 2001:db8::1 v1.22.333.4444",
		"times":              "2026-12-01 04:25:56 1764563156123456789 2026.12.01.04.25",
		"a signature":        "?sig=abc&sig=2c26b46b68ffc68ff99b453c1d30413413422d70",
		"webhooks":           "https://discord.com/api/webhooks/ID/TOKEN https://hooks.slack.com/services/… https://x.webhook.office.com/",
		"about keys":         "The file begins with -----BEGIN CERTIFICATE-----, and a key with BEGIN PRIVATE KEY.",
		"storage":            "AccountName=x;AccountKey=<key>;EndpointSuffix=core.windows.net and SharedAccessKeyName=Root",
		"a hash of accounts": "account_key: 2c26b46b68ffc68ff99b453c1d30413413422d70",
	} {
		if got := all(t).Text(text); got != text {
			t.Errorf("%s became %.300q", name, got)
		}
		doc, _ := json.Marshal(map[string]string{"tool_result": text})
		if got := all(t).JSON(doc); string(got) != string(doc) {
			t.Errorf("%s became %.300q in JSON", name, got)
		}
	}
}

// pseudorandom are bytes that are the same each time.
func pseudorandom(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// Fields of JSON tell what they hold, and of cookies the names stay.
func TestFieldsAndCookies(t *testing.T) {
	for in, want := range map[string]string{
		`{"access_token":"0123456789abcdef"}`:                   `{"access_token":"[redacted:token_field]"}`,
		`{"clientSecret":"0123456789abcdef"}`:                   `{"clientSecret":"[redacted:token_field]"}`,
		`{"Set-Cookie":"a=b; Path=/"}`:                          `{"Set-Cookie":"a=[redacted:cookie]; Path=/"}`,
		`{"cookie":"a=b; c=\"d e\"; f"}`:                        `{"cookie":"a=[redacted:cookie]; c=\"[redacted:cookie] e\"; f"}`,
		"Cookie: lang=en; sid=12345678;id=a==\r\nHost: b=c":     "Cookie: lang=[redacted:cookie]; sid=[redacted:cookie];id=[redacted:cookie]\r\nHost: b=c",
		"document.cookie = \"sid=12345678\"":                    "document.cookie = \"sid=[redacted:cookie]\"",
		"cookie: sid=12345678 cookie: sid=87654321":             "cookie: sid=[redacted:cookie] cookie: sid=[redacted:cookie]",
		`{"a":"{\"cookie\":\"sid=12345678; b=12345678\"}"}`:     `{"a":"{\"cookie\":\"sid=[redacted:cookie]; b=[redacted:cookie]\"}"}`,
		`{"Authorization":"Basic dXNlcjpwYXNz","n":"dXNlcjpw"}`: `{"Authorization":"Basic [redacted:bearer]","n":"dXNlcjpw"}`,
	} {
		got := string(all(t).JSON([]byte(in)))
		if got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
		if again := string(all(t).JSON([]byte(got))); again != got {
			t.Errorf("%s, done again %s", got, again)
		}
	}
}

// All own patterns there may be leave the built-in ones and known secrets as they are.
func TestAsManyPatternsAsThereMayBe(t *testing.T) {
	own := make([]redact.Pattern, 50)
	for i := range own {
		own[i] = redact.Pattern{Name: fmt.Sprint("p", i), Expr: fmt.Sprintf("own%d;", i)}
	}
	r, err := redact.New(redact.BuiltIn(), own, []string{"correct horse"})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Text("own0;own49; correct horse " + everySecret()); !strings.HasPrefix(got, "[redacted:p0][redacted:p49] [redacted:server_secret] ") ||
		strings.Contains(got, "4111") || strings.Contains(got, "jane") {
		t.Error(got)
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
	f.Add("Cookie: a=b; c=\"d\"; [redacted:cookie]=e\n1\t-----BEGIN PRIVATE KEY-----\n2\tMIIEowIBAAKCAQEA7x4=")
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
