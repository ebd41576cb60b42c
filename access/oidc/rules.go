package oidc

import (
	"slices"
	"strings"

	"stopgate/gate"
)

// Rule says what the tokens with a claim may do.
type Rule struct {
	Claim string // its name; of a claim inside another one, both with a dot between
	// Value is a pattern (see [gate.MatchName]) of the claim's text, of one of its
	// list, or of one of the words of scope and scp.
	Value  string
	Scopes []gate.Scope
	Agents []string // patterns
	// AgentsClaim is a claim that names more agents, as they are: what is a
	// pattern there is left out.
	AgentsClaim string
}

func (r Rule) fits(claims map[string]any) bool {
	return slices.ContainsFunc(texts(claims, r.Claim), func(v string) bool { return gate.MatchName(r.Value, v) })
}

// agents is never the patterns alone of a rule that another rule shares.
func (r Rule) agents(claims map[string]any) []string {
	if r.AgentsClaim == "" {
		return r.Agents
	}
	agents := slices.Clone(r.Agents)
	for _, name := range texts(claims, r.AgentsClaim) {
		if name != "" && !strings.ContainsAny(name, "*?") {
			agents = append(agents, name)
		}
	}
	return agents
}

// texts are the values of a claim; none of one that is no text and no list.
func texts(claims map[string]any, name string) []string {
	switch v := claim(claims, name).(type) {
	case string:
		if name == "scope" || name == "scp" { // RFC 8693, 4.2: words
			return strings.Fields(v)
		}
		return []string{v}
	case []any:
		var list []string
		for _, item := range v {
			if s, ok := item.(string); ok {
				list = append(list, s)
			}
		}
		return list
	}
	return nil
}

// claim finds a claim by its name, which may hold dots itself, or inside others
// (realm_access.roles).
func claim(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	outer, inner, nested := strings.Cut(name, ".")
	if !nested {
		return nil
	}
	within, _ := claims[outer].(map[string]any)
	return claim(within, inner)
}
