package gate

import "context"

// Input is what a hook is asked with.
type Input struct {
	Hook  *Hook
	Event *Event // its FinalOutput is the answer under judgement alone
	// Context is what the hook is told of the event: the azure context JSON,
	// exactly the names and types of spec/azure.md 25, or the payload of the
	// hook's own dialect.
	Context []byte
	// Network is what the agent's http hooks of the antigravity dialect may
	// reach; nil: every external host.
	Network *Network
	// Transcript is nil when there is no conversation to read.
	Transcript Transcript
}

// Condition is a question about an event, compiled when the spec that asks it was
// read. It is safe for concurrent use.
type Condition interface {
	// Holds answers it from Hook, Event and Transcript. A failure means that it
	// could not be answered: BadExpression, or Timeout when ctx ended.
	Holds(ctx context.Context, in Input) (bool, *Failure)
	String() string // as it was written
}

// Evaluator asks hooks of one [HookType].
//
// Evaluate returns within a second of ctx's end, which is the hook's own
// timeout; of a command hook of AX Code it is the end of the whole evaluation,
// and the evaluator starts the hook's Timeout with the hook. What it could not ask is a verdict with NoVerdict and a [Failure];
// it never guesses. A block without a reason is returned as such: what that
// means is the gate's to say. It is safe for concurrent use.
type Evaluator interface {
	Evaluate(ctx context.Context, in Input) Verdict
}

// EvaluatorFunc makes a function an [Evaluator].
type EvaluatorFunc func(ctx context.Context, in Input) Verdict

// Evaluate calls f.
func (f EvaluatorFunc) Evaluate(ctx context.Context, in Input) Verdict { return f(ctx, in) }

// Transcript is the readable view of one conversation: numbered lines of plain
// text. It does not change while it is open, except that lines may be added.
// It is safe for concurrent use.
type Transcript interface {
	// Path of the view, a file on this machine: the context's
	// execution_summary, mounted at the same path inside a sandbox.
	Path() string
	// RawPath of the conversation as it was given; may be Path, may be empty.
	RawPath() string
	// ReadFile is limit lines from the 1-based line offset, each as
	// "number<TAB>text", with a last line that says what was left out. offset
	// and limit below 1 mean the defaults. What is beyond the end is said in
	// words, not an error; an error means that the file could not be read.
	ReadFile(ctx context.Context, offset, limit int) (string, error)
	// GrepSearch is the lines that an RE2 pattern finds, numbered, with
	// context lines round them, and a last line that says what was left out.
	// A pattern that RE2 cannot run is a [*Failure] with BadOutput.
	GrepSearch(ctx context.Context, q Grep) (string, error)
	// Outline is the whole conversation, numbered, where it fits into limit
	// bytes; else a map of it: what was asked, which tools were called with
	// what, what failed, and on which line each stands. Empty where there is no
	// map, as of long plain text. An error means that it could not be read.
	Outline(ctx context.Context, limit int) (text string, whole bool, err error)
	// Fingerprint is the SHA-256 sum of the view; ok is false where it is too
	// long for that, or cannot be read.
	Fingerprint(ctx context.Context) (sum [32]byte, ok bool)
	Close() error
}

// Recalled is what a conversation says of its agent so far.
type Recalled struct {
	// Prompt is the newest message of the user's, its first [RecalledBytes]; of
	// the gate's own reasons those count that a host keeps as such a message.
	Prompt string
	// Tools are the tools that were called, by the host's names, each once, in
	// the order of their first calls.
	Tools []string
}

// RecalledBytes is how much of a prompt is recalled.
const RecalledBytes = 8 << 10

// Recalling is a [Transcript] that may know who said what.
type Recalling interface {
	// Recall reads the conversation. An error means that it could not be read,
	// or that it is plain text, in which anybody may have written anything.
	Recall(ctx context.Context) (Recalled, error)
}

// Grep is one search.
type Grep struct {
	Pattern string
	Context int // lines before and after; at most 20
	Limit   int // matches; 0 = the default
}

// Transcripts finds the conversation that belongs to an event.
type Transcripts interface {
	// Attach stores an inline transcript, replacing the session's, or opens
	// the named one, or the session's own; nil when there is none. In a dry run
	// and inside a sub-agent an inline transcript is temporary: it is not the
	// session's.
	// A path outside the configured roots, and an inline transcript of the
	// wrong shape, are an [*Error] with CodeValidation; what could not be read
	// or stored is a [*Failure] with TranscriptUnreadable.
	Attach(ctx context.Context, ev *Event) (Transcript, error)
}
