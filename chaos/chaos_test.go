package chaos

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"stopgate/store/postgres/postgrestest"
	"stopgate/store/sqlite"
)

var (
	rounds = flag.Int("chaos.rounds", 0, "rounds of TestChaos; 0: one for each fault")
	first  = flag.Int("chaos.first", 0, "the round to begin with")
	seed   = flag.Uint64("chaos.seed", 0, "what clients want and what befalls them; 0: another each time")
	clock  = flag.Bool("chaos.clock", false, "clocks jump, too: it takes minutes to build a server for that")
	keep   = flag.String("chaos.keep", "", "directory for what was seen and stored in rounds that fail; empty: a temporary one")
)

// perWorld is how many rounds a setup lives.
const perWorld = 20

// TestChaos loads real servers, has something befall them, and checks what their
// clients saw against what is stored: after each round of the round's own
// sessions, and when a setup ends of all that it ever stored.
func TestChaos(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	sum := summary{faults: map[string]int{}}
	if *rounds == 0 {
		t.Logf("seed %d", s)
		bin := server(t)
		for i, p := range short {
			t.Run(p.of.name, func(t *testing.T) {
				w := startWorld(t, p.of, bin, ownDisk(t))
				w.live(i*perWorld, p.faults, s, &sum)
			})
		}
		t.Log(&sum)
		return
	}
	end := *first + *rounds
	t.Logf("seed %d, rounds %d to %d", s, *first, end-1)
	bin := ""
	if *clock {
		bin = buildWithClock(t)
	} else {
		bin = server(t)
	}
	for r := *first; r < end && !t.Failed(); {
		of := setups[r/perWorld%len(setups)]
		next := min(end, (r/perWorld+1)*perWorld)
		t.Run(fmt.Sprintf("%s from %d", of.name, r), func(t *testing.T) {
			w := startWorld(t, of, bin, ownDisk(t))
			w.clocks = *clock
			w.live(r, make([]string, next-r), s, &sum)
		})
		r = next
		t.Logf("%d rounds: %s", r-*first, &sum)
	}
}

// short is what `go test` plays: one round for each fault.
var short = []struct {
	of     setup
	faults []string
}{
	{setups[0], []string{killed, fullDisk, killedTwice, killed}},
	{setups[2], []string{killed, postgresCrash, killedTwice, nothing}},
}

// live plays rounds of these faults, then looks at all that is stored. An empty
// fault is one that the round's seed chooses.
func (w *world) live(round int, faults []string, seed uint64, sum *summary) {
	ids := map[string]bool{}
	for i, fault := range faults {
		if w.t.Failed() {
			return
		}
		if fault == fullDisk && w.disk == "" {
			w.t.Logf("no disk can be filled here: it takes root or user namespaces")
			fault = nothing
		}
		w.playRound(round+i, fault, seed, ids, sum)
	}
	w.last(ids)
}

// summary is what all rounds came to.
type summary struct {
	ops, acknowledged, records, forced, replayed, lines int
	faults                                              map[string]int
}

func (s *summary) String() string {
	return fmt.Sprintf("%d wishes, %d acknowledged, %d records (%d forced), %d answered again, %d lines; %v",
		s.ops, s.acknowledged, s.records, s.forced, s.replayed, s.lines, s.faults)
}

func (s *summary) add(ops []Op, stored Stored) {
	s.ops += len(ops)
	for i := range ops {
		if ops[i].acknowledged() {
			s.acknowledged++
		}
		s.replayed += max(0, len(ops[i].Answers)-1)
	}
	s.records += len(stored.Records)
	for i := range stored.Records {
		if stored.Records[i].Forced {
			s.forced++
		}
	}
	for _, text := range stored.Transcripts {
		s.lines += len(linesOf(text))
	}
}

// playRound is one round: load, a fault in the middle of it, the end of the
// fault, and the check.
func (w *world) playRound(round int, fault string, seed uint64, ids map[string]bool, sum *summary) {
	w.t.Helper()
	rng := rand.New(rand.NewPCG(seed, uint64(round)<<8))
	names := w.faults()
	chosen := names[rng.IntN(len(names))]
	fault = cmp.Or(fault, chosen)
	mood := max(0, rng.IntN(moods+3)-3) // most of the time fast
	before, after := time.Duration(20+rng.IntN(350))*time.Millisecond, time.Duration(50+rng.IntN(200))*time.Millisecond
	w.model.mood.Store(int32(mood))

	l := &load{w: w, round: round, journal: &Journal{}, until: time.Now().Add(before + after), storeFails: fault == fullDisk || fault == postgresCrash}
	for n := range clients + 1 {
		l.sessions = append(l.sessions, fmt.Sprintf("round%d-%d", round, n))
	}
	worked := make(chan struct{})
	clocks := w.hours()
	go func() { defer close(worked); l.run(seed) }()
	time.Sleep(before)
	w.befall(fault, rng, after)
	<-worked
	clocks = append(clocks, w.hours()...)
	w.model.mood.Store(fast)

	ops := l.journal.Ops()
	stored := w.observe(ops, rng.IntN)
	law := rules
	law.KeysEnd = clocks.apart() >= keysLast
	found := Check(law, ops, stored)
	for _, v := range found {
		w.t.Errorf("round %d (%s, %s, model %s): %s", round, w.setup.name, fault, moodNames[mood], v)
	}
	for _, s := range l.surprise {
		w.t.Errorf("round %d (%s, %s): answered unexpectedly: %s", round, w.setup.name, fault, s)
	}
	if w.t.Failed() {
		w.save(round, ops, stored)
		w.t.Errorf("again: make chaos SEED=%d FIRST=%d ROUNDS=1", seed, round)
	}
	for i := range stored.Records {
		ids[stored.Records[i].EvaluationID] = true
	}
	sum.add(ops, stored)
	sum.faults[fault]++
	if mood != fast {
		sum.faults[moodNames[mood]+" model"]++
	}
}

