package main

import (
	"fmt"
	"slices"
	"strings"

	"stopgate/gate"
)

// unserved are warnings about hooks that this server cannot ask, as it is now,
// each with what helps.
func (a *app) unserved(spec *gate.Spec) (found []gate.Finding) {
	for i := range spec.Hooks {
		h := &spec.Hooks[i]
		for _, why := range a.cannotAsk(h) {
			found = append(found, gate.Finding{Severity: gate.SeverityWarning, Path: h.Name, Message: why})
		}
	}
	return found
}

// unasked reports whether this server cannot ask the hook, as it is now.
func (a *app) unasked(h *gate.Hook) bool {
	return slices.ContainsFunc(a.cannotAsk(h), func(why string) bool { return strings.HasPrefix(why, cannotAsk) })
}

// cannotAsk begins a warning about a hook that ends without a verdict.
const cannotAsk = "this server cannot ask the hook"

func (a *app) cannotAsk(h *gate.Hook) []string {
	var failure *gate.Failure
	switch h.Type {
	case gate.CommandHook:
		var asked bool
		if failure, asked = a.runner.Unserved(h); asked {
			return []string{fmt.Sprintf("%s; it is asked without, and may refuse each time for want of it", failure.Message)}
		}
		if program := a.runner.Offline(h); failure == nil && program != "" {
			return []string{fmt.Sprintf("its command starts %s, which fails here, since hooks have no network: set sandbox.network: true in the server file, or ask by an http hook", program)}
		}
	case gate.HTTPHook:
		failure = a.caller.Refusal(h)
	case gate.PromptHook:
		return a.models.unserved(h)
	}
	if failure == nil {
		return nil
	}
	return []string{fmt.Sprintf(cannotAsk+", which ends without a verdict (%s): %s", failure.Code, failure.Message)}
}

// unserved says of each model that the hook names, and that is not there, why.
func (m *models) unserved(h *gate.Hook) (found []string) {
	said := map[string]bool{}
	for i := range max(1, len(h.Models)) {
		name := h.Voter(i)
		if said[name] {
			continue
		}
		said[name] = true
		_, deployment, err := m.find(name)
		switch {
		case err != nil:
			found = append(found, fmt.Sprintf(cannotAsk+", which ends without a verdict (%s): %v", gate.ModelUnavailable, err))
		case !m.names.Knows(name):
			found = append(found, fmt.Sprintf("model %.80q is no name of this server's: the provider %s is asked for it as it is; name it under models.models in the server file, or use a tier as %s",
				deployment, m.names.Default, gate.DefaultModel))
		}
	}
	return found
}
