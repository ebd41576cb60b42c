package httphooks

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"stopgate/gate"
)

// judge is the law of answers. Like everything below it is a function of values.
func (p call) judge(event gate.EventName, r reply) gate.Verdict {
	v, failure := p.read(event, r)
	if failure != nil {
		v = gate.Verdict{Outcome: gate.NoVerdict, Failure: failure}
	}
	v.Evidence = &gate.Evidence{Status: r.status, Stdout: gate.CutEvidence(p.clean(string(r.body)))}
	return v
}

func (p call) read(event gate.EventName, r reply) (gate.Verdict, *gate.Failure) {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", r.status, http.StatusText(r.status))) // in no words of the server's
	switch {
	case r.gate && !r.success():
		return gate.Verdict{}, failf(gate.HTTPStatus, "%s answered with %s: it is a gate, which is not asked from within a hook; take the hook out", p.host, status)
	case r.status >= 300 && r.status < 400:
		return gate.Verdict{}, failf(gate.HTTPStatus, "%s answered with %s, and no redirect is followed", p.host, status)
	case !r.success():
		return gate.Verdict{}, failf(gate.HTTPStatus, "%s answered with %s", p.host, status)
	case r.cut:
		return gate.Verdict{}, failf(gate.OutputTooLarge, "%s answered with more than %d bytes", p.host, maxAnswer)
	case r.encoding != "":
		return gate.Verdict{}, failf(gate.BadOutput, "%s answered in the encoding %q, which was not asked for", p.host, plain(p.clean(r.encoding), 40))
	}
	v, err := p.answer(event, r.body)
	if err != nil {
		return gate.Verdict{}, failf(gate.BadOutput, "%s gave no answer that counts: %v: %q", p.host, err, plain(p.clean(string(r.body)), 80))
	}
	return v, nil
}

// answer is what the body says, in texts without secrets. They are taken out
// before texts are cut, so that no half of one stays; but the outcome is that of
// the body as it came.
func (p call) answer(event gate.EventName, body []byte) (gate.Verdict, error) {
	v, err := readAnswer(p.dialect, event, body)
	blotted := []byte(p.clean(string(body)))
	if bytes.Equal(blotted, body) {
		return v, err
	}
	shown, fault := readAnswer(p.dialect, event, blotted)
	switch {
	case err != nil:
		return v, errors.New("it cannot be read") // in other words there may be half a secret
	case fault == nil && shown.Outcome == v.Outcome:
		return shown, nil
	}
	v.Reason, v.AdditionalContext = p.clean(v.Reason), p.clean(v.AdditionalContext)
	if v.Failure != nil {
		v.Failure = failf(v.Failure.Code, "%s", p.clean(v.Failure.Message))
	}
	return v, nil
}

// readAnswer: spec/antigravity.md 11, 12; spec/claude-code.md 4.
func readAnswer(d gate.Dialect, event gate.EventName, body []byte) (gate.Verdict, error) {
	if d == gate.Antigravity {
		return gate.ReadAntigravityAnswer(event, body)
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return gate.Verdict{Outcome: gate.Allow}, nil
	}
	return gate.ReadClaudeCodeAnswer(event, body)
}
