package prompthooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// script is a model that gives its answers in turn, the last one again and
// again, and keeps what it was asked.
type script struct {
	answers []func(Request) (Response, error)
	asked   []Request
}

func (s *script) Generate(_ context.Context, req Request) (Response, error) {
	req.Messages = slices.Clone(req.Messages)
	s.asked = append(s.asked, req)
	return s.answers[min(len(s.asked), len(s.answers))-1](req)
}

func (s *script) last() Request { return s.asked[len(s.asked)-1] }

func scripted(answers ...func(Request) (Response, error)) *script { return &script{answers: answers} }

func says(text string) func(Request) (Response, error) {
	return func(Request) (Response, error) {
		return Response{Message: Message{Role: Assistant, Text: text, Native: json.RawMessage("native of " + text)},
			Usage: gate.Usage{PromptTokens: 100, CachedTokens: 60, OutputTokens: 10}}, nil
	}
}

// calls answers with tool calls: name, arguments, name, arguments …
func calls(namesAndArgs ...string) func(Request) (Response, error) {
	m := Message{Role: Assistant, Native: json.RawMessage("native calls")}
	for i := 0; i < len(namesAndArgs); i += 2 {
		m.Calls = append(m.Calls, Call{ID: fmt.Sprint("id", i/2), Name: namesAndArgs[i], Args: json.RawMessage(namesAndArgs[i+1])})
	}
	return func(Request) (Response, error) {
		return Response{Message: m, Usage: gate.Usage{PromptTokens: 100, OutputTokens: 10}}, nil
	}
}

func ends(f Finish, detail string) func(Request) (Response, error) {
	return func(Request) (Response, error) {
		return Response{Message: Message{Role: Assistant}, Finish: f, Detail: detail}, nil
	}
}

func fails(err error) func(Request) (Response, error) {
	return func(Request) (Response, error) { return Response{}, err }
}

// page is a transcript of functions.
type page struct {
	read func(ctx context.Context, offset, limit int) (string, error)
	grep func(ctx context.Context, q gate.Grep) (string, error)
}

func (page) Path() string    { return "/t/view.txt" }
func (page) RawPath() string { return "/t/raw.jsonl" }
func (page) Close() error    { return nil }
func (p page) ReadFile(ctx context.Context, offset, limit int) (string, error) {
	if p.read == nil {
		return "1\tuser: make the tests green\n2\tassistant: done\n", nil
	}
	return p.read(ctx, offset, limit)
}
func (page) Fingerprint(context.Context) ([32]byte, bool) { return [32]byte{}, false }

func (p page) Outline(context.Context, int) (string, bool, error) { return "", false, nil }

func (p page) GrepSearch(ctx context.Context, q gate.Grep) (string, error) {
	if p.grep == nil {
		return "1\tuser: make the tests green\n", nil
	}
	return p.grep(ctx, q)
}

// ask evaluates a Stop hook with a timeout of 10 s.
func ask(t *testing.T, m Model, transcript gate.Transcript, limits ...int) gate.Verdict {
	t.Helper()
	o := Options{Model: func(string) (Model, string, error) { return m, "deployment", nil }}
	if len(limits) > 0 {
		o.MaxRounds = limits[0]
	}
	if len(limits) > 1 {
		o.MaxTokens = limits[1]
	}
	j, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	in := gate.Input{Hook: &gate.Hook{Name: "h", Event: gate.Stop, Prompt: "Is it done?", Timeout: 10 * time.Second},
		Event: &gate.Event{Name: gate.Stop}, Context: []byte(stopContext), Transcript: transcript}
	ctx, cancel := context.WithTimeout(t.Context(), in.Hook.Timeout)
	defer cancel()
	return j.Evaluate(ctx, in)
}

