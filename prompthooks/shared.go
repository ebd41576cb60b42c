package prompthooks

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"stopgate/gate"
)

// key is everything that a verdict depends on: two inputs with one key are the
// same question.
type key [sha256.Size]byte

// keyOf is the key of an input; false: the conversation is too long, or cannot
// be read, to be compared. The conversation's path is another one for each
// event, and no part of the question.
func keyOf(ctx context.Context, in gate.Input) (k key, ok bool) {
	h := *in.Hook
	said, err := withoutPaths(in.Context)
	if err != nil {
		return k, false
	}
	var conversation [sha256.Size]byte
	if t := in.Transcript; t != nil {
		if conversation, ok = t.Fingerprint(ctx); !ok {
			return k, false
		}
	}
	question, err := json.Marshal([]any{h.Event, h.Prompt, h.Model, h.Models, h.Votes, h.Threshold, h.EvidenceRequired, h.Timeout, said, in.Transcript != nil, conversation})
	return sha256.Sum256(question), err == nil
}

// withoutPaths is a context without the names of the conversation's files.
func withoutPaths(context []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(context, &fields); err != nil {
		return nil, err
	}
	delete(fields, "execution_summary")
	delete(fields, "transcript_path")
	delete(fields, "agent_transcript_path")
	return json.Marshal(fields)
}

// questions are those that are being judged now, and the verdicts of those that
// may be given again.
type questions struct {
	mu     sync.Mutex
	asked  map[key]*question
	kept   map[key]gate.Verdict
	oldest []key // of kept, in the order they came
}

type question struct {
	answered chan struct{}
	until    time.Time // its asker's; zero: without end
	verdict  gate.Verdict
}

// atOnce is how much later an asker's time may end than the one's it waits for.
const atOnce = time.Second

// tookAnothersPlace: another model than the hook's has judged, so that the verdict
// is no answer for when that one is there again.
func tookAnothersPlace(v gate.Verdict) bool {
	return v.Evidence != nil && len(v.Evidence.Steps) > 0 && v.Evidence.Steps[0].Tool == "fallback"
}

// maxKept verdicts are remembered for hooks that allow it; one has some
// kilobytes.
const maxKept = 1024

// once has ask judge a question, unless it is being judged already: then that
// verdict is this one's too. With keep a verdict is given again later.
//
// A judge that ran out of its caller's time says nothing about the others:
// they ask for themselves.
func (q *questions) once(ctx context.Context, k key, keep bool, ask func() gate.Verdict) gate.Verdict {
	until, _ := ctx.Deadline()
	for {
		q.mu.Lock()
		if v, ok := q.kept[k]; ok && keep {
			q.mu.Unlock()
			return shared(v, "the verdict is an earlier one on the same question")
		}
		other := q.asked[k]
		if other == nil || !other.until.IsZero() && (until.IsZero() || until.Sub(other.until) > atOnce) {
			break // with the lock held: nobody asks, or with far less time
		}
		q.mu.Unlock()
		select {
		case <-other.answered:
			if v := other.verdict; v.Outcome != gate.NoVerdict || v.Failure != nil && v.Failure.Code != gate.Timeout {
				return shared(v, "the same question was being judged, and its verdict is this one's")
			}
		case <-ctx.Done():
			return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.Timeout, Message: "the same question was being judged, and not in time"}}
		}
	}
	mine := &question{answered: make(chan struct{}), until: until, verdict: gate.Verdict{Outcome: gate.NoVerdict}}
	if q.asked == nil {
		q.asked, q.kept = map[key]*question{}, map[key]gate.Verdict{}
	}
	q.asked[k] = mine
	q.mu.Unlock()
	defer func() { // also when ask panics: nobody waits for ever
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.asked[k] == mine {
			delete(q.asked, k)
		}
		if keep && mine.verdict.Outcome != gate.NoVerdict && !tookAnothersPlace(mine.verdict) {
			q.keep(k, mine.verdict)
		}
		close(mine.answered)
	}()
	mine.verdict = ask()
	return mine.verdict
}

// keep remembers a verdict, and forgets the oldest where there are too many. The
// lock is held.
func (q *questions) keep(k key, v gate.Verdict) {
	if _, known := q.kept[k]; !known {
		q.oldest = append(q.oldest, k)
	}
	q.kept[k] = v
	if len(q.oldest) > maxKept {
		delete(q.kept, q.oldest[0])
		q.oldest = slices.Delete(q.oldest, 0, 1)
	}
}

// shared is a verdict that another evaluation paid for.
func shared(v gate.Verdict, why string) gate.Verdict {
	v.Notes = slices.Clone(v.Notes)
	v.Usage = &gate.Usage{}
	found := gate.Evidence{}
	if v.Evidence != nil {
		found = *v.Evidence
	}
	found.Steps = append([]gate.Step{{Tool: "shared", Text: why}}, found.Steps...)
	v.Evidence = &found
	return v
}
