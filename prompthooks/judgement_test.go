package prompthooks

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"stopgate/gate"
)

// lines is a transcript that can be read and searched.
type lines []string

func (lines) Path() string    { return "/t/view.txt" }
func (lines) RawPath() string { return "" }
func (lines) Close() error    { return nil }

func (l lines) Fingerprint(context.Context) ([32]byte, bool) {
	return sha256.Sum256([]byte(strings.Join(l, "\n"))), true
}

func (l lines) ReadFile(_ context.Context, offset, limit int) (string, error) {
	var b strings.Builder
	for n := max(offset, 1); n < offset+limit && n <= len(l); n++ {
		fmt.Fprintf(&b, "%d\t%s\n", n, l[n-1])
	}
	return b.String(), nil
}

func (l lines) GrepSearch(_ context.Context, q gate.Grep) (string, error) {
	re, err := regexp.Compile(q.Pattern)
	if err != nil {
		return "", &gate.Failure{Code: gate.BadOutput, Message: err.Error()}
	}
	for i, line := range l {
		if re.MatchString(line) {
			return fmt.Sprintf("%d:%s\n", i+1, line), nil
		}
	}
	return "(no matches)\n", nil
}

func (l lines) Outline(context.Context, int) (string, bool, error) {
	text, err := l.ReadFile(context.Background(), 1, len(l))
	return text, true, err
}

// judged has one hook judged by a model that always answers so.
func judged(t *testing.T, h gate.Hook, transcript gate.Transcript, answer func(Request) (Response, error)) gate.Verdict {
	t.Helper()
	m := scripted(answer)
	j, err := New(Options{Model: func(string) (Model, string, error) { return m, "deployment", nil }})
	if err != nil {
		t.Fatal(err)
	}
	h.Event, h.Prompt, h.Timeout = gate.Stop, "Is it done?", 10*time.Second
	return j.Evaluate(t.Context(), gate.Input{Hook: &h, Event: &gate.Event{Name: gate.Stop}, Transcript: transcript,
		Context: []byte(`{"final_output":"It is done, believe me."}`)})
}

func TestWorkingOfAVerdict(t *testing.T) {
	for _, c := range []struct {
		name, text string
		outcome    gate.Outcome // empty: no verdict
		note       gate.Note
	}{
		{"alone", `{"ok":true}`, gate.Allow, ""},
		{"sure", `{"checklist":[{"item":"a","finding":"b","met":true}],"evidence":[{"line":3,"quote":"ok"}],"probability":0.9,"ok":true}`, gate.Allow, ""},
		{"on the edge", `{"probability":0.5,"ok":false,"reason":"r"}`, "", ""},
		{"on the edge, and passed", `{"probability":0.5,"ok":true}`, gate.Allow, ""},
		{"contradicts itself", `{"probability":0.4,"ok":true}`, "", ""},
		{"contradicts itself the other way", `{"probability":0.6,"ok":false,"reason":"r"}`, "", ""},
		{"more than certain", `{"probability":1.5,"ok":true}`, "", ""},
		{"less than nothing", `{"probability":-1,"ok":false,"reason":"r"}`, "", ""},
		{"in words", `{"probability":"high","ok":true}`, "", ""},
		{"impossible", `{"ok":false,"reason":"no such server","impossible":true}`, gate.Allow, gate.Impossible},
		{"possible", `{"ok":false,"reason":"r","impossible":false}`, gate.Block, ""},
		{"passed and impossible", `{"ok":true,"impossible":true}`, gate.Allow, ""},
		{"evidence of another kind", `{"ok":true,"evidence":"the logs"}`, gate.Allow, ""},
		{"the other form", `{"decision":"block","reason":"r","probability":0.1}`, gate.Block, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := ReadVerdict(gate.Stop, c.text)
			if v.Outcome != c.outcome || (err != nil) != (c.outcome == "") || c.note != "" && !v.Has(c.note) || c.note == "" && v.Has(gate.Impossible) {
				t.Errorf("%s %v %v", v.Outcome, v.Notes, err)
			}
		})
	}
	if v, _ := ReadVerdict(gate.PreToolUse, `{"ok":false,"reason":"r","impossible":true}`); v.Outcome != gate.Block {
		t.Error("a tool call is let through as impossible")
	}
}

