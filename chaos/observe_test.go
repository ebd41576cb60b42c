package chaos

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"stopgate/gate"
)

// observe reads what is stored of a journal's sessions, from any of the replicas,
// none of which may be down.
func (w *world) observe(ops []Op, pick func(n int) int) Stored {
	w.t.Helper()
	s := Stored{Counts: map[gate.LedgerKey]Counts{}, Active: map[string]map[string]bool{}, Transcripts: map[string]string{}, Specs: map[string]Spec{}}
	var sessions, names []string
	for _, op := range ops {
		switch {
		case op.Kind == PutSpec && !slices.Contains(names, op.Name):
			names = append(names, op.Name)
		case op.Session != "" && !slices.Contains(sessions, op.Session):
			sessions = append(sessions, op.Session)
		}
	}
	for _, session := range sessions {
		from := w.replicas[pick(len(w.replicas))]
		w.observeSession(from, session, &s)
		for _, e := range w.list(from, "session="+url.QueryEscape(session)) {
			var r gate.Record
			w.get(from, "/v1/evaluations/"+e.EvaluationID, &r)
			s.Records = append(s.Records, r)
		}
	}
	for _, name := range names {
		from := w.replicas[pick(len(w.replicas))]
		if status, header, body := w.call(from, http.MethodGet, "/api/v2/extendedAgent/agents/"+name, nil); status == http.StatusOK {
			s.Specs[name] = Spec{ETag: header.Get("ETag"), Document: body}
		} else if status != http.StatusNotFound {
			w.t.Fatalf("spec %s: %d %s", name, status, body)
		}
	}
	names = append(names, rules.OnDemand)
	for _, name := range names {
		s.Audit = append(s.Audit, w.audit(w.replicas[pick(len(w.replicas))], name)...)
	}
	return s
}

func (w *world) observeSession(from *replica, session string, s *Stored) {
	var state struct {
		Agents []gate.AgentCounts
		Hooks  map[string]bool
	}
	if !w.get(from, "/v1/sessions/"+session, &state) {
		return
	}
	s.Active[session] = state.Hooks
	for _, a := range state.Agents {
		s.Counts[gate.LedgerKey{Agent: a.Agent, Session: session, SubAgent: a.SubAgent}] = Counts{a.StopRejectionCount, a.PromptRejections}
	}
	status, _, text := w.call(from, http.MethodGet, "/v1/sessions/"+session+"/transcript", nil)
	switch status {
	case http.StatusOK:
		s.Transcripts[session] = text
	case http.StatusNotFound:
	default:
		w.t.Fatalf("transcript of %s: %d %s", session, status, text)
	}
}

// get reads a document, and reports whether there is one.
func (w *world) get(from *replica, path string, into any) bool {
	w.t.Helper()
	status, _, body := w.call(from, http.MethodGet, path, nil)
	if status == http.StatusNotFound {
		return false
	}
	if status != http.StatusOK {
		w.t.Fatalf("%s of %s: %d %s", path, from.name, status, body)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		w.t.Fatalf("%s of %s: %v", path, from.name, err)
	}
	return true
}

// list is every evaluation that a query picks.
func (w *world) list(from *replica, query string) (all []gate.RecordSummary) {
	w.t.Helper()
	cursor := ""
	for {
		var page struct {
			Value []gate.RecordSummary
			Next  string
		}
		w.get(from, "/v1/evaluations?limit=1000&"+query+cursor, &page)
		all = append(all, page.Value...)
		if page.Next == "" {
			return all
		}
		cursor = "&cursor=" + url.QueryEscape(page.Next)
	}
}

func (w *world) audit(from *replica, name string) (all []gate.AuditEntry) {
	w.t.Helper()
	cursor := ""
	for {
		var page struct {
			Value []gate.AuditEntry
			Next  string
		}
		w.get(from, "/v1/audit?limit=1000&name="+url.QueryEscape(name)+cursor, &page)
		all = append(all, page.Value...)
		if page.Next == "" {
			return all
		}
		cursor = "&cursor=" + url.QueryEscape(page.Next)
	}
}
