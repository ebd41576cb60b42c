package gate

import (
	"context"
	"time"
)

// Store is everything that must survive a restart. One exported suite
// (store/storetest) holds every implementation.
//
// Errors are an [*Error] with the code that the method names; any other error
// means that the store did not work.
type Store interface {
	Ledger
	Specs
	Records
	Activations
	Overrides
	Idempotency
	Sessions
	Keys
	Audit
	// Ping reports whether the store can be written.
	Ping(ctx context.Context) error
	Close() error
}

// LedgerKey is where counts live.
type LedgerKey struct{ Agent, Session, SubAgent string }

// Ledger holds the counts of each loop.
type Ledger interface {
	// Counts reads what a key holds, the zero Counts if nothing yet, and before
	// that the last erasure of its session, for a later [Commit].
	Counts(ctx context.Context, key LedgerKey) (Counts, Erasure, error)
	// Commit stores counts and record in one transaction; when it returns nil
	// both survive kill -9. See [Commit].
	Commit(ctx context.Context, c Commit) error
}

// Erasure tells the erasures of one session apart: it grows with each, and is
// more than 0 before the first. A store remembers one for a day, which is longer
// than an evaluation or an upload takes.
type Erasure int64

// NeverErased is the [Erasure] of a session of which none is remembered.
const NeverErased Erasure = 1

// Commit is one decision on its way into the store.
type Commit struct {
	// Key is the ledger's row; with an empty Session no counts are read or
	// written, and Settle gets Seen.
	Key LedgerKey
	// Seen are the counts that the evaluation was made with.
	Seen Counts
	// The record's payload belongs to the caller again once Commit has
	// returned, also with an error.
	//
	// Settle is pure: given the counts as they are, what is to be stored. It
	// is called with Seen first, outside the transaction, and once more inside
	// it if the counts have changed meanwhile. The last call's results are
	// the ones stored.
	Settle func(now Counts) (Counts, Record)
	// Stale, when not nil, is asked of counts that have changed meanwhile,
	// inside the transaction and before Settle: whether no settling makes what
	// was evaluated fit them. Then nothing is stored, and Commit returns
	// [ErrStale].
	Stale func(now Counts) bool
	// Idempotency is the request that this decision answers; the zero value:
	// one without a key. The key is claimed, if it is not reserved, and
	// completed in the same transaction, so that a request is counted once
	// whatever became of its reservation. CodeConflict: it was answered by
	// another decision; CodeIdempotencyMismatch: it belongs to another body. In
	// both cases nothing is stored.
	Idempotency Request
	// Projects are kept for the record's agent in its session, unless some are
	// kept already; nil: there is nothing to keep.
	Projects Projects
	// Erasure is the last one of the record's session from before the evaluation
	// read anything of it; 0: it was not looked up. After a later one nothing is
	// stored, and Commit returns [ErrErased].
	Erasure Erasure
}

// ErrErased is what belongs to a session that was erased since: a commit, a claim
// or a conversation that came too late.
var ErrErased = &Error{Code: CodeConflict, Message: "session was erased meanwhile: nothing of this is kept"}

// ErrStale is a commit whose evaluation does not fit the counts as they are.
var ErrStale = &Error{Code: CodeConflict, Message: "counts have changed, and with them what must be evaluated"}

// Specs stores resources with their history.
type Specs interface {
	// PutSpec stores a new version (Kind, Name and Document are used) and
	// answers it whole. ifMatch empty: unconditional; "*": only if one exists;
	// else the ETag that must be current. CodePreconditionFailed.
	PutSpec(ctx context.Context, s StoredSpec, by Actor, ifMatch string) (StoredSpec, error)
	// DeleteSpec: CodeNotFound, CodePreconditionFailed.
	DeleteSpec(ctx context.Context, kind SpecKind, name string, by Actor, ifMatch string) error
	// Spec is the current version. CodeNotFound.
	Spec(ctx context.Context, kind SpecKind, name string) (StoredSpec, error)
	// CurrentSpecs lists the current version of everything that is not
	// deleted, in order of first creation.
	CurrentSpecs(ctx context.Context) ([]StoredSpec, error)
	// SpecHistory lists every version, newest first, deletions included.
	SpecHistory(ctx context.Context, kind SpecKind, name string) ([]StoredSpec, error)
}

// SpecWatcher is a Store whose specs others may change too: other replicas of
// this program.
type SpecWatcher interface {
	// SpecsChanged gives a token at first, and then whenever the stored specs
	// may have changed; whoever takes one reads CurrentSpecs anew. The channel
	// is closed when ctx, or the store, ends.
	SpecsChanged(ctx context.Context) <-chan struct{}
}

// Records reads evaluations.
type Records interface {
	// Record is one evaluation, whole. CodeNotFound.
	Record(ctx context.Context, id string) (Record, error)
	// Records lists evaluations, newest first. next is the cursor of the next
	// page, empty at the end; a page may be shorter than the limit, since it
	// holds about [PageBytes] at most, and at least one record. A cursor that is
	// not ours: CodeValidation.
	Records(ctx context.Context, f RecordFilter) (items []RecordSummary, next string, err error)
}

