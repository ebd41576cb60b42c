package recording_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/recording"
)

// page is a short conversation.
type page struct{}

func (page) Path() string    { return "/t/view.txt" }
func (page) RawPath() string { return "" }
func (page) Close() error    { return nil }
func (page) Outline(context.Context, int) (string, bool, error) {
	return "1\tuser: make it green\n", false, nil
}
func (page) Fingerprint(context.Context) ([32]byte, bool) { return [32]byte{}, false }
func (page) ReadFile(context.Context, int, int) (string, error) {
	return "1\tuser: make it green\n2\ttool: 3 passed\n", nil
}
func (page) GrepSearch(context.Context, gate.Grep) (string, error) {
	return "2:tool: 3 passed\n", nil
}

// script answers in turn.
type script struct {
	answers []func(ctx context.Context, req prompthooks.Request) (prompthooks.Response, error)
	asked   atomic.Int32
}

func (s *script) Generate(ctx context.Context, req prompthooks.Request) (prompthooks.Response, error) {
	n := int(s.asked.Add(1))
	if n > len(s.answers) {
		return prompthooks.Response{}, errors.New("the script is over")
	}
	return s.answers[n-1](ctx, req)
}

func (s *script) find(string) (prompthooks.Model, string, error) { return s, "model-1", nil }

type reply = func(context.Context, prompthooks.Request) (prompthooks.Response, error)

func says(text string) reply {
	return func(context.Context, prompthooks.Request) (prompthooks.Response, error) {
		return prompthooks.Response{Message: prompthooks.Message{Role: prompthooks.Assistant, Text: text},
			Usage: gate.Usage{PromptTokens: 100, CachedTokens: 60, OutputTokens: 7}}, nil
	}
}

func calls(name, args, native string) reply {
	return func(context.Context, prompthooks.Request) (prompthooks.Response, error) {
		return prompthooks.Response{Message: prompthooks.Message{Role: prompthooks.Assistant, Native: json.RawMessage(native),
			Calls: []prompthooks.Call{{ID: "c1", Name: name, Args: json.RawMessage(args)}}},
			Usage: gate.Usage{PromptTokens: 50, OutputTokens: 5}}, nil
	}
}

func fails(err error) reply {
	return func(context.Context, prompthooks.Request) (prompthooks.Response, error) {
		return prompthooks.Response{Usage: gate.Usage{PromptTokens: 3}}, err
	}
}

// waits until its hook has no more time.
func waits(ctx context.Context, _ prompthooks.Request) (prompthooks.Response, error) {
	<-ctx.Done()
	return prompthooks.Response{}, ctx.Err()
}

const (
	yes = `{"ok":true}`
	no  = `{"ok":false,"reason":"run the tests"}`
)

// judge asks about one Stop.
func judge(t *testing.T, find recording.Find, change ...func(*gate.Hook)) gate.Verdict {
	t.Helper()
	j, err := prompthooks.New(prompthooks.Options{Model: find})
	if err != nil {
		t.Fatal(err)
	}
	h := gate.Hook{Name: "h", Event: gate.Stop, Type: gate.PromptHook, Prompt: "Is it done?", Model: "fast", Timeout: 30 * time.Second}
	for _, c := range change {
		c(&h)
	}
	ctx, cancel := context.WithTimeout(t.Context(), h.Timeout)
	defer cancel()
	return j.Evaluate(ctx, gate.Input{Hook: &h, Event: &gate.Event{Name: gate.Stop}, Transcript: page{},
		Context: []byte(`{"hook_event_name":"Stop","final_output":"Done."}`)})
}

func create(t *testing.T, secrets ...string) (*recording.Recording, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "kept")
	r, err := recording.Create(dir, secrets)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r, dir
}

