package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stopgate/gate"
)

const (
	clients = 4
	mostOps = 30 // of one client in one round
)

// load is one round's clients at work.
type load struct {
	w        *world
	round    int
	journal  *Journal
	sessions []string // one of each client's own, one of all
	// storeFails: the round has a fault of the store itself, so that a block may
	// leave although it could not be stored (DESIGN §2), which a host is not told.
	storeFails bool
	until      time.Time
	over       atomic.Bool // nobody will answer any more

	mu       sync.Mutex
	surprise []string // answers that nothing explains
}

// run has every client work until its time is over, and returns when none waits
// for anything any more.
func (l *load) run(seed uint64) {
	var working sync.WaitGroup
	for n := range clients {
		c := &worker{load: l, n: n, rng: rand.New(rand.NewPCG(seed, uint64(l.round)<<8|uint64(n+1)))}
		working.Go(c.work)
	}
	working.Wait()
}

func (l *load) surprised(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.surprise = append(l.surprise, fmt.Sprintf(format, args...))
}

// worker is one client. What it wants is decided by its seed alone.
type worker struct {
	*load
	n     int
	rng   *rand.Rand
	lines int
}

func (c *worker) work() {
	for range mostOps {
		// Drawn in any case, so that the n-th wish is the same whatever time it is.
		want, session := c.rng.IntN(100), c.sessions[c.n]
		if c.rng.IntN(3) == 0 {
			session = c.sessions[clients]
		}
		pause := time.Duration(c.rng.IntN(8)) * time.Millisecond
		if time.Now().After(c.until) || c.over.Load() {
			return
		}
		switch {
		case want < 60:
			c.evaluate(session)
		case want < 72:
			c.stopAsHost(session)
		case want < 88:
			c.append(session)
		case want < 95:
			c.turn(c.sessions[c.n])
		case c.n == 0:
			c.putSpec()
		}
		time.Sleep(pause)
	}
}

func (c *worker) verdict() string {
	if c.rng.IntN(4) == 0 {
		return "verdict accept"
	}
	return "verdict reject"
}

var agents = []string{"plain", "scripted", "judged", "judged", "judged", "lenient", "lenient"}

// evaluate sends one event natively, under a key or without. One under a key is
// sent until it is answered; now and then its first answer is not waited for, and
// now and then it is sent once more for good measure.
func (c *worker) evaluate(session string) {
	op := Op{Kind: Evaluate, Session: session, Agent: agents[c.rng.IntN(len(agents))], Event: gate.Stop}
	body := map[string]any{"session_id": session, "agent_name": op.Agent, "final_output": c.verdict(), "current_turn": 1}
	switch n := c.rng.IntN(20); {
	case n == 0:
		op.Event, body["prompt"] = gate.UserPromptSubmit, "something new"
	case n < 4:
		op.Event, body["tool_name"], body["tool_input"] = gate.PreToolUse, "Bash", map[string]any{"command": "true"}
	case n == 4:
		op.Event, op.SubAgent, body["agent_id"] = gate.SubagentStop, "helper", "helper"
	}
	body["hook_event_name"] = op.Event
	keyed, again, hasty := c.rng.IntN(2) == 0, c.rng.IntN(4) == 0, time.Duration(c.rng.IntN(40))*time.Millisecond
	if hasty > 10*time.Millisecond {
		hasty = 0
	}
	if keyed {
		op.Key = fmt.Sprintf("key-%d-%d-%d", c.round, c.n, c.rng.Uint32())
	}
	o := c.journal.Send(op)
	body["op"] = o.ID
	sent, _ := json.Marshal(body)
	header := http.Header{"Content-Type": {"application/json"}}
	if !keyed {
		c.decided(o, c.send(http.MethodPost, "/v1/evaluate", header, sent, 0))
		return
	}
	header.Set("Idempotency-Key", op.Key)
	for try := 0; try < 200 && !c.over.Load() && !c.decided(o, c.send(http.MethodPost, "/v1/evaluate", header, sent, hasty)); try++ {
		hasty = 0
		time.Sleep(25 * time.Millisecond)
	}
	if again {
		c.decided(o, c.send(http.MethodPost, "/v1/evaluate", header, sent, 0))
	}
}

// decided writes an answer down and reports whether it acknowledges.
func (c *worker) decided(op *Op, a answer) bool {
	switch {
	case a.status == http.StatusOK:
	case a.status == 0, a.status >= 500, a.status == http.StatusConflict && op.Key != "":
		return false
	default:
		c.surprised("%s (%s of %s): %d %s", op.ID, op.Event, op.Agent, a.status, a.body)
		return false
	}
	var d gate.Decision
	if err := json.Unmarshal(a.body, &d); err != nil {
		c.surprised("%s: %v in %s", op.ID, err, a.body)
		return false
	}
	if d.GateError != nil && a.header.Get("Idempotency-Replayed") == "" {
		return false // not stored, though it may be
	}
	c.journal.Answer(op, func(op *Op) { op.Answers = append(op.Answers, a.body) })
	return true
}