// PageBytes is about how much of the records one page holds, in bytes as they
// are stored without evidence and payload. Reasons and contexts of many hooks
// make a record of a megabyte, and a thousand of those no page.
const PageBytes = 4 << 20

// RecordFilter picks evaluations; the zero value of a field picks all.
type RecordFilter struct {
	Agent, Session string
	// Agents are patterns (see [MatchName]), of which the agent matches one, and
	// so does every other that the record's session belongs to, whose conversation
	// the reasons may quote, and the one that its hooks read in the place of that
	// (see [Record.ReadElsewhere]), which must belong to somebody; nil picks all.
	Agents       []string
	Event        EventName
	Decision     Outcome
	Hook         string    // name of a hook that took part
	Aside        string    // name of a sink for which it is set aside (see [Outbox])
	Since, Until time.Time // since inclusive, until exclusive
	DryRun       *bool     // nil: dry runs and others
	Limit        int       // 1…1000; 0 = 100
	Cursor       string
}

// Activations holds which agent-level hooks were switched in which thread.
type Activations interface {
	SetActive(ctx context.Context, session, hook string, active bool, by Actor) error
	// Active maps the hooks that were switched in the session to their state.
	Active(ctx context.Context, session string) (map[string]bool, error)
}

// IdempotencyKey is a caller's key, per credential.
type IdempotencyKey struct{ Credential, Key string }

// Request is what a caller sent with a key.
type Request struct {
	Key  IdempotencyKey
	Body [32]byte // SHA-256 of the request's body
}

// Idempotency keeps a request from being counted twice (DESIGN §5). A key is
// kept 24 h from its reservation. What makes a request count once is its
// [Commit]; a reservation keeps two of them from being evaluated at once.
type Idempotency interface {
	// Reserve claims a key, or tells the evaluation that it has already.
	// CodeConflict: another request holds it. CodeIdempotencyMismatch: it
	// belongs to another body.
	Reserve(ctx context.Context, r Request, lease time.Duration) (Reservation, error)
	// Renew lengthens the lease of a reservation. CodeConflict: it is not in
	// force any more.
	Renew(ctx context.Context, held Reservation, lease time.Duration) error
	// Release gives a key back whose evaluation did not come about. A key that
	// was completed stays, and one that somebody else has claimed since.
	Release(ctx context.Context, held Reservation) error
}

// Reservation is a key that its caller holds until Commit, Release, or the end
// of the lease; or, with an Evaluation, one that is answered.
type Reservation struct {
	Evaluation string
	Key        IdempotencyKey
	// Since tells it from an earlier one of the same key, whose lease ended
	// before: whole milliseconds.
	Since time.Time
}

// Sessions shows and erases what is known of one conversation.
type Sessions interface {
	SessionProjects
	// Session: CodeNotFound when nothing is known of it.
	Session(ctx context.Context, id string) (SessionState, error)
	// EraseSession removes counts, activations, the override, records and claims of
	// the session, and its name from the audit; nothing to remove is no error. What is
	// being judged meanwhile does not bring it back: see [Commit.Erasure].
	EraseSession(ctx context.Context, id string) error
	// Erasure is the last erasure of a session, for what is no evaluation.
	Erasure(ctx context.Context, id string) (Erasure, error)
	// SessionAgents lists the agents that a session belongs to: those of its
	// events, and those it was claimed for, [Nobody] among them. None of an unknown
	// one.
	SessionAgents(ctx context.Context, id string) ([]string, error)
	// ClaimSession makes a session belong to an agent, too, unless it belongs to
	// one of which mine says no: then nothing is stored. CodeNotFound. mine is
	// pure, and may be called inside the transaction. seen is the session's last
	// erasure from before anything was done for the claim; 0: it was not looked up.
	// After a later one nothing is stored, and it returns [ErrErased].
	//
	// Claims last until the session is erased, or as long as its records where
	// those have a retention; where its conversation is kept, as long as that.
	ClaimSession(ctx context.Context, id, agent string, seen Erasure, mine func(agent string) bool) error
}

// SessionInUse is how long after its last event, or the last addition to its
// conversation, a session counts as in use: a bound on size deletes nothing of it.
const SessionInUse = time.Hour

// SessionState is the body of GET /v1/sessions/{id}.
type SessionState struct {
	Session     string          `json:"session_id"`
	Agents      []AgentCounts   `json:"agents"`
	ActiveHooks map[string]bool `json:"hooks"` // those that were switched in this session
	Last        []RecordSummary `json:"last"`  // newest first, at most 20
}

// AgentCounts are the counts of one agent, or of one of its sub-agents, in a
// session.
type AgentCounts struct {
	Agent              string `json:"agent"`
	SubAgent           string `json:"sub_agent,omitempty"`
	StopHookActive     bool   `json:"stop_hook_active"`
	StopRejectionCount int    `json:"stop_rejection_count"`
	PromptRejections   int    `json:"prompt_rejection_count"`
}
