package wire_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"stopgate/gate"
	"stopgate/wire"
	"stopgate/wire/contracts"
)

// Whatever a host sends and a gate decides, decoding does not panic, and the
// answer is one that the host's contract takes.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"hook_event_name":"Stop","session_id":"s","last_assistant_message":"x"}`), "", byte(1), "reason", "context")
	f.Add([]byte(`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`), "", byte(2), "", "c")
	f.Add([]byte(`{"hook_event_name":"AfterTool","tool_response":{"llmContent":[{"text":"a"},{"text":"b"}]}}`), "", byte(1), "\xff\x00", " ")
	f.Add([]byte(`{"sessionId":1,"timestamp":"x","toolArgs":"{\"a\":1}"}`), "preToolUse", byte(1), strings.Repeat("é", 9000), strings.Repeat("x", 9001))
	f.Add([]byte(`{"tool_call":{"name":[],"args":7},"environment_id":{}}`), "pre_tool_execution", byte(2), "r", "")
	f.Add([]byte("{\"hook_event_name\":\"UserPromptSubmit\",\"prompt\":\"caf\xe9"), "", byte(0), "", "")
	f.Add([]byte(`{"agent_id":"../../x","transcript_path":"/a.jsonl","hook_event_name":"PostToolUse","tool_response":[[[[[["deep"]]]]]]}`), "", byte(1), "r", "c")
	f.Fuzz(func(t *testing.T, payload []byte, event string, outcome byte, reason, context string) {
		d := gate.Decision{Outcome: []gate.Outcome{gate.Allow, gate.Block, gate.Ask}[outcome%3], Reason: reason, AdditionalContext: context}
		for _, name := range wire.Names() {
			p, _ := wire.Find(name)
			ev, err := p.Decode(payload, wire.Options{Event: event})
			if err != nil {
				if c := gate.CodeOf(err); c != gate.CodeInvalidJSON && c != gate.CodeValidation {
					t.Errorf("%s: %v has code %s", name, err, c)
				}
			} else if ev.Name != "" && !ev.Name.Known() || ev.Protocol != name || ev.Agent == "" {
				t.Errorf("%s: decoded %+v", name, ev)
			}
			wire.AnswerSought(ev)
			a := p.Encode(ev, d) // also of an event that was only half read
			if name == gate.Native {
				continue
			}
			if err := accepts(name, ev.Name, d, a.Body); err != nil {
				t.Errorf("%s %q, %s: %v\n%s", name, ev.Name, d.Outcome, err, a.Body)
			}
		}
	})
}

// accepts checks an answer against the host's contract: exactly the keys that
// one of the contract's answers to this event has, no text empty or too long,
// and a refusal wherever the host can refuse.
func accepts(host string, event gate.EventName, d gate.Decision, body []byte) error {
	c, _, _ := contracts.For(host, "")
	answers := contracts.Answers{NoObjection: c.Events[0].Answers.NoObjection, Context: c.Events[0].Answers.NoObjection}
	answers.Block, answers.BlockWithContext, answers.Ask = answers.NoObjection, answers.NoObjection, answers.NoObjection
	if i := slices.IndexFunc(c.Events, func(e contracts.Event) bool { return e.Name == event && event != "" }); i >= 0 {
		answers = c.Events[i].Answers
	}
	got, texts, err := shape(body)
	if err != nil {
		return err
	}
	wanted := []string{answers.NoObjection, answers.Context}
	switch d.Outcome {
	case gate.Block:
		wanted = []string{answers.Block, answers.BlockWithContext}
	case gate.Ask:
		wanted = []string{answers.Ask, answers.BlockWithContext}
	}
	var legal []string
	for _, w := range wanted {
		keys, _, err := shape([]byte(w))
		if err != nil {
			return err
		}
		legal = append(legal, keys)
	}
	if !slices.Contains(legal, got) {
		return fmt.Errorf("keys %q, want one of %q", got, legal)
	}
	for _, s := range texts {
		if strings.TrimSpace(s) == "" || len(s) > wire.TextBytes || !utf8.ValidString(s) {
			return fmt.Errorf("text of %d bytes: %.40q", len(s), s)
		}
	}
	return nil
}

// shape is the key paths of an answer, sorted, and its texts.
func shape(body []byte) (keys string, texts []string, err error) {
	if len(body) == 0 {
		return "(nothing)", nil, nil
	}
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		return "", nil, err
	}
	var walk func(prefix string, o map[string]any)
	var paths []string
	walk = func(prefix string, o map[string]any) {
		for _, k := range slices.Sorted(maps.Keys(o)) {
			switch v := o[k].(type) {
			case map[string]any:
				walk(prefix+k+".", v)
			case string:
				paths, texts = append(paths, prefix+k), append(texts, v)
			default:
				err = fmt.Errorf("%s%s is no string", prefix, k)
			}
		}
	}
	walk("", object)
	return strings.Join(paths, " "), texts, err
}
