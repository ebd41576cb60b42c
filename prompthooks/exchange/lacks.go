package exchange

import (
	"net/http"
	"slices"
	"strings"

	"stopgate/prompthooks"
)

// refusals are how servers say that they cannot do something at all, in lower
// case. What a server says of a mistake in a request ("invalid schema for
// function") must not be among them: the fallback would hide it.
var refusals = []string{"not support", "unsupported", "n't support", "not enabled", "not available", "unavailable",
	"not implemented", "not permitted", "not allowed", "no endpoints found", "requires --", "unknown field", "unrecognized",
	"extra inputs", "may not be enabled when", "supported string values", "enabled only for"}

// refusalsOf5xx are llama.cpp's, which says so with a status of the 500s. Of any
// other server such a status is an outage, which passes, whatever its message:
// "the function host is not available" must not cost the tools for an hour.
var refusalsOf5xx = []string{"requires --", "unsupported param", "does not support"}

// named are the words by which servers call a feature, in lower case, the most
// telling first: "tool_choice" is not about tools as such, and a model that must
// think ("reasoning_effort") may then call none.
var named = []struct {
	feature prompthooks.Features
	words   []string
}{
	{prompthooks.Thinking, []string{"reasoning_effort"}},
	{prompthooks.Forcing, []string{"tool_choice", "tool choice", "toolconfig", "function calling config", "forces tool use"}},
	{prompthooks.Schemas, []string{"response_format", "response format", "json_schema", "json schema", "json mode",
		"structured output", "output_config", "output_format", "output format", "response_schema", "responseschema", "response mime type"}},
	{prompthooks.Tools, []string{"tool", "function", "reasoning_effort"}},
}

// lacks is what the server says it cannot do, of what it was asked for; 0 if it
// complains of something else. llama.cpp says so with a 500.
func (ex *Exchange) lacks(uses prompthooks.Features) prompthooks.Features {
	if !slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity,
		http.StatusInternalServerError, http.StatusNotImplemented}, ex.Status) || !ex.said.made {
		return 0
	}
	// The beginning, which is the server's own: what it quotes of a request, and
	// so of the agent's words, comes later.
	message := strings.ToLower(Clip(ex.said.message, 300))
	contains := func(word string) bool { return strings.Contains(message, word) }
	says := refusals
	if ex.Status >= 500 {
		says = refusalsOf5xx
	}
	if !slices.ContainsFunc(says, contains) {
		return 0
	}
	for _, n := range named {
		about := slices.Contains(n.words, strings.ToLower(ex.said.param)) || slices.ContainsFunc(n.words, contains)
		if uses&n.feature != 0 && about {
			return n.feature
		}
	}
	return 0
}
