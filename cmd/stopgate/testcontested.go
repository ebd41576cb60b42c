package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stopgate/config"
	"stopgate/gate"
)

// contested refuses answers that several hooks would take from one list. Hooks of an
// event run at once, so whoever comes first has the first answer: such a case passes
// today and fails tomorrow.
func (s *suite) contested(ctx context.Context, c config.TestCase, e config.TestEvent, ev *gate.Event) {
	if len(e.Model) == 0 && len(e.HTTP) == 0 {
		return
	}
	policies := &gate.Policies{}
	policies.SetFiles(s.activeSpecs(e.Active))
	about, err := policies.About(*ev)
	if err != nil { // an unknown agent, which the run tells
		return
	}
	about = slices.DeleteFunc(about, func(h *gate.Hook) bool {
		return h.Activation == gate.OnDemand || h.Dialect.InTurn() || passedOver(ctx, h, ev)
	})
	var judged, sent []*gate.Hook
	for _, h := range about {
		switch _, own := e.Model[h.Name]; {
		case h.Type == gate.PromptHook && !own:
			judged = append(judged, h)
		case h.Type == gate.HTTPHook:
			sent = append(sent, h)
		}
	}
	if len(e.Model[""]) > 0 && len(judged) > 1 {
		s.errorf(e.Place, "model of case %q: hooks %s are asked at once, and which of them gets which answer is a matter of chance: "+
			"write an object with a list for each, model: {%s: [{verdict: {ok: true}}], …}", c.Name, quotedNames(judged), scalar(judged[0].Name))
	}
	if i := contestedAnswer(sent, e.HTTP); i >= 0 {
		s.errorf(e.Place, "http[%d] of case %q: hooks %s send their requests at once, and which of them gets this answer is a matter of chance: "+
			"give each answer the url that it is for", i, c.Name, quotedNames(sent))
	}
}

// passedOver reports whether the hook's condition certainly does not hold. One that asks
// about the conversation, which is not here, may.
func passedOver(ctx context.Context, h *gate.Hook, ev *gate.Event) bool {
	if h.When == nil {
		return false
	}
	holds, failure := h.When.Holds(ctx, gate.Input{Hook: h, Event: ev})
	return !holds && failure == nil
}

// contestedAnswer is the place of an answer that more than one of the hooks may get,
// where another answer might be had in its place; -1: there is none.
func contestedAnswer(hooks []*gate.Hook, answers []config.HTTPAnswer) int {
	if len(hooks) < 2 {
		return -1
	}
	return slices.IndexFunc(answers, func(a config.HTTPAnswer) bool {
		takers := 0
		for _, h := range hooks {
			if a.URL == "" || a.URL == h.URL {
				takers++
			}
		}
		return takers > 1 && slices.ContainsFunc(answers, func(b config.HTTPAnswer) bool { return !alikeAnswers(a, b) })
	})
}

// alikeAnswers reports whether a hook is told the same by both.
func alikeAnswers(a, b config.HTTPAnswer) bool {
	return a.Status == b.Status && a.Body == b.Body && fmt.Sprint(a.Headers) == fmt.Sprint(b.Headers)
}

func quotedNames(hooks []*gate.Hook) string {
	names := make([]string, len(hooks))
	for i, h := range hooks {
		names[i] = fmt.Sprintf("%q", h.Name)
	}
	return strings.Join(names, " and ")
}