func wantVerdict(t *testing.T, v gate.Verdict, outcome gate.Outcome, reason string) {
	t.Helper()
	if v.Outcome != outcome || v.Reason != reason || v.Failure != nil {
		t.Errorf("got %s %q %+v, want %s %q", v.Outcome, v.Reason, v.Failure, outcome, reason)
	}
}

func wantFailure(t *testing.T, v gate.Verdict, code gate.FailureCode) {
	t.Helper()
	if v.Outcome != gate.NoVerdict || v.Failure == nil || v.Failure.Code != code || v.Failure.Message == "" {
		t.Errorf("got %s %q %+v, want %s", v.Outcome, v.Reason, v.Failure, code)
	}
	if v.Has(gate.Repaired) {
		t.Error("a failure is noted as repaired")
	}
}

const (
	yes = `{"ok":true}`
	no  = `{"ok":false,"reason":"run the tests"}`
)

// fault gx-055: ok:false blocks.
func TestVerdictFromOneCall(t *testing.T) {
	m := scripted(says(no))
	v := ask(t, m, nil)
	wantVerdict(t, v, gate.Block, "run the tests")
	if v.Model != "deployment" || *v.Usage != (gate.Usage{Calls: 1, PromptTokens: 100, CachedTokens: 60, OutputTokens: 10}) {
		t.Errorf("model %q, usage %+v", v.Model, v.Usage)
	}
	if len(v.Evidence.Steps) != 1 || v.Evidence.Steps[0].Text != no || v.Evidence.Steps[0].Tokens != 110 {
		t.Errorf("steps %+v", v.Evidence.Steps)
	}
	t.Run("fault G12, promptctx-02: the answer under judgement is in the request", func(t *testing.T) {
		if text := m.last().Messages[0].Text; !strings.Contains(text, stopContext) || !strings.Contains(text, "Is it done?") {
			t.Errorf("asked:\n%s", text)
		}
	})
}

func TestAzure27ToolsOnlyWithTranscript(t *testing.T) {
	without := scripted(says(yes))
	ask(t, without, nil)
	if r := without.last(); len(r.Tools) != 0 || r.Schema == nil || strings.Contains(r.System, readFile) {
		t.Errorf("without a transcript: tools %v, schema %v", r.Tools, r.Schema)
	}
	with := scripted(says(yes))
	ask(t, with, page{})
	var names []string
	for _, tool := range with.last().Tools {
		names = append(names, tool.Name)
	}
	if want := []string{readFile, grepSearch, submitVerdict}; !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v", names, want)
	}
	// Models refuse tools and a schema in one request (faults gx-049, gx-072,
	// gx-073).
	if with.last().Schema != nil {
		t.Error("faults gx-049, gx-072, gx-073: tools and a schema in one request")
	}
	t.Run("a call of a tool that was not offered is no verdict", func(t *testing.T) {
		wantFailure(t, ask(t, scripted(calls(readFile, yes)), nil), gate.BadVerdict)
	})
}

func TestAzure29JudgeReadsTranscript(t *testing.T) {
	var got gate.Grep
	m := scripted(
		calls(grepSearch, `{"pattern":"tests","context":2,"limit":5}`, readFile, `{"offset":7.0,"limit":"3","file_path":"/t/view.txt"}`),
		calls(submitVerdict, no))
	v := ask(t, m, page{
		grep: func(_ context.Context, q gate.Grep) (string, error) { got = q; return "GREPPED\n", nil },
		read: func(_ context.Context, offset, limit int) (string, error) {
			return fmt.Sprintf("READ %d %d\n", offset, limit), nil
		},
	})
	wantVerdict(t, v, gate.Block, "run the tests")
	if got != (gate.Grep{Pattern: "tests", Context: 2, Limit: 5}) {
		t.Errorf("searched %+v", got)
	}
	msgs := m.last().Messages
	if len(msgs) != 3 || string(msgs[1].Native) != "native calls" || len(msgs[2].Results) != 2 {
		t.Fatalf("messages %+v", msgs)
	}
	for i, want := range []struct{ id, name, text string }{{"id0", grepSearch, "GREPPED"}, {"id1", readFile, "READ 7 3"}} {
		r := msgs[2].Results[i]
		if r.ID != want.id || r.Name != want.name || r.Failed || !strings.HasPrefix(r.Text, "<data-") || !strings.Contains(r.Text, want.text) {
			t.Errorf("result %d: %+v", i, r)
		}
	}
	var tools []string
	for _, s := range v.Evidence.Steps {
		tools = append(tools, s.Tool)
	}
	if want := []string{"", grepSearch, readFile, "", submitVerdict}; !slices.Equal(tools, want) {
		t.Errorf("steps %v, want %v", tools, want)
	}
	if v.Usage.Calls != 2 || v.Usage.PromptTokens != 200 {
		t.Errorf("usage %+v", v.Usage)
	}
}

