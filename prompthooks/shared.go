package prompthooks

import (
	"context"
	"slices"
	"sync"
	"time"

	"stopgate/gate"
)

// questions are those that are being judged now, and the verdicts of those that
// may be given again.
type questions struct {
	mu     sync.Mutex
	asked  map[key][]*question
	kept   map[whole]keptVerdict
	oldest []whole // of kept, in the order they came
}

// keptVerdict is one that may be given again, and the session that it is of.
type keptVerdict struct {
	verdict gate.Verdict
	session string
}

// question is one that is being judged, about a conversation.
type question struct {
	session  string
	about    *conversation
	until    time.Time // its asker's; zero: without end
	keep     bool      // the verdict, as that of whole
	whole    whole
	answered chan struct{}
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
func (q *questions) once(ctx context.Context, k key, about *conversation, session string, keep bool, ask func() gate.Verdict) gate.Verdict {
	until, _ := ctx.Deadline()
	mine := &question{session: session, about: about, until: until, keep: keep, answered: make(chan struct{}), verdict: gate.Verdict{Outcome: gate.NoVerdict}}
	if keep {
		sum, ok := about.fingerprint()
		if !ok {
			return ask()
		}
		mine.whole = whole{k, sum}
	}
	passed := map[*question]bool{} // that are no help
	for {
		earlier, other := q.find(k, mine, passed)
		switch {
		case earlier != nil:
			return shared(*earlier, "the verdict is an earlier one on the same question")
		case other == nil:
			defer q.end(k, mine) // also when ask panics: nobody waits for ever
			mine.verdict = ask()
			return mine.verdict
		}
		passed[other] = true
		if !other.about.same(about) {
			continue
		}
		select {
		case <-other.answered:
			if v := other.verdict; v.Outcome != gate.NoVerdict || v.Failure != nil && v.Failure.Code != gate.Timeout {
				return shared(v, "the same question was being judged, and its verdict is this one's")
			}
		case <-ctx.Done():
			return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.Timeout, Message: "the same question was being judged, and not in time"}}
		}
	}
}

// find is an earlier verdict on mine, or else a question that may be the same,
// whose asker has as much time; where there is neither mine is being judged from
// now on.
func (q *questions) find(k key, mine *question, passed map[*question]bool) (earlier *gate.Verdict, other *question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if v, ok := q.kept[mine.whole]; ok && mine.keep {
		return &v.verdict, nil
	}
	for _, other := range q.asked[k] {
		patient := other.until.IsZero() || !mine.until.IsZero() && mine.until.Sub(other.until) <= atOnce
		if patient && !passed[other] {
			return nil, other
		}
	}
	if q.asked == nil {
		q.asked, q.kept = map[key][]*question{}, map[whole]keptVerdict{}
	}
	q.asked[k] = append(q.asked[k], mine)
	return nil, nil
}

// end has the verdict on mine be that of all who wait for it.
func (q *questions) end(k key, mine *question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked[k] = slices.DeleteFunc(q.asked[k], func(other *question) bool { return other == mine }); len(q.asked[k]) == 0 {
		delete(q.asked, k)
	}
	if mine.keep && mine.verdict.Outcome != gate.NoVerdict && !tookAnothersPlace(mine.verdict) {
		q.remember(mine.whole, keptVerdict{mine.verdict, mine.session})
	}
	close(mine.answered)
}

// remember keeps a verdict, and forgets the oldest where there are too many. The
// lock is held.
func (q *questions) remember(k whole, v keptVerdict) {
	if _, known := q.kept[k]; !known {
		q.oldest = append(q.oldest, k)
	}
	q.kept[k] = v
	if len(q.oldest) > maxKept {
		delete(q.kept, q.oldest[0])
		q.oldest = slices.Delete(q.oldest, 0, 1)
	}
}

// forget gives no verdict of a session again.
func (q *questions) forget(session string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.oldest = slices.DeleteFunc(q.oldest, func(k whole) bool {
		mine := q.kept[k].session == session
		if mine {
			delete(q.kept, k)
		}
		return mine
	})
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