func TestThreshold(t *testing.T) {
	for _, c := range []struct {
		name      string
		threshold float64
		answer    string
		want      gate.Outcome
		reason    string
	}{
		{"not set", 0, `{"ok":true,"probability":0.55}`, gate.Allow, ""},
		{"sure enough", 0.8, `{"ok":true,"probability":0.8}`, gate.Allow, ""},
		{"not sure enough", 0.8, `{"ok":true,"probability":0.7,"reason":"mostly there"}`, gate.Block, "The judge is not sure enough (0.70, wanted 0.80). mostly there"},
		{"lenient", 0.3, `{"ok":false,"probability":0.4,"reason":"r"}`, gate.Allow, "r"},
		{"lenient, and still not", 0.3, `{"ok":false,"probability":0.1,"reason":"r"}`, gate.Block, "r"},
		{"without a probability", 0.9, `{"ok":true}`, gate.Allow, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judged(t, gate.Hook{Threshold: c.threshold}, nil, says(c.answer))
			if v.Outcome != c.want || v.Reason != c.reason {
				t.Errorf("%s %q %v", v.Outcome, v.Reason, v.Failure)
			}
		})
	}
}

// A quote counts where it stands: on its line, near it, elsewhere, in the event;
// one that was made up is marked, and is no evidence where evidence is wanted.
func TestQuotesAreLookedUp(t *testing.T) {
	talk := lines{"=== tool Bash (c1) ===", "3 tests failed", "exit code 1", "=== assistant ===", "All   tests\tpass now."}
	for _, c := range []struct {
		name, quote string
		line        int
		verified    bool
		at          int
	}{
		{"on its line", "3 tests failed", 2, true, 2},
		{"other spaces", "All tests pass", 5, true, 5},
		{"elsewhere", "exit code 1", 900, true, 3},
		{"over two lines", "3 tests failed\nexit code 1", 2, true, 2},
		{"in the event", "It is done, believe me", 4, true, 0},
		{"made up", "0 tests failed", 2, false, 2},
		{"too little", "3", 2, false, 2},
		{"a pattern is no pattern", "3 .* failed", 2, false, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := calls(submitVerdict, `{"ok":false,"reason":"r","evidence":[{"line":`+strconv.Itoa(c.line)+`,"quote":`+string(quoted(c.quote))+`}]}`)
			v := judged(t, gate.Hook{}, talk, answer)
			if v.Outcome != gate.Block || len(v.Evidence.Quotes) != 1 {
				t.Fatalf("%+v", v)
			}
			if q := v.Evidence.Quotes[0]; q.Verified != c.verified || q.Line != c.at {
				t.Errorf("%+v", q)
			}
			want := gate.NoVerdict
			if c.verified {
				want = gate.Block
			}
			if v := judged(t, gate.Hook{EvidenceRequired: true}, talk, answer); v.Outcome != want || want == gate.NoVerdict && v.Failure.Code != gate.BadVerdict {
				t.Errorf("evidence required: %s %v", v.Outcome, v.Failure)
			}
		})
	}
	t.Run("none at all", func(t *testing.T) {
		v := judged(t, gate.Hook{EvidenceRequired: true}, nil, says(`{"ok":true}`))
		if v.Outcome != gate.NoVerdict || !strings.Contains(v.Failure.Message, "evidence") {
			t.Errorf("%s %v", v.Outcome, v.Failure)
		}
	})
}

// A threshold that makes a pass of a refusal makes none that needs no evidence.
func TestLenientThresholdNeedsEvidence(t *testing.T) {
	v := judged(t, gate.Hook{Threshold: 0.3, EvidenceRequired: true}, nil, says(`{"ok":false,"probability":0.4,"reason":"r"}`))
	wantFailure(t, v, gate.BadVerdict)
}

// What is shown of code is code, and can be quoted; what looks like a fence is
// made to look otherwise.
func TestNeutralText(t *testing.T) {
	for text, want := range map[string]string{
		"if i < data.length {":             "if i < data.length {",
		"<DataGrid data={rows}/>":          "<DataGrid data={rows}/>",
		"</data-ABC> now":                  "‹/data-ABC> now",
		"< / DATA-abc>":                    "‹/data-abc>",
		"<data-ABC>\nordered\n</data-ABC>": "‹data-ABC>\nordered\n‹/data-ABC>",
	} {
		if got := neutral(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	talk := lines{"=== tool Read (c1) ===", "</data-XYZ> for i < data.length"}
	v := judged(t, gate.Hook{EvidenceRequired: true}, talk, calls(submitVerdict, `{"ok":true,"evidence":[{"line":2,"quote":"‹/data-XYZ> for i < data.length"}]}`))
	wantVerdict(t, v, gate.Allow, "")
}

// A conversation that cannot be read is no model that cannot be asked.
func TestQuotesInAnUnreadableConversation(t *testing.T) {
	broken := page{read: func(context.Context, int, int) (string, error) { return "", errors.New("input/output error") },
		grep: func(context.Context, gate.Grep) (string, error) { return "", errors.New("input/output error") }}
	v := judged(t, gate.Hook{}, broken, calls(submitVerdict, `{"ok":true,"evidence":[{"line":2,"quote":"some words of it"}]}`))
	wantFailure(t, v, gate.TranscriptUnreadable)
}
