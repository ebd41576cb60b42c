package gate

import (
	"context"
	"time"
)

// Outbox is a [Store] that keeps the names of sinks, and for each of them which
// records it does not have yet. A record joins it in the transaction that
// commits it, whatever process that is; it leaves it when the sink has said that
// it has it. So every record reaches every sink at least once, whoever is killed
// when. Where there are no sinks nothing is kept.
//
// What a retention deletes before a sink had it is lost to that sink, and
// counted. What is erased with its session leaves the outbox, and is not.
type Outbox interface {
	// KeepSinks says that these sinks are in use. A new one gets what is
	// committed from then on. One that nobody has said this of for [SinkLife] is
	// forgotten, with all that it lacks: forgotten are those.
	KeepSinks(ctx context.Context, names []string) (forgotten []SinkState, err error)
	// Undelivered hands the records that a sink lacks to see, in the order of
	// their commits where one was committed before the other was begun, until
	// there are no more, see says no, or it has handed about [PageBytes] as they
	// are stored. Of several callers of one sink only one is given any: who takes
	// is that caller until it takes no more for the length of the lease.
	Undelivered(ctx context.Context, sink string, who Lease, see func(Delivery) (more bool)) error
	// SetAside says that the sink refuses that record itself: it lacks it still, but
	// Undelivered does not hand it any more.
	SetAside(ctx context.Context, sink string, place int64) error
	// SendAgain ends that for all of a sink, and answers for how many.
	SendAgain(ctx context.Context, sink string) (int64, error)
	// Delivered says that the sink has those.
	Delivered(ctx context.Context, sink string, places []int64) error
	// ReleaseSink ends a lease early.
	ReleaseSink(ctx context.Context, sink, holder string) error
	// SinkStates are those of all sinks, by name.
	SinkStates(ctx context.Context) ([]SinkState, error)
}

// SinkLife is how long a sink that nobody has configured any more is kept: long
// enough that a replica with an older server file takes nothing from the others.
const SinkLife = 24 * time.Hour

// Lease is who takes a sink's records, and for how long.
type Lease struct {
	Holder string // tells it from every other
	Length time.Duration
}

// Delivery is a record on its way to a sink.
type Delivery struct {
	Place  int64 // in the outbox; no other ever has it
	Record Record
}

// SinkState is how far a sink is.
type SinkState struct {
	Name    string
	Pending int64     // records that it lacks, but for those set aside
	Aside   int64     // records that are set aside
	Oldest  time.Time // of the first that is pending; zero: none is
	Dropped int64     // records that were deleted by their age or size before it had them
}
