package gate

import (
	"context"
	"fmt"
	"strings"
)

// probe answers the mark of `stopgate doctor`: which hooks would be asked, and
// none is. It is recorded as a dry run and counts nothing.
func (e *evaluation) probe(ctx context.Context) (Decision, error) {
	e.ev.Dry = true
	e.verdicts = make([]Verdict, len(e.hooks))
	for i := range e.verdicts {
		e.verdicts[i].Outcome = Skipped
	}
	e.verdicts = e.named(e.verdicts)
	return e.commit(context.WithoutCancel(ctx))
}

// answerProbe makes the decision a block where hooks would have been asked whose
// verdicts count. It is never more than that: an agent that puts the mark into its own event gets
// nothing through.
func answerProbe(ev *Event, d *Decision) {
	var names []string
	for i := range d.Hooks {
		if !d.Hooks[i].Shadow {
			names = append(names, d.Hooks[i].Name)
		}
	}
	if len(names) == 0 {
		return
	}
	d.Outcome = Block
	d.Reason = fmt.Sprintf("stopgate probe %s: the gate is there, and agent %q is asked on %s by %s.", ev.Probe, ev.Agent, ev.Name, strings.Join(names, ", "))
	d.Messages = append(d.Messages, Message{Role: "user", Content: d.Reason})
}
