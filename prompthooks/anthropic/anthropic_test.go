package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"stopgate/prompthooks"
	"stopgate/prompthooks/modeltest"
)

const testKey = "sk-ant-very-secret-0123456789"

func generate(t *testing.T, body string, req prompthooks.Request) (prompthooks.Response, string) {
	t.Helper()
	s := modeltest.Serve(t, modeltest.Answer(200, body))
	p, err := New(Options{APIKey: testKey, BaseURL: s.URL + "/"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return got, string(s.Requests()[0].Body)
}

// The cache keeps what the next event or the next round sends again: tools and
// system text, and with tools the conversation so far.
func TestCacheMarks(t *testing.T) {
	const mark = `"cache_control":{"type":"ephemeral"}`
	req := prompthooks.Request{Model: "m", System: "s", Messages: []prompthooks.Message{{Role: prompthooks.User, Text: "Is it done?"}}}
	_, sent := generate(t, says("x"), req)
	if strings.Count(sent, mark) != 1 || !strings.Contains(sent, `"system":[{"text":"s",`+mark) {
		t.Errorf("without tools: %s", sent)
	}
	req.Tools = []prompthooks.Tool{{Name: "ReadFile"}}
	first, _ := generate(t, answer(turn, "tool_use", "null"), req)
	req.Messages = append(req.Messages, first.Message, prompthooks.Message{Role: prompthooks.User, Results: []prompthooks.Result{
		{ID: "toolu_01A09q90qw90lq917835lq9", Text: "one"}, {ID: "toolu_01B0", Text: "two"}}})
	_, sent = generate(t, says("x"), req)
	var b struct{ Messages []json.RawMessage }
	if err := json.Unmarshal([]byte(sent), &b); err != nil {
		t.Fatal(err)
	}
	last := string(b.Messages[2])
	if strings.Count(sent, mark) != 2 || strings.Count(last, mark) != 1 || strings.Index(last, mark) < strings.Index(last, "toolu_01B0") {
		t.Errorf("with tools: %s", sent)
	}
}

func TestFinish(t *testing.T) {
	for reason, want := range map[string]prompthooks.Finish{
		"end_turn": prompthooks.Finished, "stop_sequence": prompthooks.Finished, "tool_use": prompthooks.Finished,
		"max_tokens": prompthooks.Truncated, "model_context_window_exceeded": prompthooks.Truncated, "pause_turn": prompthooks.Truncated,
		"refusal": prompthooks.Refused, "solar_flare": prompthooks.Malformed,
	} {
		got, _ := generate(t, answer(`[{"type":"text","text":"{\"ok\":true}"}]`, reason, "null"), prompthooks.Request{Model: "m"})
		if got.Finish != want || got.Detail != reason {
			t.Errorf("%q: %d %q", reason, got.Finish, got.Detail)
		}
	}
}

func TestThoughtsAreNotTheAnswer(t *testing.T) {
	got, _ := generate(t, answer(`[{"type":"thinking","thinking":"{\"ok\":true}","signature":"x"},{"type":"text","text":"{\"ok\":"},{"type":"text","text":"false}"}]`,
		"end_turn", "null"), prompthooks.Request{Model: "m"})
	if got.Message.Text != `{"ok":false}` {
		t.Errorf("text %q", got.Message.Text)
	}
}

// An answer without a block cannot be handed back: the API refuses it.
func TestEmptyContentIsNotHandedBack(t *testing.T) {
	if got, _ := generate(t, answer(`[]`, "end_turn", "null"), prompthooks.Request{Model: "m"}); got.Message.Native != nil {
		t.Errorf("native %s", got.Message.Native)
	}
}

func TestMessageOfAnotherProvider(t *testing.T) {
	_, sent := generate(t, says("x"), prompthooks.Request{Model: "m", Messages: []prompthooks.Message{
		{Role: prompthooks.User, Text: "Is it done?"},
		{Role: prompthooks.Assistant, Text: "hm", Calls: []prompthooks.Call{{ID: "c1", Name: "ReadFile", Args: json.RawMessage(`{"offset":1}`)}, {ID: "c2", Name: "X", Args: json.RawMessage(`nonsense`)}}},
	}})
	for _, want := range []string{`{"text":"hm","type":"text"}`, `"id":"c1","input":{"offset":1},"name":"ReadFile"`, `"id":"c2","input":{},"name":"X"`} {
		if !strings.Contains(sent, want) {
			t.Errorf("%s is not in %s", want, sent)
		}
	}
}

// The SDK refuses what may take longer than ten minutes, going by the length.
func TestLongAnswers(t *testing.T) {
	_, sent := generate(t, says("x"), prompthooks.Request{Model: "m", MaxOutputTokens: 100_000})
	if !strings.Contains(sent, `"max_tokens":100000`) {
		t.Errorf("sent %s", sent)
	}
}

func TestNewChecksOptions(t *testing.T) {
	for _, o := range []Options{{}, {APIKey: testKey, BaseURL: "ftp://x"}, {APIKey: testKey, BaseURL: "x"}, {APIKey: testKey, BaseURL: "http://"}} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), testKey) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if p, err := New(Options{APIKey: testKey, Lacks: prompthooks.Schemas}); err != nil || p.Lacks() != prompthooks.Schemas {
		t.Error(err)
	}
}