func open(t *testing.T, dir string) *recording.Recording {
	t.Helper()
	r, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

var verdicts = cmpopts.IgnoreUnexported(gate.Verdict{})

// A replay needs no model, and is what was recorded, whatever the model did.
func TestReplayIsWhatWasRecorded(t *testing.T) {
	busy := &prompthooks.Error{Kind: prompthooks.RateLimited, RetryAfter: 5 * time.Second, Message: "slow down"}
	down := prompthooks.Errorf(prompthooks.Unavailable, "no server")
	tests := []struct {
		name    string
		answers []reply
		votes   int
		outcome gate.Outcome
		failure gate.FailureCode
	}{
		{name: "a text", answers: []reply{says(no)}, outcome: gate.Block},
		{name: "reading, then the verdict", outcome: gate.Allow, answers: []reply{
			calls("GrepSearch", `{"pattern": "passed"}`, "{ \"sig\":\"<&>\",\n \"raw\":\"\xff\xfe\" }"),
			calls("submit_verdict", `{"ok":true,"probability":0.9,"evidence":[{"line":2,"quote":"3 passed"}]}`, `{}`)}},
		{name: "arguments that are no JSON", outcome: gate.Block, answers: []reply{
			calls("GrepSearch", "{\"pattern\": \xff", ""), says(no)}},
		{name: "repaired", answers: []reply{says("Well."), says(yes)}, outcome: gate.Allow},
		{name: "tried again", answers: []reply{fails(busy), fails(down), says(no)}, outcome: gate.Block},
		{name: "a refusal", failure: gate.ModelRefused, answers: []reply{
			func(context.Context, prompthooks.Request) (prompthooks.Response, error) {
				return prompthooks.Response{Finish: prompthooks.Refused, Detail: "SAFETY"}, nil
			}}},
		{name: "rejected", answers: []reply{fails(prompthooks.Errorf(prompthooks.Rejected, "status 400"))}, failure: gate.ModelUnavailable},
		{name: "always busy", answers: []reply{fails(busy), fails(busy), fails(busy), fails(busy)}, failure: gate.ModelRateLimited},
		{name: "an error of no kind", answers: []reply{fails(errors.New("odd"))}, failure: gate.ModelUnavailable},
		{name: "no time left", answers: []reply{waits}, failure: gate.Timeout},
		{name: "a panel", answers: []reply{says(yes), says(no), says(no)}, votes: 3, outcome: gate.Block},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				votes := func(h *gate.Hook) { h.Votes = test.votes }
				model := &script{answers: test.answers}
				r, dir := create(t)
				was := judge(t, r.Take("one").Record(model.find), votes)
				if err := r.Err(); err != nil {
					t.Fatal(err)
				}
				if test.failure == "" && was.Outcome != test.outcome || test.failure != "" && (was.Failure == nil || was.Failure.Code != test.failure) {
					t.Fatalf("recorded %s %+v, want %s %s", was.Outcome, was.Failure, test.outcome, test.failure)
				}
				take := open(t, dir).Take("one")
				began := time.Now()
				is := judge(t, take.Replay(), votes)
				if took := time.Since(began); took > 4*time.Second {
					t.Errorf("the replay waited for %s", took)
				}
				if was.Failure != nil { // its words may be others
					was.Failure.Message, is.Failure.Message = "", ""
				}
				if test.votes > 1 { // who voted what is by chance
					was.Evidence, is.Evidence = nil, nil
				}
				if diff := cmp.Diff(was, is, verdicts); diff != "" {
					t.Errorf("recorded − replayed +:\n%s", diff)
				}
				if take.Missing() > 0 || take.Drifted() > 0 {
					t.Errorf("%d missing, %d drifted", take.Missing(), take.Drifted())
				}
			})
		})
	}
}

