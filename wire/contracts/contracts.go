// Package contracts keeps, as data, what each agent host was seen to do with
// each answer, and on which version: contracts change with versions, so every
// line here is a fact about one. `stopgate doctor` and the record say so when a
// host's version lies outside what was tried.
//
// A test of package wire holds the encoders to these answers.
package contracts

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"stopgate/gate"
)

// Contract is what one host does.
type Contract struct {
	Host    string // the protocol's name
	Program string // what people call it
	// From and To bound the versions that were tried, both included; empty:
	// none was, the contract is what the host's documentation says.
	From, To string
	// Run says how it was tried, or what is documented.
	Run string
	// Cap is how many blocks in a row of one stop the host honours before it
	// overrides the next; 0: without end, so that the gate's cap is the only one.
	Cap int
	// CapRestarts: a tool call between two blocks begins the count anew.
	CapRestarts bool
	// TimeoutUnit is the unit of a command hook's timeout, of any that is as long
	// as a gate needs. An http hook's is seconds on every host that has one.
	TimeoutUnit time.Duration
	Events      []Event
}

// Event is one event of a host, as its configuration names it.
type Event struct {
	Host string
	Name gate.EventName // empty: the gate has no hooks for it
	// HTTP and Command: the host calls a hook of that kind for this event.
	HTTP, Command bool
	// Untried: documented, or concluded from another event, not measured.
	Untried bool
	Answers Answers
}

// Answers are the bodies that work, with REASON and CONTEXT for the two texts;
// empty: nothing is said.
type Answers struct {
	NoObjection      string
	Context          string
	Block            string
	BlockWithContext string
	Ask              string
}

// All lists every host's contract.
func All() []Contract {
	return []Contract{claudeCode(), codex(), geminiCLI(), qwenCode(), copilot(), antigravity(), axCode()}
}

// For is the contract of a host, and whether the version lies in the range that
// was tried: ok is false for a host that is not known.
func For(host, version string) (c Contract, fit Fit, ok bool) {
	all := All()
	i := slices.IndexFunc(all, func(c Contract) bool { return c.Host == host })
	if i < 0 {
		return Contract{}, "", false
	}
	return all[i], all[i].fit(version), true
}

// Fit says how a host's version lies to the versions that were tried.
type Fit string

const (
	Tried   Fit = "tried"
	Older   Fit = "older"   // than the oldest that was tried
	Newer   Fit = "newer"   // than the newest that was tried
	Unknown Fit = "unknown" // the version could not be read
	Untried Fit = "untried" // no version was tried, the contract is documentation
)

func (c Contract) fit(version string) Fit {
	if c.From == "" {
		return Untried
	}
	v, ok := numbers(version)
	if !ok {
		return Unknown
	}
	from, _ := numbers(c.From)
	to, _ := numbers(c.To)
	switch {
	case slices.Compare(v, from) < 0:
		return Older
	case slices.Compare(v, to) > 0:
		return Newer
	}
	return Tried
}

var versionNumber = regexp.MustCompile(`\d{1,9}(?:\.\d{1,9}){1,3}`)

// numbers reads the first version number in a host's own words, as in
// "2.1.328 (Claude Code)" or "codex-cli 0.169.0".
func numbers(text string) ([]int, bool) {
	found := versionNumber.FindString(text)
	if found == "" {
		return nil, false
	}
	var v []int
	for _, part := range strings.Split(found, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, false
		}
		v = append(v, n)
	}
	for len(v) > 1 && v[len(v)-1] == 0 { // 1.0 is 1.0.0
		v = v[:len(v)-1]
	}
	return v, true
}

// Find is the event that the host's configuration calls so.
func (c Contract) Find(hostEvent string) (Event, bool) {
	i := slices.IndexFunc(c.Events, func(e Event) bool { return e.Host == hostEvent })
	if i < 0 {
		return Event{}, false
	}
	return c.Events[i], true
}

// Says is a sentence for a person about a version outside what was tried, as
// `stopgate doctor` and the record have it; empty for one inside.
func (c Contract) Says(version string) string {
	tried := c.From
	if c.To != c.From {
		tried += " to " + c.To
	}
	switch c.fit(version) {
	case Tried:
		return ""
	case Untried:
		return c.Program + " was not tried: the answers are what its documentation says."
	case Unknown:
		return "The version of " + c.Program + " is unknown; the answers were tried on " + tried + "."
	}
	return c.Program + " " + cmp.Or(versionNumber.FindString(version), version) + " was not tried; the answers were tried on " + tried + "."
}

// Remarks is [Contract.Says] for whichever host it is; of one that has no
// contract nothing is said. It is for the record of each event, so the contracts
// are made once.
func Remarks() func(host, version string) string {
	all := All()
	return func(host, version string) string {
		for i := range all {
			if all[i].Host == host {
				return all[i].Says(version)
			}
		}
		return ""
	}
}