func TestAzure30PublishedPromptDecides(t *testing.T) {
	// No $ARGUMENTS and no contract in the prompt, and yet a decision.
	m := scripted(says(yes))
	wantVerdict(t, ask(t, m, nil), gate.Allow, "")
	r := m.last()
	if !strings.Contains(r.System, `{"ok": true}`) || !strings.Contains(r.Messages[0].Text, stopContext) || !slices.Contains(r.Schema.Required, "ok") {
		t.Errorf("request %+v", r)
	}
	t.Run("fault G65: the prefix is the same for every event", func(t *testing.T) {
		other := scripted(says(yes))
		ask(t, other, nil)
		if other.last().System != r.System || r.System != system {
			t.Error("the system text changes")
		}
	})
}

func TestAzure31SchemaFollowsThePrompt(t *testing.T) {
	for prompt, required := range map[string]string{
		"Is it done?":                                     "ok",
		`Answer {"decision":"block"} if not`:              "decision",
		"Give hookSpecificOutput with additionalContext.": "decision",
		"Come to a decision.":                             "ok",
	} {
		if s := verdictSchema(gate.Stop, expanded(prompt)); !slices.Equal(s.Required, []string{required}) {
			t.Errorf("%q: required %v", prompt, s.Required)
		}
	}
	if s := verdictSchema(gate.PreToolUse, true); !slices.Contains(s.Properties["decision"].Enum, "ask") {
		t.Error("no ask before a tool call")
	}
}

// Judges share the form of a verdict, each that of its own event and prompt.
func TestSharedForms(t *testing.T) {
	var f forms
	for range 2 {
		for _, event := range gate.EventNames {
			for _, prompt := range []string{"Is it done?", `Answer {"decision":"block"} if not`} {
				want := verdictSchema(event, expanded(prompt))
				got := f.of(event, prompt)
				if diff := cmp.Diff(want, got.schema); diff != "" {
					t.Errorf("%s, %q (-want +got):\n%s", event, prompt, diff)
				}
				if diff := cmp.Diff(judgeTools(want), got.tools); diff != "" {
					t.Errorf("%s, %q (-want +got):\n%s", event, prompt, diff)
				}
				if f.of(event, prompt) != got {
					t.Errorf("%s, %q: made again", event, prompt)
				}
			}
		}
	}
}