// What befalls a setup.
const (
	nothing       = "nothing"
	killed        = "kill -9"
	killedTwice   = "kill -9 twice"
	postgresCrash = "PostgreSQL restarts"
	fullDisk      = "full disk"
	clockJump     = "clock jump"
)

func (w *world) faults() []string {
	all := []string{nothing, killed, killed, killed, killedTwice}
	if w.setup.postgres {
		all = append(all, postgresCrash)
	}
	if w.disk != "" {
		all = append(all, fullDisk)
	}
	if w.clocks {
		all = append(all, clockJump)
	}
	return all
}

// befall has a fault happen, and ends it.
func (w *world) befall(fault string, rng *rand.Rand, lasts time.Duration) {
	r := w.replicas[rng.IntN(len(w.replicas))]
	switch fault {
	case killed, killedTwice:
		r.kill()
		time.Sleep(lasts / 4)
		w.start(r)
		if fault == killedTwice {
			time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
			r.kill()
			w.start(r)
		}
	case postgresCrash:
		postgrestest.Restart(w.t)
		w.awaitReady()
	case fullDisk:
		end := w.fill()
		time.Sleep(lasts)
		end()
		w.awaitReady()
	case clockJump:
		// A day on: keys end, leases too; or back to before what is stored.
		w.setClock(r, []int{-48, -1, 1, 25}[rng.IntN(4)])
		time.Sleep(lasts)
	}
}

// keysLast is for how many hours an Idempotency-Key is kept (DESIGN §5).
const keysLast = 24

// offsets are by how many hours clocks are off.
type offsets []int

// hours are the offsets of the replicas' clocks.
func (w *world) hours() offsets {
	var all offsets
	for _, r := range w.replicas {
		all = append(all, r.hours)
	}
	return all
}

// apart is how far the first of them is from the last, in hours.
func (o offsets) apart() int { return slices.Max(o) - slices.Min(o) }

func (w *world) setClock(r *replica, hours int) {
	r.hours = hours
	path := w.clockFile(r)
	err := os.WriteFile(path+".new", []byte(strconv.Itoa(hours*3600)), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// awaitReady returns when every replica's store works.
func (w *world) awaitReady() {
	w.t.Helper()
	for _, r := range w.replicas {
		for until := time.Now().Add(startLimit); ; time.Sleep(20 * time.Millisecond) {
			status, _, body := w.call(r, http.MethodGet, "/readyz", nil)
			if status == http.StatusOK {
				break
			}
			if time.Now().After(until) {
				w.t.Fatalf("%s is not ready again: %d %s", r.name, status, body)
			}
		}
	}
}

// last ends a setup in peace and starts it once more: what every round has found
// stored is there, and nothing else.
func (w *world) last(ids map[string]bool) {
	w.t.Helper()
	for _, r := range w.replicas {
		w.stop(r)
	}
	for _, r := range w.replicas {
		w.start(r)
	}
	have := map[string]bool{}
	for _, e := range w.list(w.replicas[0], "") {
		have[e.EvaluationID] = true
	}
	w.same("the list of all evaluations", ids, have)
	if w.setup.postgres {
		return
	}
	w.stop(w.replicas[0])
	w.same("the SQLite file", ids, w.inFile())
}

func (w *world) same(what string, want, have map[string]bool) {
	w.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if !have[id] {
			w.t.Errorf("%s: %s was stored and is lost", what, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(have)) {
		if !want[id] {
			w.t.Errorf("%s: %s has come after its round", what, id)
		}
	}
}

// inFile are the evaluations in the data directory, read past the service; each
// key that is answered leads to one of them.
func (w *world) inFile() map[string]bool {
	w.t.Helper()
	s, err := sqlite.Open(w.t.Context(), sqlite.Options{Dir: w.replicas[0].data, Now: time.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	dump, done, err := s.Dump(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	defer done()
	have := map[string]bool{}
	for e, err := range dump.Evaluations {
		if err != nil {
			w.t.Fatal(err)
		}
		have[e.ID] = true
	}
	for k, err := range dump.Keys {
		if err != nil {
			w.t.Fatal(err)
		}
		if id := string(k.Evaluation); id != "" && !have[id] {
			w.t.Errorf("a key was answered by %s, which is not stored", id)
		}
	}
	return have
}

// save keeps what a round has seen and stored, for [Check] to be run on again.
func (w *world) save(round int, ops []Op, stored Stored) {
	w.t.Helper()
	dir := *keep
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "stopgate-chaos-"); err != nil {
			w.t.Fatal(err)
		}
	}
	for name, v := range map[string]any{"journal": ops, "records": stored.Records, "transcripts": stored.Transcripts, "audit": stored.Audit} {
		b, _ := json.MarshalIndent(v, "", " ")
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("round%d-%s.json", round, name)), b, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, r := range w.replicas {
		log, _ := os.ReadFile(r.log)
		_ = os.WriteFile(filepath.Join(dir, fmt.Sprintf("round%d-%s.log", round, r.name)), log, 0o600)
	}
	w.t.Logf("round %d is kept in %s", round, dir)
}
