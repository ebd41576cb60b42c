package prompthooks

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stopgate/gate"
)

// book is a transcript of lines. Its answers end, as a real one's do, where they
// get too long.
type book []string

func (book) Path() string    { return "/t/view.txt" }
func (book) RawPath() string { return "" }
func (book) Close() error    { return nil }

func (book) Fingerprint(context.Context) ([32]byte, bool)       { return [32]byte{}, false }
func (book) Outline(context.Context, int) (string, bool, error) { return "", false, nil }

func (b book) ReadFile(_ context.Context, offset, limit int) (string, error) {
	var out strings.Builder
	for n := offset; n < offset+limit && n <= len(b) && out.Len() < 22<<10; n++ {
		fmt.Fprintf(&out, "%d\t%s\n", n, b[n-1])
	}
	return out.String() + "(lines are not shown)\n", nil
}
func (b book) GrepSearch(_ context.Context, q gate.Grep) (string, error) {
	pattern, err := regexp.Compile(q.Pattern)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for i, line := range b {
		if pattern.MatchString(line) && out.Len() < 30<<10 {
			fmt.Fprintf(&out, "%d:%s\n--\n", i+1, line)
		}
	}
	return out.String() + "(2 matching lines)\n", nil
}

// longTalk has 5,000 lines, with what a check of deployments wants in the midst.
func longTalk() book {
	b := make(book, 5000)
	for i := range b {
		b[i] = fmt.Sprintf("assistant: step %d of the work, which is long and not interesting", i+1)
	}
	b[0], b[2499], b[4999] = "user: deploy it", "tool: DEPLOYMENT failed", "assistant: all done"
	return b
}

// lacking is a model that refuses what it lacks, as servers do.
type lacking struct {
	script
	features Features
	refused  int
}

func (l *lacking) requests() int { return l.refused + len(l.asked) }

func (l *lacking) Generate(ctx context.Context, req Request) (Response, error) {
	if refused := req.Uses() & l.features; refused != 0 {
		l.refused++
		for _, f := range []Features{Thinking, Forcing, Schemas, Tools} { // one at a time
			if refused&f != 0 {
				return Response{}, &Error{Kind: Unsupported, Lacks: f, Message: fmt.Sprintf("status 400: no %d", f)}
			}
		}
	}
	return l.script.Generate(ctx, req)
}

// limited says so beforehand.
type limited struct{ lacking }

func (l *limited) Lacks() Features { return l.features }

func judgeOf(t *testing.T, m Model) func(gate.Transcript) gate.Verdict {
	t.Helper()
	j, err := New(Options{Model: func(string) (Model, string, error) { return m, "deployment", nil }})
	if err != nil {
		t.Fatal(err)
	}
	return func(tr gate.Transcript) gate.Verdict {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return j.Evaluate(ctx, gate.Input{Event: &gate.Event{Name: gate.Stop}, Context: []byte(stopContext), Transcript: tr,
			Hook: &gate.Hook{Name: "h", Event: gate.Stop, Prompt: "Was every deployment successful?", Timeout: 10 * time.Second}})
	}
}

func answering(features Features, answers ...func(Request) (Response, error)) *lacking {
	return &lacking{script: script{answers: answers}, features: features}
}