// What a provider wants back it gets back, byte for byte, in a replay too.
func TestNativeBytesAreReplayed(t *testing.T) {
	const native = "{ \"thought\":\"<a&b>\",\n\"raw\":\"\xff\" }"
	r, dir := create(t)
	model := &script{answers: []reply{calls("ReadFile", `{ }`, native), says(yes)}}
	judge(t, r.Take("one").Record(model.find))
	replayed, _, err := open(t, dir).Take("one").Replay()("fast")
	if err != nil {
		t.Fatal(err)
	}
	var got prompthooks.Message
	find := func(string) (prompthooks.Model, string, error) {
		return prompthooks.ModelFunc(func(ctx context.Context, req prompthooks.Request) (prompthooks.Response, error) {
			if len(req.Messages) > 1 {
				got = req.Messages[1]
			}
			return replayed.Generate(ctx, req)
		}), "model-1", nil
	}
	if v := judge(t, find); v.Outcome != gate.Allow {
		t.Fatalf("%s %+v", v.Outcome, v.Failure)
	}
	if string(got.Native) != native || string(got.Calls[0].Args) != `{ }` {
		t.Errorf("native %q, arguments %q", got.Native, got.Calls[0].Args)
	}
}

// The same request gets another answer each time, in the order of the recording,
// and another take has its own.
func TestTakesAndRepeatsAreToldApart(t *testing.T) {
	r, dir := create(t)
	model := &script{answers: []reply{says(yes), says(no), says(no), says(yes)}}
	var want, got []gate.Outcome
	for _, name := range []string{"a", "b"} {
		take := r.Take(name)
		want = append(want, judge(t, take.Record(model.find)).Outcome, judge(t, take.Record(model.find)).Outcome)
	}
	replay := open(t, dir)
	b, a := replay.Take("b"), replay.Take("a")
	third, fourth := judge(t, b.Replay()).Outcome, judge(t, b.Replay()).Outcome
	got = append(got, judge(t, a.Replay()).Outcome, judge(t, a.Replay()).Outcome, third, fourth)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A judge that was late when it was recorded is not late in the replay: it reads
// what it was not let read then, and the answer is the same.
func TestLateJudgeIsReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, req prompthooks.Request) (prompthooks.Response, error) {
			time.Sleep(25 * time.Second)
			return calls("ReadFile", `{}`, "")(ctx, req)
		}
		r, dir := create(t)
		model := &script{answers: []reply{slow, calls("submit_verdict", no, "")}}
		if v := judge(t, r.Take("one").Record(model.find)); v.Outcome != gate.Block {
			t.Fatalf("%s %+v", v.Outcome, v.Failure)
		}
		take := open(t, dir).Take("one")
		if v := judge(t, take.Replay()); v.Outcome != gate.Block || take.Missing() != 0 || take.Drifted() != 1 {
			t.Errorf("%s %+v, %d missing, %d drifted", v.Outcome, v.Failure, take.Missing(), take.Drifted())
		}
	})
}

// A judge that was told to stop, by a person or by a panel's majority, has left
// nothing that a verdict could rest on.
func TestCalledOffIsNotRecorded(t *testing.T) {
	r, dir := create(t)
	ctx, cancel := context.WithCancel(t.Context())
	model, _, err := r.Take("one").Record((&script{answers: []reply{func(ctx context.Context, req prompthooks.Request) (prompthooks.Response, error) {
		cancel()
		return waits(ctx, req)
	}}}).find)("fast")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.Generate(ctx, prompthooks.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("recorded %v", err)
	}
	take := open(t, dir).Take("one")
	model, _, err = take.Replay()("fast")
	if err != nil {
		t.Fatal(err)
	}
	_, err = model.Generate(t.Context(), prompthooks.Request{})
	if failure, ok := errors.AsType[*gate.Failure](err); !ok || !strings.HasPrefix(failure.Message, "not recorded: ") || take.Missing() != 1 {
		t.Errorf("replayed %v, %d missing", err, take.Missing())
	}
}