func TestAzure32OneRepair(t *testing.T) {
	t.Run("prose, then a verdict", func(t *testing.T) {
		m := scripted(says("Yes, all done."), says(no))
		v := ask(t, m, nil)
		wantVerdict(t, v, gate.Block, "run the tests")
		if !v.Has(gate.Repaired) || v.Usage.Calls != 2 {
			t.Errorf("notes %v, usage %+v", v.Notes, v.Usage)
		}
		msgs := m.last().Messages
		if len(msgs) != 3 || string(msgs[1].Native) != "native of Yes, all done." || !strings.Contains(msgs[2].Text, "not a verdict") {
			t.Errorf("messages %+v", msgs)
		}
	})
	t.Run("prose for ever", func(t *testing.T) {
		m := scripted(says("Yes."))
		wantFailure(t, ask(t, m, nil), gate.BadVerdict)
		if len(m.asked) != 2 {
			t.Errorf("%d requests, want 2", len(m.asked))
		}
	})
	t.Run("an empty answer is not handed back", func(t *testing.T) {
		m := scripted(ends(Malformed, "MALFORMED_FUNCTION_CALL"), says(yes))
		wantVerdict(t, ask(t, m, nil), gate.Allow, "")
		for _, msg := range m.last().Messages {
			if msg.Role == Assistant {
				t.Errorf("handed back %+v", msg)
			}
		}
	})
	t.Run("a verdict in a broken answer is not taken", func(t *testing.T) {
		wantFailure(t, ask(t, scripted(func(Request) (Response, error) {
			return Response{Message: Message{Text: yes}, Finish: Malformed, Detail: "x"}, nil
		}), nil), gate.BadVerdict)
	})
	t.Run("cut off, then a verdict", func(t *testing.T) {
		wantVerdict(t, ask(t, scripted(ends(Truncated, "MAX_TOKENS"), says(yes)), nil), gate.Allow, "")
	})
	t.Run("cut off for ever", func(t *testing.T) {
		wantFailure(t, ask(t, scripted(ends(Truncated, "MAX_TOKENS")), nil), gate.ModelTruncated)
	})
	t.Run("a refusal is not asked again", func(t *testing.T) {
		m := scripted(ends(Refused, "SAFETY"), says(yes))
		v := ask(t, m, nil)
		wantFailure(t, v, gate.ModelRefused)
		if len(m.asked) != 1 || !strings.Contains(v.Failure.Message, "SAFETY") {
			t.Errorf("%d requests, %v", len(m.asked), v.Failure)
		}
	})
	t.Run("with tools the repair takes nothing but a verdict", func(t *testing.T) {
		m := scripted(calls(submitVerdict, `{"ok":"yes"}`), calls(submitVerdict, yes))
		v := ask(t, m, page{})
		wantVerdict(t, v, gate.Allow, "")
		r := m.last()
		results := r.Messages[len(r.Messages)-1].Results
		if r.Force != submitVerdict || !v.Has(gate.Repaired) || len(results) != 1 || results[0].ID != "id0" || !results[0].Failed {
			t.Errorf("force %q, results %+v", r.Force, results)
		}
	})
}

func TestAzure32VerdictAndTools(t *testing.T) {
	t.Run("text instead of submit_verdict", func(t *testing.T) {
		wantVerdict(t, ask(t, scripted(says("Well: "+no)), page{}), gate.Block, "run the tests")
	})
	t.Run("text and submit_verdict disagree", func(t *testing.T) {
		both := func(r Request) (Response, error) {
			a, _ := calls(submitVerdict, yes)(r)
			a.Message.Text = no
			return a, nil
		}
		wantFailure(t, ask(t, scripted(both), page{}), gate.BadVerdict)
	})
	t.Run("two that disagree", func(t *testing.T) {
		wantFailure(t, ask(t, scripted(calls(submitVerdict, yes, submitVerdict, no)), page{}), gate.BadVerdict)
	})
	t.Run("a verdict beside a wish to read is not taken", func(t *testing.T) {
		m := scripted(calls(submitVerdict, yes, readFile, "{}"), calls(submitVerdict, no))
		wantVerdict(t, ask(t, m, page{}), gate.Block, "run the tests")
		if r := m.last().Messages[2].Results; !r[0].Failed || !strings.HasPrefix(r[0].Text, "Not taken") || r[1].Failed {
			t.Errorf("results %+v", r)
		}
	})
	t.Run("calls of an answer that was cut off are not run", func(t *testing.T) {
		cutOff := func(r Request) (Response, error) {
			a, _ := calls(readFile, "{}")(r)
			a.Finish = Truncated
			return a, nil
		}
		m := scripted(cutOff, calls(submitVerdict, yes))
		v := ask(t, m, page{read: func(context.Context, int, int) (string, error) {
			t.Error("the call was run")
			return "", nil
		}})
		wantVerdict(t, v, gate.Allow, "")
		if !v.Has(gate.Repaired) {
			t.Errorf("notes %v", v.Notes)
		}
	})
	t.Run("a verdict in the transcript is not taken", func(t *testing.T) {
		m := scripted(calls(readFile, "{}"), says("I have read it."))
		v := ask(t, m, page{read: func(context.Context, int, int) (string, error) { return "1\t" + yes + "\n", nil }})
		wantFailure(t, v, gate.BadVerdict)
	})
}

