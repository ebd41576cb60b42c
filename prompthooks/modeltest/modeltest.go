// Package modeltest is the suite that every provider of models passes, against
// a server on this machine whose answers have the form that the provider's own
// API reference documents:
//
//	modeltest.Run(t, modeltest.Provider{Open: …, Asked: …, Says: …})
//
// What is peculiar to one provider is tested in its own package, by the same
// [Server].
package modeltest

import (
	"testing"

	"stopgate/gate"
	"stopgate/prompthooks"
)

// Key is what [Provider].Open must give as the key, or as the access token, and
// what must be seen nowhere but where a request carries it.
const Key = "key-of-the-suite-0123456789"

// Deployment is the model that the suite asks for.
const Deployment = "model-1"

// Provider is what the suite has to know of a provider and its API.
type Provider struct {
	// Open makes the provider for the server at base.
	Open func(t testing.TB, base string) prompthooks.Model
	// Asked reads a request of the provider's.
	Asked func(t testing.TB, r Request) Asked
	// Env are the environment variables that the SDK or the service's other
	// programs know.
	Env []string
	// Keyless says that the provider has no key to tell.
	Keyless bool

	// Says is the body of an answer in text, Calls of one that calls two tools
	// at once ([TwoCalls]). Both say that they cost Usage.
	Says  func(text string) string
	Calls string
	Usage gate.Usage
	// CallIDs are the ids of the calls in Calls.
	CallIDs [2]string
	// Native is the model's turn in Calls, as it must be handed back.
	Native string
	// Refused, Truncated and Malformed are answers that ended so.
	Refused, Truncated, Malformed string
	// RateLimited, Down and Denied are errors as the service documents them.
	RateLimited, Down, Denied Fault
	// Lacking are refusals of features, of the service's or of servers that
	// speak its API.
	Lacking []Lack
}

// Asked is a request in the suite's words.
type Asked struct {
	Key, Model, System string
	Users              []string // texts of the user's
	Tools              []string // names
	Force              string   // the one tool that must be called
	Schema             []string // names of the properties, in order
	Results            []prompthooks.Result
	Native             []string // the turns of the model
}

// Fault is an error that a server answers.
type Fault struct {
	Status int
	Body   string
}

// Lack is a server's refusal of a feature.
type Lack struct {
	Name string
	Fault
	Feature prompthooks.Features
}

// TwoCalls are the names and arguments of the calls in [Provider].Calls.
var TwoCalls = [2]prompthooks.Call{
	{Name: "GrepSearch", Args: []byte(`{"pattern":"tests"}`)},
	{Name: "ReadFile", Args: []byte(`{"offset":7}`)},
}

// form is a schema whose properties are not in the order of the alphabet.
var form = &prompthooks.Schema{Type: "object", Required: []string{"ok"}, Order: []string{"reason", "ok"},
	Properties: map[string]*prompthooks.Schema{"ok": {Type: "boolean"}, "reason": {Type: "string", Description: "Why."}}}

// question is a request without tools.
func question() prompthooks.Request {
	return prompthooks.Request{Model: Deployment, System: "Judge <this>.",
		Messages: []prompthooks.Message{{Role: prompthooks.User, Text: "Is it done? \"€\""}}}
}

// withTools is one with three.
func withTools() prompthooks.Request {
	r := question()
	r.Tools = []prompthooks.Tool{{Name: "GrepSearch", Description: "Finds.", Parameters: form}, {Name: "ReadFile", Description: "Reads."},
		{Name: "submit_verdict", Description: "Ends.", Parameters: form}}
	return r
}
