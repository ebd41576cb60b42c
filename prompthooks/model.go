package prompthooks

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stopgate/gate"
)

// Model is one provider of models. It is safe for concurrent use.
//
// Generate makes exactly one request and returns soon after ctx's end. What
// the model said, a refusal included, is a Response; an error means that it
// said nothing that can be read, and is an [*Error] or ctx's own; a Usage that
// comes beside it counts. Generate changes nothing in the Request.
type Model interface {
	Generate(ctx context.Context, req Request) (Response, error)
}

// ModelFunc makes a function a [Model]: for scripted judges.
type ModelFunc func(ctx context.Context, req Request) (Response, error)

// Generate calls f.
func (f ModelFunc) Generate(ctx context.Context, req Request) (Response, error) { return f(ctx, req) }

// Request is everything that one answer depends on.
type Request struct {
	Agent    string `json:"-"` // whose hook asks, by which requests take turns; it is not sent
	Model    string // the deployment
	System   string
	Messages []Message
	// Tools may be called. With Force only the tool of that name, and it must
	// be.
	Tools []Tool
	Force string
	// Schema, when not nil, is what the answer's text must be JSON of. It is
	// never set together with Tools: models refuse the two in one request.
	Schema *Schema
	// MaxOutputTokens bounds the answer, thoughts included; 0: as the model
	// likes.
	MaxOutputTokens int
	// Unthinking asks for an answer without thoughts, of a model that cannot
	// think and call tools in one request; a provider that has no such model
	// may pass over it.
	Unthinking bool
}

// Role says whose a message is.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn of the conversation with the judge.
type Message struct {
	Role Role
	Text string // without the model's thoughts
	// Calls are what an assistant's message asks for; Results answer, in
	// order, those of the message before.
	Calls   []Call
	Results []Result
	// Native is the assistant's message as its provider got it, thoughts and
	// all. It is handed back unchanged: models sign their thoughts and want
	// them back. Other providers do not read it; nil is allowed.
	Native json.RawMessage
}

// Call is one tool call of a model.
type Call struct {
	ID   string // empty where the provider knows none
	Name string
	Args json.RawMessage // a JSON object, or whatever the model sent instead
}

// Result answers a [Call].
type Result struct {
	ID, Name string // the call's own
	Text     string
	Failed   bool
}

// Tool is one function that a model may call.
type Tool struct {
	Name, Description string
	Parameters        *Schema
}

// Schema is the part of JSON Schema that every provider understands. It is not
// changed once made, so it may be shared.
type Schema struct {
	Type        string // object, array, string, integer, number, boolean
	Description string
	Enum        []string
	Items       *Schema // of an array
	Properties  map[string]*Schema
	Required    []string
	// Order is in which order a model should write the properties.
	Order []string
}

// Finish says how an answer ended.
type Finish int

const (
	Finished  Finish = iota // the model was done
	Truncated               // at its limit of output
	Refused                 // a filter or the model itself would not answer
	Malformed               // the model lost its way: a broken function call, an unknown reason
)

// Response is one answer of a model.
type Response struct {
	Message Message
	Finish  Finish
	Detail  string     // the provider's own word for Finish, for the record
	Usage   gate.Usage // Calls is counted by the judge
}

// ErrorKind says what an [Error] means to the one who asked.
type ErrorKind int

const (
	Unavailable ErrorKind = iota // 5xx, a connection that broke or was never made
	RateLimited                  // 429
	Rejected                     // any other status: asking again changes nothing
	Garbled                      // a success that is no answer: HTML, half a JSON, too large
	Unsupported                  // the server or the model lacks what was asked of it: Error.Lacks
	Crowded                      // it was not asked: too many wait for it already
)

// Error is why a model gave no answer. Its text is for a person, at most some
// hundred characters, and holds no secret.
type Error struct {
	Kind       ErrorKind
	RetryAfter time.Duration // what the server asks to wait; 0: it does not say
	Lacks      Features      // with Unsupported
	Message    string
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an [Error].
func Errorf(kind ErrorKind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// transient reports whether the same request may succeed later
// (spec/azure.md 32).
func (e *Error) transient() bool { return e.Kind == Unavailable || e.Kind == RateLimited }

// Code is what a hook that had no answer for it fails with.
func (e *Error) Code() gate.FailureCode {
	switch e.Kind {
	case RateLimited:
		return gate.ModelRateLimited
	case Crowded:
		return gate.Overloaded
	}
	return gate.ModelUnavailable
}
