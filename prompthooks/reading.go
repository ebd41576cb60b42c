package prompthooks

import (
	"context"
	"fmt"
	"time"

	"stopgate/gate"
)

// A judge still reading when this share of the hook's time is over is asked
// for its verdict (spec/azure.md 32). Tools may take half of what is then left.
const (
	verdictShare = 0.70
	toolShare    = 0.85
)

// maxCalls is how many tool calls of one answer are run. A model that asks
// for more at once is not reading what it gets.
const maxCalls = 8

// maxConversationBytes bounds the requests of one trial where a server does
// not report tokens: about what DefaultMaxTokens is as text.
const maxConversationBytes = 1 << 20

// mayRead reports whether the model may still call tools as it likes.
func (t *trial) mayRead() bool { return len(t.req.Tools) > 0 && t.req.Force == "" }

// wantsToRead reports whether an answer asks for more than its verdict.
func wantsToRead(answer Response) bool {
	if answer.Finish != Finished {
		return false
	}
	for _, c := range answer.Message.Calls {
		if c.Name != submitVerdict {
			return true
		}
	}
	return false
}

// read answers every call of a message, in order.
func (t *trial) read(ctx context.Context, m Message) error {
	t.rounds++
	t.say(m)
	results := make([]Result, len(m.Calls))
	for i, c := range m.Calls {
		text, failed, ours, err := t.call(ctx, i, c)
		if err != nil {
			return err
		}
		if i < maxCalls {
			t.steps = append(t.steps, gate.Step{Tool: gate.Cut(c.Name, 100), Input: gate.Cut(string(c.Args), maxLineBytes), Text: gate.Cut(text, 512)})
		}
		if !ours { // also a failure: it may repeat what the agent had the judge look for
			text = fenced(t.fence, text)
		}
		results[i] = Result{ID: c.ID, Name: c.Name, Text: text, Failed: failed}
	}
	t.say(Message{Role: User, Results: results})
	if why := t.due(); why != "" {
		t.req.Force = submitVerdict
		results[len(results)-1].Text += "\n" + why + " Call submit_verdict now, with what you know."
	}
	return nil
}

// call runs one call; ours: what it gives are the gate's own words.
func (t *trial) call(ctx context.Context, i int, c Call) (text string, failed, ours bool, err error) {
	switch {
	case c.Name == submitVerdict:
		return "Not taken: you asked to read more in the same answer. Call submit_verdict alone.", true, true, nil
	case i >= maxCalls:
		return fmt.Sprintf("Not run: at most %d calls in one answer.", maxCalls), true, true, nil
	case t.late():
		return "Not run: the time for reading is over.", true, true, nil
	}
	within := ctx
	if !t.toolsBy.IsZero() {
		var cancel context.CancelFunc
		within, cancel = context.WithDeadline(ctx, t.toolsBy)
		defer cancel()
	}
	text, failed, err = callTool(within, t.in.Transcript, c)
	switch {
	case err == nil:
		return text, failed, false, nil
	case within.Err() != nil && ctx.Err() == nil:
		return "Stopped: it took too long.", true, true, nil
	case ctx.Err() != nil:
		return "", false, false, ctx.Err()
	}
	return "", false, false, unreadable(err)
}

func (t *trial) late() bool { return !t.verdictBy.IsZero() && !time.Now().Before(t.verdictBy) }

// due says why the model must give its verdict now; empty: it need not.
func (t *trial) due() string {
	switch {
	case t.rounds >= t.judge.maxRounds:
		return "This was the last round."
	case t.late():
		return "The time for reading is over."
	case t.size >= maxConversationBytes, t.spent()+2*t.lastCost >= t.judge.maxTokens:
		return "There is no room for more."
	}
	return ""
}

func (t *trial) spent() int { return t.before + t.usage.PromptTokens + t.usage.OutputTokens }
