package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgate/gate"
)

const goodCase = "tests:\n  - name: x\n    event: {hook_event_name: Stop}\n    want: allow\n"

func TestReadTestFileFindsWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "1:1: error: file is empty"},
		{"two documents", goodCase + "---\n" + goodCase, "6:1: error: file holds 2 documents"},
		{"a list", "[]", "1:1: error: file is a list"},
		{"no tests", "spec: a.yaml", "error: tests: tests is missing or empty"},
		{"an empty list of tests", "tests: []", "1:8: error: tests: tests is missing or empty"},
		{"an unknown key", strings.Replace(goodCase, "want:", "wants:", 1), `4:5: error: tests[0].wants: key "wants" is unknown; did you mean "want"?`},
		{"an unknown key at the top", "test: []\n" + goodCase, `1:1: error: test: key "test" is unknown`},
		{"a name of two lines", "tests:\n  - name: \"a\\nok b\"\n    event: {}\n    want: allow\n", "2:11: error: tests[0].name: name holds a line end or another control character"},
		{"no name", "tests:\n  - event: {}\n    want: allow\n", "2:5: error: tests[0].name: name is missing"},
		{"a name twice", goodCase + "  - name: x\n    event: {}\n    want: allow\n", `5:11: error: tests[1].name: case "x" is there twice`},
		{"no event", "tests:\n  - name: x\n    want: allow\n", "error: tests[0].event: event is missing"},
		{"two events", strings.Replace(goodCase, "want:", "event_file: a.json\n    want:", 1), "both event and event_file"},
		{"an event and a series", strings.Replace(goodCase, "want:", "series: [{event: {}, want: allow}]\n    want:", 1), `key "event" is unknown`},
		{"an empty series", "tests:\n  - name: x\n    series: []\n", "series has 0 events"},
		{"no want in a series", "tests:\n  - name: x\n    series:\n      - event: {}\n", "4:9: error: tests[0].series[0].want: want is missing"},
		{"a want without a decision", strings.Replace(goodCase, "want: allow", "want: {reason: x}", 1), "error: tests[0].want.decision: decision is missing"},
		{"a misspelt decision", strings.Replace(goodCase, "want: allow", "want: blok", 1), `want is "blok", want one of allow, block, ask; did you mean "block"?`},
		{"a misspelt note", strings.Replace(goodCase, "want: allow", "want: {decision: allow, notes: [failed_opn]}", 1), `did you mean "failed_open"?`},
		{"a misspelt error", strings.Replace(goodCase, "want: allow", "want: {decision: allow, errors: [time_out]}", 1), `did you mean "timeout"?`},
		{"a pattern that is none", strings.Replace(goodCase, "want: allow", "want: {decision: allow, reason: {matches: '('}}", 1), "matches is no RE2 pattern: missing closing )"},
		{"a part that every text has", strings.Replace(goodCase, "want: allow", "want: {decision: allow, reason: {contains: ''}}", 1), `contains is empty, which every text fits: for one that is empty write reason: ""`},
		{"a pattern that every text fits", strings.Replace(goodCase, "want: allow", "want: {decision: allow, context: {matches: ''}}", 1), `matches is empty, which every text fits: for one that is empty write context: ""`},
		{"two forms of a text", strings.Replace(goodCase, "want: allow", "want: {decision: allow, reason: {is: a, contains: b}}", 1), "several of is, contains and matches"},
		{"no form of a text", strings.Replace(goodCase, "want: allow", "want: {decision: allow, reason: {}}", 1), "none of is, contains and matches"},
		{"a hook without an outcome", strings.Replace(goodCase, "want: allow", "want: {decision: allow, hooks: {h: {reason: x}}}", 1), "hooks.h.outcome: outcome is missing"},
		{"an answer of two kinds", strings.Replace(goodCase, "want:", "model: [{text: a, verdict: {ok: true}}]\n    want:", 1), "answer has 2 of verdict, calls, text and error"},
		{"an answer of none", strings.Replace(goodCase, "want:", "model: [{}]\n    want:", 1), "answer has 0 of verdict"},
		{"a model and a recording", strings.Replace(goodCase, "want:", "model: []\n    recording: a\n    want:", 1), "both model and recording"},
		{"a take without a recording", strings.Replace(goodCase, "want:", "take: a\n    want:", 1), "take has no effect"},
		{"a file outside", strings.Replace(goodCase, "want:", "files: {../a: b}\n    want:", 1), `"../a" is no path of a file inside`},
		{"a file outside, after", strings.Replace(goodCase, "want:", "files_after: {/etc/passwd: b}\n    want:", 1), `"/etc/passwd" is no path of a file inside`},
		{"a time that is none", strings.Replace(goodCase, "want:", "timeout: 1m\n    want:", 1), "timeout is the text"},
		{"a status that is none", strings.Replace(goodCase, "want:", "http: [{status: 99}]\n    want:", 1), "status is 99"},
		{"a spec that is a number", "spec: 1\n" + goodCase, "spec is the number 1, want a file's name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, findings := ReadTestFile("a.test.yaml", []byte(c.text))
			if got := textOf(findings); !gate.HasErrors(findings) || !strings.Contains(got, c.want) {
				t.Errorf("findings are\n%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestReadTestFile(t *testing.T) {
	file, findings := ReadTestFile("a.test.yaml", []byte(goodCase))
	if len(findings) > 0 || len(file.Cases) != 1 {
		t.Fatalf("%+v\n%s", file, textOf(findings))
	}
	c := file.Cases[0]
	if c.Name != "x" || c.Timeout != DefaultCaseTimeout || c.Series || len(c.Events) != 1 || c.Files != nil {
		t.Errorf("case is %+v", c)
	}
	if e := c.Events[0]; string(e.Event) != `{"hook_event_name":"Stop"}` || e.Line != 3 || e.Want.Decision != gate.Allow || e.Want.Hooks != nil || e.Want.Notes != nil {
		t.Errorf("event is %+v", e)
	}
	// What is looked at and must be nothing is not what is not looked at.
	file, findings = ReadTestFile("a.test.yaml", []byte(strings.Replace(goodCase, "want: allow", "want: {decision: allow, hooks: {}, notes: [], errors: [], requests: []}", 1)))
	if w := file.Cases[0].Events[0].Want; len(findings) > 0 || w.Hooks == nil || w.Notes == nil || w.Errors == nil || w.Requests == nil {
		t.Errorf("want is %+v\n%s", w, textOf(findings))
	}
}

func TestTextFits(t *testing.T) {
	file, findings := ReadTestFile("a.test.yaml", []byte(strings.Replace(goodCase, "want: allow",
		"want: {decision: allow, hooks: {is: {outcome: allow, reason: a b}, contains: {outcome: allow, reason: {contains: b}}, matches: {outcome: allow, reason: {matches: '^a'}}}}", 1)))
	if len(findings) > 0 {
		t.Fatal(textOf(findings))
	}
	for _, c := range []struct {
		form, text string
		want       bool
	}{
		{"is", "a b\n", true}, {"is", "a b c", false}, {"contains", "abc", true}, {"contains", "ac", false},
		{"matches", "abc", true}, {"matches", "ba", false}, {"matches", "b\na", false},
	} {
		if got := file.Cases[0].Events[0].Want.Hooks[c.form].Reason.Fits(c.text); got != c.want {
			t.Errorf("%s of %q is %v", c.form, c.text, got)
		}
	}
}

// A directory of specs may hold their tests.
func TestDirPassesTestFilesOver(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.test.yaml"), []byte(goodCase), 0o600); err != nil {
		t.Fatal(err)
	}
	if specs, findings, _ := OpenDir(dir).Load(); len(specs) > 0 || len(findings) > 0 {
		t.Errorf("specs %v, findings %v", specs, findings)
	}
}

func FuzzReadTestFile(f *testing.F) {
	files, err := filepath.Glob("../examples/*.test.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, findings := ReadTestFile("a.test.yaml", data)
		if gate.HasErrors(findings) {
			return
		}
		for _, c := range file.Cases {
			for _, e := range c.Events {
				if e.Want.Decision == "" || e.Event == nil && e.EventFile.Name == "" {
					t.Errorf("case %q wants nothing, or is about nothing", c.Name)
				}
			}
		}
	})
}

// The documentation's test files are ones.
func TestDocumentedTestFiles(t *testing.T) {
	page, err := os.ReadFile("../docs/testing-hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		if _, findings := ReadTestFile("doc.test.yaml", []byte(text)); len(findings) > 0 {
			t.Errorf("%s\n%s", text, textOf(findings))
		}
	}
	if len(blocks) < 4 {
		t.Errorf("%d test files are there", len(blocks))
	}
	// Every key that is read is in it.
	for _, key := range strings.Fields("spec agent allow_hosts tests name event event_file protocol active transcript transcript_file model recording take http files want series counts files_after timeout decision reason context hooks notes errors forced degraded stop_hook_active stop_rejection_count requests") {
		if !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("%s is not documented", key)
		}
	}
}