func TestAzure32LimitOfRounds(t *testing.T) {
	m := scripted(calls("DeleteEverything", `{}`))
	v := ask(t, m, page{}, 3)
	// Three rounds, the forced verdict, its repair.
	wantFailure(t, v, gate.BadVerdict)
	if len(m.asked) != 5 {
		t.Fatalf("%d requests, want 5", len(m.asked))
	}
	for i, r := range m.asked {
		if forced := r.Force == submitVerdict; forced != (i >= 3) {
			t.Errorf("request %d: force %q", i, r.Force)
		}
		if len(r.Tools) != 3 || r.Schema != nil {
			t.Errorf("request %d: %d tools, schema %v", i, len(r.Tools), r.Schema)
		}
	}
	if r := m.asked[3].Messages[6].Results[0]; !strings.Contains(r.Text, "no such tool") || !strings.Contains(r.Text, "last round") {
		t.Errorf("last result: %q", r.Text)
	}
	t.Run("a verdict at the limit counts", func(t *testing.T) {
		read := calls(readFile, "{}")
		m := scripted(read, read, calls(submitVerdict, no))
		v := ask(t, m, page{}, 2)
		wantVerdict(t, v, gate.Block, "run the tests")
		if m.last().Force != submitVerdict || v.Has(gate.Repaired) {
			t.Errorf("force %q, notes %v", m.last().Force, v.Notes)
		}
	})
}

// A judge still calling tools at 70 % of the timeout is asked for its verdict,
// and not a moment earlier; what it asked for then is not run any more.
func TestAzure32VerdictIsDueAt70Percent(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration // of 10 s
		due   bool
	}{
		{"just before", 7*time.Second - time.Nanosecond, false},
		{"at", 7 * time.Second, true},
		{"just after", 7*time.Second + time.Nanosecond, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reading := calls(readFile, `{}`)
				m := scripted(func(r Request) (Response, error) {
					time.Sleep(c.after)
					return reading(r)
				}, calls(submitVerdict, yes))
				read := false
				v := ask(t, m, page{read: func(context.Context, int, int) (string, error) {
					read = true
					return "1\tuser: x\n", nil
				}})
				wantVerdict(t, v, gate.Allow, "")
				if forced := m.last().Force == submitVerdict; len(m.asked) != 2 || forced != c.due || read == c.due {
					t.Errorf("asked %d times, verdict asked for %v, the call run %v; want 2, %v, %v", len(m.asked), forced, read, c.due, !c.due)
				}
			})
		})
	}
}

