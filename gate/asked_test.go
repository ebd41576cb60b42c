package gate

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// talk is a conversation that goes on growing.
type talk struct{ Transcript }

func (talk) Path() string                 { return "/t/view.txt" }
func (talk) RawPath() string              { return "" }
func (talk) Close() error                 { return nil }
func (talk) Mark() (TranscriptMark, bool) { return TranscriptMark{Bytes: 7, Tail: "t"}, true }

// talks has one for every event, of which Mark says where it ends.
type talks struct {
	marked bool
	err    error
}

func (t *talks) Attach(context.Context, *Event) (Transcript, error) { return talk{}, nil }

func (t *talks) Mark(*Event) (*TranscriptMark, error) {
	t.marked = true
	return &TranscriptMark{Bytes: 9, Tail: "u"}, t.err
}

// A record says what its hooks were asked with, so that others can be asked the
// same; of a Stop without hooks too, on which a new one would be tried.
func TestRecordSaysWhatWasAsked(t *testing.T) {
	refuse := answers{"h": says(Verdict{Outcome: Block, Reason: "no"})}
	stop := Event{Name: Stop, Protocol: "p", Agent: "a", Session: "s"}
	tests := []struct {
		name   string
		ev     Event
		hooks  []*Spec
		before int // Stops that were rejected
		talks  talks
		want   *Asked
	}{
		{name: "first", ev: stop, hooks: []*Spec{agent(Hook{Name: "h", Event: Stop, Type: PromptHook})}, want: &Asked{Transcript: &TranscriptMark{Bytes: 7, Tail: "t"}}},
		{name: "third", ev: stop, hooks: []*Spec{agent(Hook{Name: "h", Event: Stop, Type: PromptHook})}, before: 2,
			want: &Asked{StopRejections: 2, PromptRejections: 2, Transcript: &TranscriptMark{Bytes: 7, Tail: "t"}}},
		{name: "switched", ev: stop, hooks: []*Spec{agent(), global(Hook{Name: "h", Event: Stop, Type: PromptHook, Activation: OnDemand})},
			want: &Asked{Switched: map[string]bool{"h": true}, Transcript: &TranscriptMark{Bytes: 7, Tail: "t"}}},
		{name: "in the payload", ev: Event{Name: Stop, Agent: "a", Protocol: Native, InlineTranscript: []byte(`"x"`)}, hooks: []*Spec{agent(Hook{Name: "h", Event: Stop, Type: PromptHook})}, want: &Asked{}},
		{name: "sub-agent", ev: Event{Name: SubagentStop, Protocol: "p", Agent: "parent", AgentType: "a", SubAgent: "1", TranscriptSession: "u"}, hooks: []*Spec{agent(Hook{Name: "h", Event: Stop, Type: PromptHook})},
			want: &Asked{Agent: "parent", Transcript: &TranscriptMark{Session: "u", Bytes: 7, Tail: "t"}}},
		{name: "no hook", ev: stop, hooks: []*Spec{agent()}, want: &Asked{Transcript: &TranscriptMark{Bytes: 9, Tail: "u"}}},
		{name: "no hook, not found out", ev: stop, hooks: []*Spec{agent()}, talks: talks{err: errors.New("away")}},
		{name: "no hook on a tool", ev: Event{Name: PreToolUse, Protocol: "p", Agent: "a", ToolName: "Bash"}, hooks: []*Spec{agent()}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := newMemory()
			if err := m.SetActive(t.Context(), "s", "h", true, Actor{}); err != nil {
				t.Fatal(err)
			}
			g := newGate(m, refuse, test.hooks...)
			g.Transcripts = &test.talks
			for range test.before + 1 {
				if _, err := g.Decide(t.Context(), test.ev, Options{}); err != nil {
					t.Fatal(err)
				}
			}
			got := m.records[test.before].Asked
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if test.ev.Name == PreToolUse && test.talks.marked {
				t.Error("the conversation of a tool call was looked for")
			}
		})
	}
}