func TestWhatIsNotRecordedIsNoVerdict(t *testing.T) {
	tests := []struct {
		name, take string
		change     func(*gate.Hook)
		spoil      func(t *testing.T, file string)
		says       string
	}{
		{name: "another take", take: "two", says: "not recorded: "},
		{name: "another prompt", take: "one", change: func(h *gate.Hook) { h.Prompt = "Is it good?" }, says: "not recorded: "},
		{name: "another model", take: "one", change: func(h *gate.Hook) { h.Model = "strong" }, says: `not recorded: the model "strong"`},
		{name: "a broken file", take: "one", says: "broken", spoil: func(t *testing.T, file string) {
			if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "a pipe, which is not waited for", take: "one", says: "no regular file", spoil: func(t *testing.T, file string) {
			if err := errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "a link out of the directory", take: "one", says: "no regular file", spoil: func(t *testing.T, file string) {
			elsewhere := filepath.Join(t.TempDir(), "elsewhere")
			if err := errors.Join(os.Rename(file, elsewhere), os.Symlink(elsewhere, file)); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, dir := create(t)
			judge(t, r.Take("one").Record((&script{answers: []reply{says(yes)}}).find))
			if test.spoil != nil {
				test.spoil(t, answerFiles(t, dir)[0])
			}
			if test.change == nil {
				test.change = func(*gate.Hook) {}
			}
			take := open(t, dir).Take(test.take)
			v := judge(t, take.Replay(), test.change)
			if v.Outcome != gate.NoVerdict || v.Failure.Code != gate.ModelUnavailable || !strings.Contains(v.Failure.Message, test.says) || take.Missing() != 1 {
				t.Errorf("%s %+v, %d missing", v.Outcome, v.Failure, take.Missing())
			}
		})
	}
}

// answerFiles are the files of a recording that hold answers.
func answerFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "[0-9a-f]*-*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no answers in %s: %v", dir, err)
	}
	return files
}

// No key is kept, wherever a server put it; and the judge sees what a replay
// will see.
func TestSecretsAreNotKept(t *testing.T) {
	const secret = "AIza-not-a-real-key"
	r, dir := create(t, secret, "none")
	model := &script{answers: []reply{
		calls("GrepSearch", `{"pattern":"`+secret+`"}`, `{"echo":"`+secret+`"}`),
		fails(prompthooks.Errorf(prompthooks.Rejected, "the key %s is none of ours", secret)),
		says(`{"ok":false,"reason":"none of it: ` + secret + `"}`),
	}}
	judge(t, r.Take("one").Record(model.find))
	v := judge(t, r.Take("two").Record(model.find))
	if v.Reason != "none of it: [key]" {
		t.Errorf("reason %q", v.Reason)
	}
	for _, file := range answerFiles(t, dir) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), secret) {
			t.Errorf("%s", text)
		}
		if about, _ := os.Stat(file); about.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", about.Mode())
		}
	}
}

func TestCreateWantsAnEmptyDirectory(t *testing.T) {
	r, dir := create(t)
	judge(t, r.Take("one").Record((&script{answers: []reply{says(yes)}}).find))
	if _, err := recording.Create(dir, nil); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("got %v", err)
	}
	if _, err := recording.Open(filepath.Join(dir, "missing")); err == nil {
		t.Error("a directory that is not there was opened")
	}
}

// An answer that cannot be kept would be missing later: there is no verdict, and
// the recording says why.
func TestAnswerThatCannotBeKept(t *testing.T) {
	r, dir := create(t)
	find := r.Take("one").Record((&script{answers: []reply{says(yes), says(strings.Repeat("x", 17<<20))}}).find)
	judge(t, find)
	if v := judge(t, find); v.Outcome != gate.NoVerdict || v.Failure.Code != gate.Internal || r.Err() == nil {
		t.Errorf("too large: %s %+v, %v", v.Outcome, v.Failure, r.Err())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 { // the model's name and the first answer
		t.Errorf("%v %v", entries, err)
	}
}

// A key is found in whatever spelling an answer's parts have it, and one that
// begins like another is blotted out whole.
func TestEscapedSecretsAreNotKept(t *testing.T) {
	r, dir := create(t, "sk-abcd/efgh", "sk-abcd/efgh-longer")
	model := &script{answers: []reply{
		calls("GrepSearch", `{"pattern":"sk-abcd\u002fefgh"}`, `{"role":"assistant","content":"sk-abcd\/efgh"}`),
		says(`{"ok":false,"reason":"it is sk-abcd/efgh-longer"}`),
	}}
	if v := judge(t, r.Take("one").Record(model.find)); v.Reason != "it is [key]" {
		t.Errorf("reason %q", v.Reason)
	}
	for _, file := range answerFiles(t, dir) {
		text, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(text), "sk-abcd") || strings.Contains(string(text), "longer") {
			t.Errorf("%s %v", text, err)
		}
	}
}