// fault gx-057: the timeout bounds the whole evaluation, tool rounds included.
func TestAzure32SeventyPercent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slowly := func(d time.Duration, then func(Request) (Response, error)) func(Request) (Response, error) {
			return func(r Request) (Response, error) { time.Sleep(d); return then(r) }
		}
		read := slowly(3*time.Second, calls(readFile, "{}"))
		m := scripted(read, read, read, slowly(time.Second, calls(submitVerdict, yes)))
		wantVerdict(t, ask(t, m, page{}), gate.Allow, "")
		// Answers came at 3, 6 and 9 s of 10.
		if m.asked[2].Force != "" || m.asked[3].Force != submitVerdict {
			t.Errorf("force at 6 s %q, at 9 s %q", m.asked[2].Force, m.asked[3].Force)
		}
		if r := m.asked[3].Messages[6].Results[0]; !r.Failed || !strings.Contains(r.Text, "Call submit_verdict now") {
			t.Errorf("result at 9 s: %+v", r)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a tool that hangs leaves time for a verdict
		m := scripted(calls(grepSearch, `{"pattern":"x"}`), calls(submitVerdict, yes))
		began := time.Now()
		v := ask(t, m, page{grep: func(ctx context.Context, _ gate.Grep) (string, error) { <-ctx.Done(); return "", ctx.Err() }})
		wantVerdict(t, v, gate.Allow, "")
		if took := time.Since(began); took != 8500*time.Millisecond {
			t.Errorf("the search was stopped after %s, want 8.5s", took)
		}
	})
}

func TestAzure32Tries(t *testing.T) {
	down, limited := Errorf(Unavailable, "status 503"), &Error{Kind: RateLimited, Message: "status 429", RetryAfter: 3 * time.Second}
	for _, c := range []struct {
		name    string
		answers []func(Request) (Response, error)
		code    gate.FailureCode // empty: allow
		tries   int
		atLeast time.Duration
	}{
		{"down three times", []func(Request) (Response, error){fails(down), fails(down), fails(down), says(yes)}, "", 4, 1750 * time.Millisecond},
		{"down for ever", []func(Request) (Response, error){fails(down)}, gate.ModelUnavailable, 4, 1750 * time.Millisecond},
		{"limited, and it waits as it is told", []func(Request) (Response, error){fails(limited), says(yes)}, "", 2, 3 * time.Second},
		{"limited for ever", []func(Request) (Response, error){fails(limited)}, gate.ModelRateLimited, 4, 9 * time.Second},
		{"told to wait longer than there is time", []func(Request) (Response, error){fails(&Error{Kind: RateLimited, Message: "x", RetryAfter: time.Hour})}, gate.ModelRateLimited, 1, 0},
		{"rejected", []func(Request) (Response, error){fails(Errorf(Rejected, "status 400")), says(yes)}, gate.ModelUnavailable, 1, 0},
		{"garbled", []func(Request) (Response, error){fails(Errorf(Garbled, "HTML")), says(yes)}, gate.ModelUnavailable, 1, 0},
		{"some other error", []func(Request) (Response, error){fails(errors.New("x")), says(yes)}, gate.ModelUnavailable, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := scripted(c.answers...)
				began := time.Now()
				v := ask(t, m, nil)
				if c.code == "" {
					wantVerdict(t, v, gate.Allow, "")
				} else {
					wantFailure(t, v, c.code)
				}
				if len(m.asked) != c.tries || v.Usage.Calls != c.tries {
					t.Errorf("%d tries, %d counted, want %d", len(m.asked), v.Usage.Calls, c.tries)
				}
				if took := time.Since(began); took < c.atLeast || took > 10*time.Second {
					t.Errorf("took %s, want at least %s", took, c.atLeast)
				}
			})
		})
	}
}

func TestAzure32Timeout(t *testing.T) {
	hangs := ModelFunc(func(ctx context.Context, _ Request) (Response, error) {
		<-ctx.Done()
		return Response{}, Errorf(Unavailable, "connection broken: %v", ctx.Err())
	})
	slow := ModelFunc(func(ctx context.Context, r Request) (Response, error) {
		select {
		case <-time.After(4 * time.Second):
			return says("hm")(r)
		case <-ctx.Done():
			return Response{}, ctx.Err()
		}
	})
	down := scripted(fails(&Error{Kind: Unavailable, Message: "status 503", RetryAfter: 4 * time.Second}))
	for name, c := range map[string]struct {
		model Model
		code  gate.FailureCode
		took  time.Duration
	}{
		"faults gx-057, G32: a model that hangs":      {hangs, gate.Timeout, 10 * time.Second},
		"the repair is inside the same time":          {slow, gate.BadVerdict, 8 * time.Second},
		"and so are the tries: the third has no time": {down, gate.ModelUnavailable, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				wantFailure(t, ask(t, c.model, nil), c.code)
				if took := time.Since(began); took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
			})
		})
	}
}

