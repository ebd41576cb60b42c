package server

import (
	"container/list"
	"sync"
	"time"

	"stopgate/gate"
)

// rooms are what running requests share: places, and memory for their bodies. Nobody
// may have more of a kind than its share, so that no credential can shut out the
// others; and where there is no room, those give way whose bodies stand still, so
// that none can shut out itself, to be let go by on_gate_error.
type rooms struct {
	limit, share amounts

	mu     sync.Mutex
	held   amounts
	payers map[string]*payer // who hold something
}

// roomKind is one kind of what is shared.
type roomKind int

const (
	placeRoom roomKind = iota // evaluations at once
	smallRoom                 // bytes of bodies of at most smallBody
	largeRoom                 // bytes of larger ones, which so never stand in the way of a small one
	roomKinds
)

// amounts are of each kind.
type amounts [roomKinds]int64

const (
	// standstill is how long a body may stand still and keep its room when another's
	// request needs it: longer than a packet that is sent a second time takes.
	standstill = time.Second
	// ownStandstill is the same before one of its own credential: an agent has its
	// host's event let go by on_gate_error if its own bodies keep the room from it.
	ownStandstill = 100 * time.Millisecond
)

// payer is the credential, or the address, that requests are counted to.
type payer struct {
	held   amounts
	guests int
	coming list.List // of *guest, whose bodies are not here yet; which has stood still the longest is first
}

// guest is one request with what it holds. Its methods but leave are its handler's
// alone.
type guest struct {
	rooms *rooms
	name  string // its payer's
	payer *payer
	held  amounts
	place *list.Element // among those that come; nil: its body is here
	moved time.Time
	stop  func() // ends a Read of its body; under mu
	gone  bool   // it had to give way, and holds nothing
}

func newRooms(l Limits) *rooms {
	return &rooms{payers: map[string]*payer{},
		limit: amounts{placeRoom: l.InFlight, smallRoom: max(l.BufferedBytes/2, 1), largeRoom: l.BufferedBytes},
		// Of places and small bodies most may be one credential's: where there is but one, little is lost. Of large ones
		// half, so that the largest of another fits beside.
		share: amounts{placeRoom: l.InFlight - l.InFlight/4, smallRoom: max(l.BufferedBytes*3/8, 1), largeRoom: max(l.BufferedBytes/2, 1)},
	}
}

// enter makes a guest that holds nothing yet. It must leave.
func (r *rooms) enter(name string, stop func()) *guest {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.payers[name]
	if p == nil {
		p = &payer{}
		r.payers[name] = p
	}
	p.guests++
	g := &guest{rooms: r, name: name, payer: p, moved: time.Now(), stop: stop}
	g.place = p.coming.PushBack(g)
	return g
}

// take takes so much more. The error is CodeOverloaded.
func (g *guest) take(kind roomKind, n int64) error {
	r := g.rooms
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case g.gone:
		return errGaveWay()
	case !r.makeRoom(g, kind, n):
		return noRoom(kind, g.payer.held[kind]+n > r.share[kind])
	}
	g.held[kind] += n
	g.payer.held[kind] += n
	r.held[kind] += n
	return nil
}

// progress says that the body goes on.
func (g *guest) progress() {
	g.rooms.mu.Lock()
	defer g.rooms.mu.Unlock()
	if g.moved = time.Now(); g.place != nil {
		g.payer.coming.MoveToBack(g.place)
	}
}

// arrived says that the body is here, and stays until leave. The error is
// CodeOverloaded: it had to give way before.
func (g *guest) arrived() error {
	g.rooms.mu.Lock()
	defer g.rooms.mu.Unlock()
	if g.gone {
		return errGaveWay()
	}
	g.here()
	return nil
}

// leave gives back what the guest holds.
func (g *guest) leave() {
	g.rooms.mu.Lock()
	defer g.rooms.mu.Unlock()
	g.here()
	g.release()
	if g.payer.guests--; g.payer.guests == 0 {
		delete(g.rooms.payers, g.name)
	}
}

// here takes a guest off the list of those that come. Under mu.
func (g *guest) here() {
	if g.place != nil {
		g.payer.coming.Remove(g.place)
		g.place = nil
	}
}

// release is under mu.
func (g *guest) release() {
	for kind, n := range g.held {
		g.payer.held[kind] -= n
		g.rooms.held[kind] -= n
	}
	g.held = amounts{}
}

// makeRoom reports whether there is room, and has others give way for that: of the
// same payer, where its share is taken, else of anyone. Under mu.
func (r *rooms) makeRoom(g *guest, kind roomKind, n int64) bool {
	ownFits := func() bool { return g.payer.held[kind]+n <= r.share[kind] }
	fits := func() bool { return r.held[kind]+n <= r.limit[kind] }
	for !ownFits() && r.displace(g, g.payer, ownStandstill) {
	}
	if !ownFits() {
		return false
	}
	for _, p := range r.payers {
		for !fits() && r.displace(g, p, standstill) {
		}
	}
	return fits()
}

// displace has the guest of a payer give way whose body has stood still the longest,
// and for so long; never g itself. Under mu.
func (r *rooms) displace(g *guest, p *payer, still time.Duration) bool {
	first := p.coming.Front()
	if first == nil {
		return false
	}
	other := first.Value.(*guest)
	if other == g || time.Since(other.moved) < still {
		return false
	}
	other.gone = true
	other.here()
	other.release()
	other.stop()
	return true
}

func errGaveWay() error {
	return gate.Errorf(gate.CodeOverloaded, "request body stood still while its room was needed, try again")
}

func noRoom(kind roomKind, own bool) error {
	what := "server runs as many evaluations as it may"
	switch kind {
	case smallRoom:
		what = "server holds as much of small requests as it may"
	case largeRoom:
		what = "server holds too much of large requests"
	}
	if own {
		what += " for one credential"
	}
	return gate.Errorf(gate.CodeOverloaded, "%s, try again", what)
}