func TestModelWithoutTools(t *testing.T) {
	m := answering(Tools, says(no), says(yes))
	evaluate := judgeOf(t, m)
	v := evaluate(longTalk())
	wantVerdict(t, v, gate.Block, "run the tests")
	if m.requests() != 2 || v.Usage.Calls != 2 {
		t.Fatalf("%d requests, %d counted", m.requests(), v.Usage.Calls)
	}
	r := m.last()
	if r.Tools != nil || r.Force != "" || r.Schema == nil || strings.Contains(r.System, readFile) || len(r.Messages) != 1 {
		t.Errorf("asked %+v", r)
	}
	text := r.Messages[0].Text
	_, data, fenced := strings.Cut(text, "A part of the conversation, ")
	if !fenced || !regexp.MustCompile(`(?s)\A\d+ of its 5000 lines:\n<data-(\w+)>\n1\tuser: deploy it\n.*\n2500:tool: DEPLOYMENT failed\n.*\n5000\tassistant: all done\n\n</data-\w+>\z`).MatchString(data) {
		t.Errorf("asked:\n%s", text)
	}
	if !strings.Contains(text, "[lines ") || len(data) > headBytes+hitBytes+tailBytes+1024 || len(data) < headBytes+tailBytes/2 {
		t.Errorf("%d bytes of the conversation", len(data))
	}
	if s := v.Evidence.Steps[0]; s.Tool != "excerpt" || !strings.Contains(s.Input, "of its 5000 lines") {
		t.Errorf("steps %+v", v.Evidence.Steps)
	}
	t.Run("it is not asked again", func(t *testing.T) {
		wantVerdict(t, evaluate(longTalk()), gate.Allow, "")
		if m.requests() != 3 {
			t.Errorf("%d requests", m.requests())
		}
	})
	t.Run("a short conversation is whole", func(t *testing.T) {
		evaluate(longTalk()[:3])
		if text := m.last().Messages[0].Text; !strings.Contains(text, "The whole conversation, 3 lines:") || strings.Contains(text, "not shown]") {
			t.Errorf("asked:\n%s", text)
		}
	})
	t.Run("many short lines are whole", func(t *testing.T) {
		evaluate(book(strings.Split(strings.Repeat("x\n", 399)+"x", "\n")))
		if text := m.last().Messages[0].Text; !strings.Contains(text, "The whole conversation, 400 lines:") || strings.Contains(text, "not shown]") {
			t.Errorf("asked:\n%s", text)
		}
	})
	t.Run("an empty one too", func(t *testing.T) {
		wantVerdict(t, evaluate(book{}), gate.Allow, "")
	})
	t.Run("a conversation that cannot be read is not judged", func(t *testing.T) {
		broken := page{read: func(context.Context, int, int) (string, error) { return "", errors.New("input/output error") }}
		wantFailure(t, evaluate(broken), gate.TranscriptUnreadable)
	})
	t.Run("a repair asks for an object", func(t *testing.T) {
		m := answering(Tools|Schemas, says("hm"), says(yes))
		v := judgeOf(t, m)(longTalk())
		wantVerdict(t, v, gate.Allow, "")
		if msgs := m.last().Messages; !v.Has(gate.Repaired) || !strings.Contains(msgs[len(msgs)-1].Text, "one JSON object") || m.last().Schema != nil {
			t.Errorf("asked %+v", msgs)
		}
	})
}

func TestModelThatLacksLess(t *testing.T) {
	t.Run("a schema", func(t *testing.T) {
		m := answering(Schemas, says("Well: "+no))
		wantVerdict(t, judgeOf(t, m)(nil), gate.Block, "run the tests")
		if m.last().Schema != nil || m.requests() != 2 {
			t.Errorf("%d requests, schema %v", m.requests(), m.last().Schema)
		}
	})
	t.Run("a forced tool", func(t *testing.T) {
		m := answering(Forcing, says("hm"), calls(submitVerdict, no))
		wantVerdict(t, judgeOf(t, m)(page{}), gate.Block, "run the tests")
		// The repair would have forced it.
		if r := m.last(); r.Force != "" || len(r.Tools) != 3 || m.requests() != 3 {
			t.Errorf("%d requests, force %q", m.requests(), r.Force)
		}
	})
	t.Run("and it does not read on when it may not", func(t *testing.T) {
		m := answering(Forcing, says("hm"), calls(readFile, "{}"))
		wantFailure(t, judgeOf(t, m)(page{}), gate.BadVerdict)
	})
	t.Run("thoughts beside tools", func(t *testing.T) {
		m := answering(Thinking, calls(submitVerdict, no))
		wantVerdict(t, judgeOf(t, m)(page{}), gate.Block, "run the tests")
		if r := m.last(); !r.Unthinking || len(r.Tools) != 3 {
			t.Errorf("asked %+v", r)
		}
		wantVerdict(t, judgeOf(t, answering(Thinking, says(yes)))(nil), gate.Allow, "") // without tools it may think
	})
	t.Run("what its owner says is not tried", func(t *testing.T) {
		m := &limited{*answering(Tools|Schemas, says(no))}
		wantVerdict(t, judgeOf(t, m)(longTalk()), gate.Block, "run the tests")
		if m.requests() != 1 {
			t.Errorf("%d requests", m.requests())
		}
	})
	t.Run("a function that cannot be remembered", func(t *testing.T) {
		m := answering(Tools, says(no))
		wantVerdict(t, judgeOf(t, ModelFunc(m.Generate))(longTalk()), gate.Block, "run the tests")
	})
}

// A server that goes on refusing is not asked for ever.
func TestRefusalWithoutEnd(t *testing.T) {
	for name, f := range map[string]Features{"of what was not asked": Forcing, "of tools": Tools, "of nothing": 0, "of everything": Tools | Forcing | Schemas | Thinking} {
		t.Run(name, func(t *testing.T) {
			m := scripted(fails(&Error{Kind: Unsupported, Lacks: f, Message: "status 400"}))
			wantFailure(t, judgeOf(t, m)(longTalk()), gate.ModelUnavailable)
			if len(m.asked) > 2 {
				t.Errorf("%d requests", len(m.asked))
			}
		})
	}
}

func TestRefusalIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := answering(Tools, says(yes))
		evaluate := judgeOf(t, m)
		for _, want := range []int{2, 3, 5} {
			wantVerdict(t, evaluate(longTalk()), gate.Allow, "")
			if m.requests() != want {
				t.Errorf("%d requests, want %d", m.requests(), want)
			}
			if want == 3 {
				time.Sleep(learntFor)
			}
		}
	})
}

// Lines that the tools show begin with their number; other text has none.
func TestLineNumber(t *testing.T) {
	for line, want := range map[string]int{"12\tread": 12, "12:found": 12, "12-beside": 12, "12 said": 0, "said 12:": 0, ":12": 0, "12": 0, "": 0,
		"(no line matches)": 0, "99999999999999999999:x": 0} {
		if got := lineNumber(line); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}

func TestSearchWords(t *testing.T) {
	got := strings.Join(searchWords("Check whether the Agent's final answer mentions ROLLBACK, rollback (a.b) or größenwahn; and $ARGUMENTS"), " ")
	if want := "größenwahn mentions rollback"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCountLines(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 255, 256, 257, 5000} {
		if got, err := countLines(t.Context(), make(book, n)); err != nil || got != n {
			t.Errorf("%d lines of %d, %v", got, n, err)
		}
	}
}

func TestSchemaAsJSON(t *testing.T) {
	got, err := verdictSchema(gate.PreToolUse, true).MarshalJSON()
	if err != nil || !regexp.MustCompile(`\A\{"type":"object","properties":\{"checklist":\{"type":"array",.*"items":\{"type":"object",.*"evidence":.*"reason":.*"probability":.*"decision":\{"type":"string","enum":\["allow","block","ask"\]\},"hookSpecificOutput":\{"type":"object","properties":\{"additionalContext":.*\},"additionalProperties":false\}\},"required":\["decision"\],"additionalProperties":false\}\z`).Match(got) {
		t.Errorf("%s %v", got, err)
	}
}

// What an answer of ReadFile leaves out is read on for: the end of a
// conversation is what a judge needs most.
func TestExcerptHasTheEnd(t *testing.T) {
	for name, long := range map[string]int{"long lines": 300, "the longest": maxLineBytes, "short ones": 3} {
		t.Run(name, func(t *testing.T) {
			talk := longTalk()
			for i := range talk[:4999] {
				talk[i] = fmt.Sprintf("step %d %s", i+1, strings.Repeat("y", long))
			}
			text, shown, total, err := excerpt(t.Context(), talk, "Is it done?")
			if err != nil || total != 5000 || !strings.HasSuffix(text, "\n5000\tassistant: all done\n") {
				t.Fatalf("%d of %d lines shown, %v: …%s", shown, total, err, text[max(0, len(text)-200):])
			}
			if n := strings.Count(text, "] are not shown") + strings.Count(text, "not shown]"); n != 1 || len(text) < headBytes+tailBytes-2*maxLineBytes {
				t.Errorf("%d gaps in %d bytes", n, len(text))
			}
		})
	}
	t.Run("a gap at the end is told", func(t *testing.T) {
		if got, want := joined([]string{"2\tx\n"}, 9), "[lines 1 to 1 are not shown]\n2\tx\n[lines 3 to 9 are not shown]\n"; got != want {
			t.Errorf("got %q", got)
		}
	})
}

// Old lines with words of the check do not hide the newest one.
func TestExcerptHasTheNewestHits(t *testing.T) {
	talk := longTalk()
	for i := range talk[100:2400] {
		talk[100+i] = "the deployment is fine " + strings.Repeat("ok ", 20)
	}
	long := strings.Repeat("z", 2*maxLineBytes) + " DEPLOYMENT"
	for name, line := range map[string]string{"a line": "tool: DEPLOYMENT failed", "one without its like": "deployment"} {
		t.Run(name, func(t *testing.T) {
			talk[2499] = line
			text, _, _, err := excerpt(t.Context(), talk, "Was every deployment successful?")
			if err != nil || !strings.Contains(text, "\n2500\t"+line+"\n") || !strings.Contains(text, "\n2400\t") {
				t.Errorf("%v:\n%s", err, text)
			}
		})
	}
	t.Run("also deep in a long line", func(t *testing.T) {
		few := longTalk()
		few[2499] = long
		if text, _, _, err := excerpt(t.Context(), few, "Was every deployment successful?"); err != nil || !strings.Contains(text, "\n2500:z") {
			t.Errorf("%v:\n%s", err, text)
		}
	})
}