func TestTokenBudget(t *testing.T) {
	costs := func(tokens int, then func(Request) (Response, error)) func(Request) (Response, error) {
		return func(r Request) (Response, error) {
			a, err := then(r)
			a.Usage = gate.Usage{PromptTokens: tokens - 10, OutputTokens: 10}
			return a, err
		}
	}
	t.Run("nearing it the verdict is due", func(t *testing.T) {
		m := scripted(costs(400, calls(readFile, "{}")), costs(500, calls(submitVerdict, no)))
		v := ask(t, m, page{}, 0, 1000)
		wantVerdict(t, v, gate.Block, "run the tests")
		if m.last().Force != submitVerdict {
			t.Error("no verdict was asked for")
		}
	})
	t.Run("past it there is none", func(t *testing.T) {
		m := scripted(costs(400, calls(readFile, "{}")), costs(700, says("hm")))
		v := ask(t, m, page{}, 0, 1000)
		wantFailure(t, v, gate.BudgetExhausted)
		if len(m.asked) != 2 || v.Usage.PromptTokens+v.Usage.OutputTokens != 1100 {
			t.Errorf("%d requests, usage %+v", len(m.asked), v.Usage)
		}
	})
	t.Run("fault G16: where tokens are not reported, bytes bound the conversation", func(t *testing.T) {
		m := scripted(costs(10, calls(slices.Repeat([]string{readFile, "{}"}, 100)...)))
		v := ask(t, m, page{read: func(context.Context, int, int) (string, error) {
			return strings.Repeat(strings.Repeat("x", 1000)+"\n", 1000), nil
		}}, 1000, 1e9)
		wantFailure(t, v, gate.BadVerdict) // it never gave one
		if n := len(v.Evidence.Steps); n > len(m.asked)*(maxCalls+1) {
			t.Errorf("%d steps for %d answers", n, len(m.asked))
		}
		for _, r := range m.asked {
			size := 0
			for _, msg := range r.Messages {
				size += len(msg.Text)
				for _, res := range msg.Results {
					size += len(res.Text)
				}
			}
			if size > maxConversationBytes+maxCalls*maxResultBytes+64<<10 {
				t.Fatalf("a request of %d bytes", size)
			}
		}
	})
	t.Run("what a model wants back counts too", func(t *testing.T) {
		thinks := func(r Request) (Response, error) {
			a, _ := calls(readFile, "{}")(r)
			a.Message.Native = make(json.RawMessage, maxConversationBytes)
			return a, nil
		}
		m := scripted(thinks, calls(submitVerdict, yes))
		wantVerdict(t, ask(t, m, page{}), gate.Allow, "")
		if m.last().Force != submitVerdict {
			t.Error("no verdict was asked for")
		}
	})
	t.Run("an answer is held to what is left, once that is little", func(t *testing.T) {
		m := scripted(costs(6_000, says("hm")), says(yes))
		ask(t, m, nil, 0, 10_000)
		if first, second := m.asked[0].MaxOutputTokens, m.asked[1].MaxOutputTokens; first != 0 || second != 4_000 {
			t.Errorf("at first %d, then %d", first, second)
		}
	})
	t.Run("tokens below zero give nothing back", func(t *testing.T) {
		a := func(Request) (Response, error) {
			return Response{Message: Message{Text: yes}, Usage: gate.Usage{PromptTokens: -5, OutputTokens: -5, CachedTokens: -5}}, nil
		}
		if v := ask(t, scripted(a), nil); *v.Usage != (gate.Usage{Calls: 1}) {
			t.Errorf("usage %+v", v.Usage)
		}
	})
}

