package prompthooks

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"stopgate/gate"
)

func call(t *testing.T, p page, name, args string) (string, bool) {
	t.Helper()
	text, failed, err := callTool(t.Context(), p, Call{Name: name, Args: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	return text, failed
}

func TestAzure29OneTranscriptOnly(t *testing.T) {
	for _, c := range []struct {
		name, tool, args string
		failed           bool
	}{
		{"no path", readFile, `{}`, false},
		{"no arguments", readFile, ``, false},
		{"null", readFile, `null`, false},
		{"the view", readFile, `{"file_path":"/t/view.txt"}`, false},
		{"the raw file", readFile, `{"path":"/t/raw.jsonl"}`, false},
		{"an empty path", readFile, `{"path":""}`, false},
		{"another file", readFile, `{"file_path":"/etc/passwd"}`, true},
		{"another file by the other name", grepSearch, `{"pattern":"x","path":"/etc/passwd"}`, true},
		{"another file beside the right one", readFile, `{"file_path":"/t/view.txt","path":"/etc/passwd"}`, true},
		{"a way round", readFile, `{"path":"/t/view.txt/../../etc/passwd"}`, true},
		{"a relative path", readFile, `{"path":"view.txt"}`, true},
		{"no pattern", grepSearch, `{}`, true},
		{"a pattern that is no text", grepSearch, `{"pattern":["x"]}`, true},
		{"an offset that is no number", readFile, `{"offset":"first"}`, true},
		{"arguments that are no object", readFile, `[1]`, true},
		{"arguments that are no JSON", readFile, `{`, true},
		{"unknown tool", "WriteFile", `{}`, true},
		{"name in lower case", "readfile", `{}`, true},
		{"unknown arguments", readFile, `{"encoding":"utf-8"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, failed := call(t, page{}, c.tool, c.args)
			if failed != c.failed || text == "" {
				t.Errorf("failed %t, want %t: %q", failed, c.failed, text)
			}
		})
	}
}

func TestToolNumbers(t *testing.T) {
	for in, want := range map[string]int{`3`: 3, `3.0`: 3, `"3"`: 3, `-1`: -1, `null`: 0, `1e300`: 1<<31 - 1, `-1e300`: -1 << 31} {
		var got int
		p := page{read: func(_ context.Context, offset, _ int) (string, error) { got = offset; return "x", nil }}
		if text, failed := call(t, p, readFile, `{"offset":`+in+`}`); failed || got != want {
			t.Errorf("%s: got %d, want %d (%s)", in, got, want, text)
		}
	}
	for _, in := range []string{`true`, `"x"`, `"NaN"`, `{}`} {
		if _, failed := call(t, page{}, readFile, `{"offset":`+in+`}`); !failed {
			t.Errorf("%s is taken for a number", in)
		}
	}
}

func TestResultsAreBounded(t *testing.T) {
	read := func(text string) string {
		t.Helper()
		got, failed := call(t, page{read: func(context.Context, int, int) (string, error) { return text, nil }}, readFile, "{}")
		if failed || len(got) > maxResultBytes+512 {
			t.Fatalf("failed %t, %d bytes", failed, len(got))
		}
		return got
	}
	t.Run("fault G19: a line of megabytes is cut, the next one is there", func(t *testing.T) {
		got := read("1\t" + strings.Repeat("€", 1<<20) + "\n2\tnext\n")
		if !strings.Contains(got, "more bytes]\n2\tnext\n") || len(got) > 3000 {
			t.Errorf("%d bytes: …%q", len(got), got[len(got)-80:])
		}
	})
	t.Run("too many lines", func(t *testing.T) {
		got := read(strings.Repeat("a line\n", 100_000))
		if !strings.HasSuffix(got, "narrower pattern.]\n") {
			t.Errorf("…%q", got[len(got)-80:])
		}
	})
	t.Run("bytes that are no text", func(t *testing.T) {
		if got := read("1\ta\xffb\n"); got != "1\ta\uFFFDb\n" {
			t.Errorf("%q", got)
		}
	})
	t.Run("what fits is left as it is", func(t *testing.T) {
		text := "1\t" + strings.Repeat("x", 1900) + "\n2\tb\n[3 more lines]\n"
		if got := read(text); got != text {
			t.Errorf("%q", got)
		}
	})
}

var _ gate.Transcript = page{}
