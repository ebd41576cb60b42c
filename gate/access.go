package gate

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Scope is one kind of thing that a credential may do (DESIGN §8).
type Scope string

const (
	EvaluateScope Scope = "evaluate" // ask for decisions, and send the conversation they are about
	ReadScope     Scope = "read"     // see specs, evaluations, sessions and metrics
	AdminScope    Scope = "admin"    // change things; includes the other two
)

// Scopes lists every scope.
var Scopes = []Scope{EvaluateScope, ReadScope, AdminScope}

// EveryAgent is the pattern of a credential that is not limited to some agents.
const EveryAgent = "*"

// Nobody is whose a conversation is that was uploaded for no agent: a session
// with one belongs to none but those who own every agent.
const Nobody = ""

// Caller is who sent a request. The zero value may do nothing.
type Caller struct {
	// Name is what people call it: a key's name, a token's subject, a
	// certificate's name. Changes are made in its name.
	Name string
	// Credential tells it from every other, also of the same name: "key:…",
	// "oidc:…", "certificate:…". Empty where there is no login.
	Credential string
	Scopes     []Scope
	// Agents are patterns (see [MatchName]) of the agents that it may ask for,
	// see and change. Without any there are none.
	Agents []string
}

// Anonymous is who calls where there is no login: anybody, and they may do
// everything.
func Anonymous() Caller {
	return Caller{Name: "anonymous", Scopes: []Scope{AdminScope}, Agents: []string{EveryAgent}}
}

// May reports whether the caller has a scope.
func (c Caller) May(s Scope) bool {
	return slices.Contains(c.Scopes, s) || slices.Contains(c.Scopes, AdminScope)
}

// Limited reports whether there are agents that are none of the caller's.
func (c Caller) Limited() bool { return !slices.Contains(c.Agents, EveryAgent) }

// Owns reports whether an agent is one of the caller's.
func (c Caller) Owns(agent string) bool {
	return slices.ContainsFunc(c.Agents, func(p string) bool { return MatchName(p, agent) })
}

// OwnsAll reports whether every agent is one of the caller's; of no agents
// that is true.
func (c Caller) OwnsAll(agents []string) bool {
	return !slices.ContainsFunc(agents, func(a string) bool { return !c.Owns(a) })
}

// OnlyAgent is the caller's agent where its patterns name just one.
func (c Caller) OnlyAgent() (name string, ok bool) {
	if len(c.Agents) != 1 || strings.ContainsAny(c.Agents[0], "*?") {
		return "", false
	}
	return c.Agents[0], true
}

// MatchName reports whether a whole name is what a pattern says: "*" is any
// text, also none, "?" any one character, everything else itself. Its time is
// bounded by the product of both lengths.
func MatchName(pattern, name string) bool {
	star, retry := -1, 0 // the last "*", and where in name what follows it was tried
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, retry = p, n
			p++
		case p < len(pattern) && pattern[p] == '?':
			_, size := utf8.DecodeRuneInString(name[n:])
			p, n = p+1, n+size
		case p < len(pattern) && pattern[p] == name[n]:
			p, n = p+1, n+1
		case star >= 0:
			_, size := utf8.DecodeRuneInString(name[retry:])
			retry += size
			p, n = star+1, retry
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