func TestTranscriptFailures(t *testing.T) {
	read := func(err error) page {
		return page{read: func(context.Context, int, int) (string, error) { return "", err },
			grep: func(context.Context, gate.Grep) (string, error) { return "", err }}
	}
	t.Run("fault G15: a transcript that cannot be read is not judged without", func(t *testing.T) {
		wantFailure(t, ask(t, scripted(calls(readFile, "{}"), says(yes)), read(errors.New("input/output error"))), gate.TranscriptUnreadable)
		wantFailure(t, ask(t, scripted(calls(readFile, "{}"), says(yes)),
			read(&gate.Failure{Code: gate.TranscriptUnreadable, Message: "gone"})), gate.TranscriptUnreadable)
	})
	t.Run("a bad pattern is the model's to mend", func(t *testing.T) {
		m := scripted(calls(grepSearch, `{"pattern":"("}`), calls(submitVerdict, yes))
		wantVerdict(t, ask(t, m, read(&gate.Failure{Code: gate.BadOutput, Message: "missing )"})), gate.Allow, "")
		if r := m.last().Messages[2].Results[0]; !r.Failed || !strings.Contains(r.Text, "missing )") {
			t.Errorf("result %+v", r)
		}
	})
}

func TestAzure50NameIsPassedOn(t *testing.T) {
	m := scripted(says(yes))
	var asked string
	j, err := New(Options{Model: func(name string) (Model, string, error) { asked = name; return m, "gemini-x", nil }})
	if err != nil {
		t.Fatal(err)
	}
	in := gate.Input{Event: &gate.Event{}, Hook: &gate.Hook{Event: gate.Stop, Prompt: "p", Model: "Reasoning Fast"}, Context: []byte("{}")}
	v := j.Evaluate(t.Context(), in)
	wantVerdict(t, v, gate.Allow, "")
	if asked != "Reasoning Fast" || m.last().Model != "gemini-x" || v.Model != "gemini-x" {
		t.Errorf("asked for %q, used %q, said %q", asked, m.last().Model, v.Model)
	}
	t.Run("no such model", func(t *testing.T) {
		j, _ := New(Options{Model: func(string) (Model, string, error) { return nil, "", errors.New("no model key is set") }})
		v := j.Evaluate(t.Context(), in)
		wantFailure(t, v, gate.ModelUnavailable)
		if v.Failure.Message != "no model key is set" {
			t.Errorf("message %q", v.Failure.Message)
		}
	})
}

func TestNewChecksOptions(t *testing.T) {
	m := func(string) (Model, string, error) { return nil, "", nil }
	for _, o := range []Options{{}, {Model: m, MaxRounds: -1}, {Model: m, MaxTokens: -1}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// One judged evaluation of a search, a verdict and no network.
func BenchmarkEvaluate(b *testing.B) {
	grep, _ := calls(grepSearch, `{"pattern":"x"}`)(Request{})
	submit, _ := calls(submitVerdict, yes)(Request{})
	j, err := New(Options{Model: func(string) (Model, string, error) {
		return ModelFunc(func(_ context.Context, r Request) (Response, error) {
			if len(r.Messages) == 1 {
				return grep, nil
			}
			return submit, nil
		}), "m", nil
	}})
	if err != nil {
		b.Fatal(err)
	}
	in := gate.Input{Hook: &gate.Hook{Event: gate.Stop, Prompt: "Is it done?"}, Context: []byte(stopContext), Transcript: page{}}
	b.ReportAllocs()
	for b.Loop() {
		if v := j.Evaluate(b.Context(), in); v.Outcome != gate.Allow {
			b.Fatal(v.Failure)
		}
	}
}