// stopAsHost sends a Stop as Claude Code does.
func (c *worker) stopAsHost(session string) {
	op := Op{Kind: Evaluate, Session: session, Agent: []string{"scripted", "judged"}[c.rng.IntN(2)], Event: gate.Stop}
	said := c.verdict()
	o := c.journal.Send(op)
	body, _ := json.Marshal(map[string]any{"session_id": session, "hook_event_name": "Stop", "stop_hook_active": false,
		"last_assistant_message": said, "op": o.ID})
	a := c.send(http.MethodPost, "/v1/hooks/claude-code?agent="+op.Agent, http.Header{"Content-Type": {"application/json"}}, body, 0)
	if a.status != http.StatusOK {
		if a.status != 0 {
			c.surprised("%s as a host: %d %s", o.ID, a.status, a.body)
		}
		return
	}
	var told struct{ Decision, Reason string }
	if err := json.Unmarshal(a.body, &told); err != nil && len(a.body) > 0 { // nothing: no objection
		c.surprised("%s as a host: %v in %s", o.ID, err, a.body)
		return
	}
	outcome := gate.Allow
	if told.Decision == "block" {
		if c.storeFails || strings.HasPrefix(told.Reason, "The gate itself failed") {
			return
		}
		outcome = gate.Block
	}
	c.journal.Answer(o, func(op *Op) { op.Outcome, op.Reason = outcome, told.Reason })
}

// append sends numbered lines, and goes on with the next whatever the answer is.
func (c *worker) append(session string) {
	var lines []string
	for range 1 + c.rng.IntN(4) {
		c.lines++
		lines = append(lines, fmt.Sprintf("client %d line %d %s", c.n, c.lines, strings.Repeat("x", c.rng.IntN(200))))
	}
	op := c.journal.Send(Op{Kind: Append, Session: session, Lines: lines})
	a := c.send(http.MethodPost, "/v1/sessions/"+session+"/transcript", http.Header{"Content-Type": {"text/plain"}},
		[]byte(strings.Join(lines, "\n")+"\n"), 0)
	var size struct{ Lines int }
	switch {
	case a.status == http.StatusOK && json.Unmarshal(a.body, &size) == nil:
		c.journal.Answer(op, func(op *Op) { op.Total = size.Lines })
	case a.status != 0 && a.status < 500:
		c.surprised("%s: %d %s", op.ID, a.status, a.body)
	}
}

// turn switches the hook that is on demand, in a session of the client's own.
func (c *worker) turn(session string) {
	kind := []Kind{Activate, Deactivate}[c.rng.IntN(2)]
	op := c.journal.Send(Op{Kind: kind, Session: session, Name: rules.OnDemand})
	a := c.send(http.MethodPost, "/api/v1/threads/"+session+"/hooks/"+rules.OnDemand+"/"+string(kind),
		http.Header{"Content-Type": {"application/json"}}, []byte("{}"), 0)
	c.accepted(op, a, http.StatusOK)
}

// putSpec changes the spec of an agent of this round.
func (c *worker) putSpec() {
	name := changing(c.round)
	op := c.journal.Send(Op{Kind: PutSpec, Name: name})
	a := c.send(http.MethodPut, "/api/v2/extendedAgent/agents/"+name, http.Header{"Content-Type": {"application/json"}},
		fmt.Appendf(nil, `{"name":%q,"type":"ExtendedAgent","properties":{"instructions":"As %s left it"}}`, name, op.ID), 0)
	c.accepted(op, a, http.StatusAccepted)
}

// changing is the agent whose spec a round changes.
func changing(round int) string { return fmt.Sprint("changing-", round) }

func (c *worker) accepted(op *Op, a answer, want int) {
	switch {
	case a.status == want:
		c.journal.Answer(op, func(op *Op) { op.ETag = a.header.Get("ETag") })
	case a.status != 0 && a.status < 500:
		c.surprised("%s %s: %d %s", op.Kind, op.ID, a.status, a.body)
	}
}

// answer is what came back; status 0: nothing.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send asks any of the replicas. hasty: how long the client waits; 0: long.
func (c *worker) send(method, path string, header http.Header, body []byte, hasty time.Duration) answer {
	ctx := c.w.t.Context()
	if hasty > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, hasty)
		defer cancel()
	}
	r := c.w.replicas[c.rng.IntN(len(c.w.replicas))]
	req, err := http.NewRequestWithContext(ctx, method, r.at()+path, bytes.NewReader(body))
	if err != nil {
		c.surprised("%v", err)
		return answer{}
	}
	req.Header = header
	// A transport that sends again by itself would be a second client, of which
	// the journal knows nothing.
	req.GetBody = nil
	resp, err := client.Do(req)
	if err != nil {
		return answer{}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}
	}
	return answer{resp.StatusCode, resp.Header, slices.Clip(b)}
}