// The answer to another judgement in the place of this one's is none.
func TestAnswerOfAnotherTake(t *testing.T) {
	for _, change := range [][2]string{{`"take": "one"`, `"take": "two"`}, {`"model": "model-1"`, `"model": "model-2"`}} {
		r, dir := create(t)
		judge(t, r.Take("one").Record((&script{answers: []reply{says(yes)}}).find))
		for _, file := range answerFiles(t, dir) {
			text, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(text), change[0]) {
				t.Fatal(string(text), err)
			}
			if err := os.WriteFile(file, []byte(strings.Replace(string(text), change[0], change[1], 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		take := open(t, dir).Take("one")
		v := judge(t, take.Replay())
		if v.Outcome != gate.NoVerdict || !strings.Contains(v.Failure.Message, "not recorded") || take.Missing() != 1 {
			t.Errorf("%s: %+v %v, %d missing", change[1], v.Outcome, v.Failure, take.Missing())
		}
	}
}

// A recording is gone on with: only what it does not have is asked, and that is what
// came to no answer, too.
func TestCompleteAsksForWhatIsMissing(t *testing.T) {
	r, dir := create(t)
	first := &script{answers: []reply{says(yes)}}
	judge(t, r.Take("one").Record(first.find))
	failing := &script{answers: []reply{fails(errors.New("no network"))}}
	judge(t, r.Take("two").Record(failing.find))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := recording.Resume(dir, []string{"a-key-of-no-worth"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, c := range []struct {
		take  string
		asked int
		want  gate.Outcome
	}{{"one", 0, gate.Allow}, {"two", 1, gate.Block}, {"three", 1, gate.Block}} {
		s := &script{answers: []reply{says(strings.Replace(no, "run", "a-key-of-no-worth: run", 1))}}
		v := judge(t, r.Take(c.take).Complete(s.find))
		if int(s.asked.Load()) != c.asked || v.Outcome != c.want || strings.Contains(v.Reason, "no-worth") {
			t.Errorf("%s: asked %d times, %+v", c.take, s.asked.Load(), v)
		}
		if again := judge(t, r.Take(c.take).Replay()); again.Outcome != v.Outcome || again.Reason != v.Reason {
			t.Errorf("%s: replayed %+v, want %+v", c.take, again, v)
		}
	}
	other := &script{answers: []reply{says(no)}}
	find := func(string) (prompthooks.Model, string, error) { return other, "model-2", nil }
	if v := judge(t, r.Take("one").Complete(find)); v.Outcome != gate.Block || other.asked.Load() != 1 {
		t.Errorf("another model: %+v", v)
	}
	if v := judge(t, r.Take("one").Replay()); v.Outcome != gate.Block {
		t.Errorf("replayed as the model before: %+v", v)
	}
}

func TestResume(t *testing.T) {
	if r, err := recording.Resume(filepath.Join(t.TempDir(), "new"), nil); err != nil {
		t.Error(err)
	} else if err := r.Close(); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := recording.Resume(dir, nil); err == nil || !strings.Contains(err.Error(), "no recording") {
		t.Errorf("among other files: %v", err)
	}
}
