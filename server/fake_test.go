package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stopgate/gate"
)

// memory is a gate.Store that forgets: enough of the contract for what HTTP
// shows of it.
type memory struct {
	mu   sync.Mutex
	down error // what every method answers
	// unreserving is what Reserve answers: the store was locked just then.
	unreserving error
	// read runs after a spec was read: another process may come in there.
	read     func()
	counts   map[gate.LedgerKey]gate.Counts
	records  []gate.Record
	specs    []gate.StoredSpec
	versions int
	active   map[string]map[string]bool
	keys     map[gate.IdempotencyKey]*reservation
	renewals int
	released int
	apiKeys  []gate.Key
	audit    []gate.AuditEntry
	owners   map[string][]string // agents by session
	erased   map[string]gate.Erasure

	overrides map[string]gate.Override

	last bool // a session's state has its last decisions
}

type reservation struct {
	body       [32]byte
	evaluation string
	since      time.Time
}

func newMemory() *memory {
	return &memory{counts: map[gate.LedgerKey]gate.Counts{}, active: map[string]map[string]bool{}, keys: map[gate.IdempotencyKey]*reservation{},
		owners: map[string][]string{}, erased: map[string]gate.Erasure{}, overrides: map[string]gate.Override{}}
}

func (m *memory) Counts(_ context.Context, key gate.LedgerKey) (gate.Counts, gate.Erasure, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[key], gate.NeverErased + m.erased[key.Session], m.down
}

func (m *memory) Erasure(_ context.Context, session string) (gate.Erasure, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return gate.NeverErased + m.erased[session], m.down
}

func (m *memory) SessionProjects(context.Context, string, string) (gate.Projects, error) {
	return nil, errors.New("not asked for here")
}

func (m *memory) Commit(_ context.Context, c gate.Commit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return m.down
	}
	if r := m.keys[c.Idempotency.Key]; r != nil && r.body != c.Idempotency.Body {
		return gate.Errorf(gate.CodeIdempotencyMismatch, "key belongs to another body")
	} else if r != nil && r.evaluation != "" {
		return gate.Errorf(gate.CodeConflict, "key was answered")
	}
	next, rec := c.Settle(c.Seen)
	if c.Erasure != 0 && c.Erasure < gate.NeverErased+m.erased[rec.Session] {
		return gate.ErrErased
	}
	if c.Key.Session != "" {
		if now := m.counts[c.Key]; now != c.Seen {
			if c.Stale(now) {
				return gate.ErrStale
			}
			next, rec = c.Settle(now)
		}
		m.counts[c.Key] = next
	}
	rec.Payload = bytes.Clone(rec.Payload) // the request's buffer is not ours
	m.join(rec.Session, rec.Agent)
	m.records = append(m.records, rec)
	if c.Idempotency.Key.Key != "" {
		m.keys[c.Idempotency.Key] = &reservation{body: c.Idempotency.Body, evaluation: rec.EvaluationID}
	}
	return nil
}

// fail has every method answer an error; nil: none any more.
func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = err
}

func (m *memory) find(kind gate.SpecKind, name string) int {
	return slices.IndexFunc(m.specs, func(s gate.StoredSpec) bool { return s.Kind == kind && s.Name == name })
}

func (m *memory) PutSpec(_ context.Context, s gate.StoredSpec, by gate.Actor, ifMatch string) (gate.StoredSpec, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return s, m.down
	}
	i := m.find(s.Kind, s.Name)
	if ifMatch != "" && (i < 0 || ifMatch != "*" && m.specs[i].ETag != ifMatch) {
		return s, gate.Errorf(gate.CodePreconditionFailed, "%s %q has changed", s.Kind, s.Name)
	}
	m.versions++
	m.note(gate.SpecPut, string(s.Kind), s.Name, by)
	s.By = by.Name
	s.ETag = fmt.Sprintf(`"v%d"`, m.versions)
	if i < 0 {
		m.specs = append(m.specs, s)
	} else {
		m.specs[i] = s
	}
	return s, nil
}

func (m *memory) DeleteSpec(_ context.Context, kind gate.SpecKind, name string, by gate.Actor, ifMatch string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.find(kind, name)
	switch {
	case m.down != nil:
		return m.down
	case i < 0:
		return gate.Errorf(gate.CodeNotFound, "%s %q is not known", kind, name)
	case ifMatch != "" && ifMatch != "*" && m.specs[i].ETag != ifMatch:
		return gate.Errorf(gate.CodePreconditionFailed, "%s %q has changed", kind, name)
	}
	m.specs = slices.Delete(m.specs, i, i+1)
	m.note(gate.SpecDeleted, string(kind), name, by)
	return nil
}

func (m *memory) Spec(_ context.Context, kind gate.SpecKind, name string) (gate.StoredSpec, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return gate.StoredSpec{}, m.down
	}
	if i := m.find(kind, name); i >= 0 {
		found := m.specs[i]
		if m.read != nil {
			m.read()
		}
		return found, nil
	}
	return gate.StoredSpec{}, gate.Errorf(gate.CodeNotFound, "%s %q is not known", kind, name)
}

func (m *memory) CurrentSpecs(context.Context) ([]gate.StoredSpec, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.specs), m.down
}

func (m *memory) SpecHistory(context.Context, gate.SpecKind, string) ([]gate.StoredSpec, error) {
	return nil, errors.New("not asked for here")
}

func (m *memory) Record(_ context.Context, id string) (gate.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		if r.EvaluationID == id {
			return r, m.down
		}
	}
	return gate.Record{}, cmp.Or(m.down, error(gate.Errorf(gate.CodeNotFound, "evaluation %q is not known", id)))
}

func (m *memory) Records(_ context.Context, f gate.RecordFilter) ([]gate.RecordSummary, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.Cursor != "" && f.Cursor != "2" {
		return nil, "", gate.Errorf(gate.CodeValidation, "cursor %q is not ours", f.Cursor)
	}
	var items []gate.RecordSummary
	for _, r := range slices.Backward(m.records) {
		if (f.Session == "" || f.Session == r.Session) && (f.Agents == nil || m.ownedBy(gate.Caller{Agents: f.Agents}, r)) && (f.Agent == "" || f.Agent == r.Agent) && (f.Decision == "" || f.Decision == r.Outcome) && (f.Event == "" || f.Event == r.Event) {
			items = append(items, r.Summary())
		}
	}
	if f.Limit > 0 && len(items) > f.Limit {
		return items[:f.Limit], "2", m.down
	}
	return items, "", m.down
}

func (m *memory) ownedBy(who gate.Caller, r gate.Record) bool {
	other := r.ReadElsewhere()
	return who.OwnsAll(append([]string{r.Agent}, m.owners[r.Session]...)) && (other == "" || m.owners[other] != nil && who.OwnsAll(m.owners[other]))
}

func (m *memory) SetActive(_ context.Context, session, hook string, active bool, by gate.Actor) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.active[session] == nil {
		m.active[session] = map[string]bool{}
	}
	m.active[session][hook] = active
	m.note(gate.HookActivated, "activation", hook, by)
	return m.down
}

func (m *memory) Active(_ context.Context, session string) (map[string]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switched := map[string]bool{}
	for k, v := range m.active[session] {
		switched[k] = v
	}
	return switched, m.down
}

func (m *memory) Reserve(ctx context.Context, asked gate.Request, _ time.Duration) (gate.Reservation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, body := asked.Key, asked.Body
	r := m.keys[key]
	switch {
	case m.down != nil || m.unreserving != nil:
		return gate.Reservation{}, cmp.Or(m.down, m.unreserving)
	case ctx.Err() != nil:
		return gate.Reservation{}, ctx.Err()
	case r == nil:
		m.keys[key] = &reservation{body: body, since: time.Now()}
		return gate.Reservation{Key: key, Since: m.keys[key].since}, nil
	case r.body != body:
		return gate.Reservation{}, gate.Errorf(gate.CodeIdempotencyMismatch, "key belongs to another body")
	case r.evaluation == "":
		return gate.Reservation{}, gate.Errorf(gate.CodeConflict, "key is held by another request")
	}
	return gate.Reservation{Key: key, Evaluation: r.evaluation}, nil
}

func (m *memory) Renew(context.Context, gate.Reservation, time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewals++
	return m.down
}

func (m *memory) Release(_ context.Context, held gate.Reservation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.released++
	if r := m.keys[held.Key]; r != nil && r.since.Equal(held.Since) {
		delete(m.keys, held.Key)
	}
	return m.down
}

func (m *memory) Session(_ context.Context, id string) (gate.SessionState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	state := gate.SessionState{Session: id, ActiveHooks: m.active[id]}
	for _, r := range slices.Backward(m.records) {
		if r.Session == id && m.last {
			state.Last = append(state.Last, r.Summary())
		}
	}
	for k, c := range m.counts {
		if k.Session == id {
			state.Agents = append(state.Agents, gate.AgentCounts{Agent: k.Agent, StopHookActive: c.StopHookActive(), StopRejectionCount: c.StopRejections})
		}
	}
	if m.down == nil && state.Agents == nil && state.ActiveHooks == nil {
		return state, gate.Errorf(gate.CodeNotFound, "session %q is not known", id)
	}
	return state, m.down
}

func (m *memory) EraseSession(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.active, id)
	delete(m.owners, id)
	m.erased[id]++
	m.records = slices.DeleteFunc(m.records, func(r gate.Record) bool { return r.Session == id })
	for k := range m.counts {
		if k.Session == id {
			delete(m.counts, k)
		}
	}
	return m.down
}

func (m *memory) Ping(context.Context) error { m.mu.Lock(); defer m.mu.Unlock(); return m.down }
func (m *memory) Close() error               { return nil }

// shelf keeps transcripts in memory, for both the gate and the server.
type shelf struct {
	mu    sync.Mutex
	store *memory // which knows of erasures
	texts map[string]string
	types []string // content types, in order of upload
}

func (f *shelf) put(ctx context.Context, session string, seen gate.Erasure, contentType string, r io.Reader, before string) (int64, int64, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the upload: %w", err)
	}
	if last, err := f.store.Erasure(ctx, session); err != nil || last > seen {
		return 0, 0, cmp.Or(err, error(gate.ErrErased))
	}
	f.types = append(f.types, contentType)
	f.texts[session] = before + string(b)
	return int64(len(f.texts[session])), int64(strings.Count(f.texts[session], "\n")), nil
}

func (f *shelf) Replace(ctx context.Context, session string, seen gate.Erasure, contentType string, r io.Reader) (int64, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.put(ctx, session, seen, contentType, r, "")
}

func (f *shelf) Append(ctx context.Context, session string, seen gate.Erasure, contentType string, r io.Reader) (int64, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.put(ctx, session, seen, contentType, r, f.texts[session])
}

func (f *shelf) AppendFile(ctx context.Context, session string, seen gate.Erasure, p FilePart, r io.Reader) (int64, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if int64(len(f.texts[session])) != p.At {
		return 0, 0, gate.Errorf(gate.CodeConflict, "not %d bytes", p.At)
	}
	return f.put(ctx, session, seen, "text/plain", r, f.texts[session])
}

func (f *shelf) Read(_ context.Context, session string) (io.ReadCloser, int64, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok := f.texts[session]
	if !ok {
		return nil, 0, 0, gate.Errorf(gate.CodeNotFound, "session %q has no transcript", session)
	}
	return io.NopCloser(strings.NewReader(text)), int64(len(text)), int64(strings.Count(text, "\n")), nil
}

func (f *shelf) ReadFor(ctx context.Context, r gate.Record, original bool) (io.ReadCloser, bool, error) {
	text, _, _, err := f.Read(ctx, r.Session)
	if err == nil && original {
		text = io.NopCloser(io.MultiReader(strings.NewReader("original: "), text))
	}
	return text, true, err
}

func (f *shelf) WriteMessages(w io.Writer, text io.Reader) error {
	_, err := io.Copy(w, text)
	return err
}

func (f *shelf) Erase(_ context.Context, session string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.texts, session)
	return nil
}

func (f *shelf) Attach(context.Context, *gate.Event) (gate.Transcript, error) { return nil, nil }

// decode is a small stand-in for package wire.
func decode(body []byte) (gate.Event, error) {
	var b struct {
		Event      string          `json:"hook_event_name"`
		Agent      string          `json:"agent_name"`
		Session    string          `json:"session_id"`
		Turn       int             `json:"current_turn"`
		MaxTurns   int             `json:"max_turns"`
		Final      string          `json:"final_output"`
		Tool       string          `json:"tool_name"`
		Input      json.RawMessage `json:"tool_input"`
		Result     string          `json:"tool_result"`
		Rejections int             `json:"stop_rejection_count"`
	}
	if err := json.Unmarshal(body, &b); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return gate.Event{}, gate.Errorf(gate.CodeInvalidJSON, "body is not JSON at offset %d: %w", syntax.Offset, err)
		}
		return gate.Event{}, &gate.Error{Code: gate.CodeValidation, Message: "body has a wrong type",
			Details: []gate.Finding{{Severity: gate.SeverityError, Path: "hook_event_name", Line: 1, Column: 2, Message: err.Error()}}}
	}
	name := gate.EventName(b.Event)
	if !name.Known() {
		return gate.Event{}, gate.Errorf(gate.CodeValidation, "hook_event_name %q is unknown", b.Event)
	}
	return gate.Event{Name: name, Protocol: gate.Native, Agent: cmp.Or(b.Agent, "default"), Session: b.Session, Turn: b.Turn,
		MaxTurns: b.MaxTurns, FinalOutput: b.Final, ToolName: b.Tool, ToolInput: b.Input, ToolResult: b.Result,
		ToolSucceeded: true, ClaimedRejections: b.Rejections, Payload: body}, nil
}

// readSpec is a small stand-in for package config: JSON, and a YAML of one line
// "name: x". The name "bad" has an error, "warned" a warning.
func readSpec(kind gate.SpecKind, contentType string, body []byte) (*gate.Spec, []gate.Finding, error) {
	var doc struct {
		Name       string `json:"name"`
		Type       string `json:"type"`
		Properties struct {
			Event      gate.EventName              `json:"eventType"`
			Activation gate.Activation             `json:"activationMode"`
			Text       string                      `json:"description"`
			Hooks      map[gate.EventName][]string `json:"hooks"` // names of rules
		} `json:"properties"`
	}
	if contentType != typeJSON {
		name, ok := strings.CutPrefix(strings.TrimSpace(string(body)), "name: ")
		if !ok {
			return nil, nil, gate.Errorf(gate.CodeInvalidJSON, "body is not YAML")
		}
		body, _ = json.Marshal(map[string]any{"name": name, "type": "ExtendedAgent", "properties": map[string]any{}})
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, nil, gate.Errorf(gate.CodeInvalidJSON, "body is not JSON: %w", err)
	}
	if kind == gate.HookSpec && doc.Type != "GlobalHook" {
		return nil, nil, gate.Errorf(gate.CodeInvalidObjectType, `type must be "GlobalHook"`)
	}
	spec := &gate.Spec{Kind: kind, Name: doc.Name, Document: body, Description: doc.Properties.Text}
	star, _ := gate.CompileMatcher("*")
	hook := gate.Hook{Dialect: gate.Azure, Type: gate.RuleHook, Timeout: time.Minute, FailMode: gate.FailAllow, Matcher: star}
	if kind == gate.HookSpec {
		hook.Name, hook.Level, hook.Event, hook.Activation = doc.Name, gate.AgentLevel, doc.Properties.Event, doc.Properties.Activation
		spec.Hooks = []gate.Hook{hook}
	}
	for event, names := range doc.Properties.Hooks {
		for _, name := range names {
			hook.Name, hook.Level, hook.Event = name, gate.CustomLevel, event
			spec.Hooks = append(spec.Hooks, hook)
		}
	}
	switch doc.Name {
	case "bad":
		return nil, []gate.Finding{
			{Severity: gate.SeverityWarning, Path: "spec", Message: "odd"},
			{Severity: gate.SeverityError, Path: "properties.handoffs", Line: 3, Column: 5, Message: "Handoffs cannot be null"},
			{Severity: gate.SeverityError, Path: "properties.hooks", Line: 4, Column: 1, Message: "no"}}, nil
	case "warned":
		return spec, []gate.Finding{{Severity: gate.SeverityWarning, Path: "properties.colour", Line: 2, Column: 7, Message: "unknown field"}}, nil
	}
	return spec, nil, nil
}

func readAny(contentType string, body []byte) (*gate.Spec, []gate.Finding, error) {
	if bytes.Contains(body, []byte("GlobalHook")) {
		return readSpec(gate.HookSpec, contentType, body)
	}
	return readSpec(gate.AgentSpec, contentType, body)
}

// readAttached is a small stand-in for the hooks of other dialects: an object
// with the rules of each event, as {"Stop": ["a"]}. "bad" is an error, "odd" a
// warning.
func readAttached(d gate.Dialect, agent string, body []byte) (*gate.Spec, []gate.Finding) {
	var doc map[gate.EventName][]string
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, []gate.Finding{{Severity: gate.SeverityError, Line: 1, Column: 2, Message: err.Error()}}
	}
	spec := &gate.Spec{Kind: gate.Attached(d), Name: agent, Document: body}
	star, _ := gate.CompileMatcher("*")
	var findings []gate.Finding
	for event, names := range doc {
		switch event {
		case "bad":
			return nil, []gate.Finding{{Severity: gate.SeverityError, Path: "bad", Line: 2, Column: 3, Message: string(d) + " ignores this whole file"}}
		case "odd":
			findings = append(findings, gate.Finding{Severity: gate.SeverityWarning, Path: "odd", Line: 1, Column: 2, Message: "odd"})
		}
		for _, name := range names {
			spec.Hooks = append(spec.Hooks, gate.Hook{Name: name, Level: gate.CustomLevel, Dialect: d, Event: event, Type: gate.RuleHook,
				Timeout: time.Minute, FailMode: gate.FailAllow, Matcher: star})
		}
	}
	return spec, findings
}

// readNetwork is a small stand-in: an object whose "secret" is one.
func readNetwork(agent string, body []byte) (*gate.Spec, []gate.Finding) {
	var doc struct{ Secret string }
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, []gate.Finding{{Severity: gate.SeverityError, Line: 1, Column: 2, Message: err.Error()}}
	}
	if doc.Secret == "[hidden]" {
		return nil, []gate.Finding{{Severity: gate.SeverityError, Path: "secret", Line: 1, Column: 12, Message: "write the secret itself"}}
	}
	return &gate.Spec{Kind: gate.NetworkSpec, Name: agent, Document: body, Network: &gate.Network{Disabled: true}}, nil
}

func hideSecrets(kind gate.SpecKind, document json.RawMessage) json.RawMessage {
	var doc map[string]any
	if kind != gate.NetworkSpec && !bytes.Contains(document, []byte("secret")) {
		return document
	}
	if json.Unmarshal(document, &doc) != nil {
		return json.RawMessage("{}")
	}
	doc["secret"] = "[hidden]"
	hidden, _ := json.Marshal(doc)
	return hidden
}

// world is a server with everything behind it.
type world struct {
	*Server
	store *memory
	shelf *shelf
	log   *bytes.Buffer
	judge func(ctx context.Context, in gate.Input) gate.Verdict // swapped by tests before they ask
}

// dialectOf knows a document that has a member of its dialect's name; one with
// "?" could be anybody's.
func dialectOf(_ string, body []byte) (gate.Dialect, error) {
	var doc map[gate.Dialect]json.RawMessage
	_ = json.Unmarshal(body, &doc)
	unknown := len(doc) == 0 && json.Valid(body)
	for d := range doc {
		if slices.Contains(gate.Dialects, d) {
			return d, nil
		}
		unknown = unknown || d == "?" || gate.EventName(d).Known() || d == "bad" || d == "odd"
	}
	if unknown {
		return "", errors.New("nothing tells whose hooks these are")
	}
	return gate.Azure, nil
}

func newWorld(t testing.TB, change ...func(*Options)) *world {
	t.Helper()
	w := &world{store: newMemory(), log: &bytes.Buffer{}}
	w.shelf = &shelf{store: w.store, texts: map[string]string{}}
	w.judge = func(context.Context, gate.Input) gate.Verdict { return gate.Verdict{Outcome: gate.Allow} }
	policies := &gate.Policies{}
	metrics := NewMetrics(policies)
	var ids atomic.Int64
	g := &gate.Gate{Policies: policies, Store: w.store, Transcripts: w.shelf, OnGateError: gate.FailAllow, Parallel: 4,
		Now: time.Now, NewID: func() string { return fmt.Sprintf("ev-%04d", ids.Add(1)) }, Observe: metrics.Observe,
		Evaluators: map[gate.HookType]gate.Evaluator{gate.RuleHook: gate.EvaluatorFunc(func(ctx context.Context, in gate.Input) gate.Verdict { return w.judge(ctx, in) })}}
	opt := Options{Gate: g, Store: w.store, Transcripts: w.shelf, Metrics: metrics, Decode: decode,
		ReadSpec: readSpec, ReadAny: readAny, DialectOf: dialectOf, ReadAttached: readAttached, ReadNetwork: readNetwork, HideSecrets: hideSecrets, CheckName: checkName, EventName: eventName, Version: "v0", Loopback: true, Hosts: []string{"example.com"},
		Limits: Limits{BodyBytes: 32 << 20, SpecBytes: 4 << 20, TranscriptBytes: 2 << 30, InFlight: 20_000},
		Log:    slog.New(slog.NewTextHandler(&syncWriter{w: w.log}, nil))}
	for _, f := range change {
		f(&opt)
	}
	s, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	w.Server = s
	return w
}

type syncWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *syncWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

// do sends one request; headers are "Name: value". A body without a
// Content-Type header is JSON.
func (w *world) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	if method == "POST" || method == "PUT" {
		r.Header.Set("Content-Type", typeJSON)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if value == "" {
			r.Header.Del(name)
		} else if name == "Host" {
			r.Host = value
		} else {
			r.Header.Set(name, value)
		}
	}
	rec := httptest.NewRecorder()
	w.Handler().ServeHTTP(rec, r)
	return rec
}

func (w *world) must(t testing.TB, status int, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	rec := w.do(method, target, body, headers...)
	if rec.Code != status {
		t.Fatalf("%s %s: status %d, want %d; body %s", method, target, rec.Code, status, rec.Body)
	}
	return rec
}

// fields are the answer's JSON object.
func fields(t testing.TB, rec *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &m); err != nil {
		t.Fatalf("answer %q: %v", rec.Body, err)
	}
	return m
}

// errorOf are code and message of an error answer.
func errorOf(t testing.TB, rec *httptest.ResponseRecorder) (code, message string) {
	t.Helper()
	var b errorBody
	if err := json.Unmarshal(rec.Body.Bytes(), &b); err != nil {
		t.Fatalf("answer %q: %v", rec.Body, err)
	}
	return string(b.Error.Code), b.Error.Message
}

// agent puts an agent with rule hooks; "marker" has one Stop hook.
func (w *world) agent(t testing.TB, name string, event gate.EventName, hooks ...string) {
	t.Helper()
	doc, _ := json.Marshal(map[string]any{"name": name, "type": "ExtendedAgent",
		"properties": map[string]any{"hooks": map[gate.EventName][]string{event: hooks}}})
	w.must(t, 202, "PUT", "/api/v2/extendedAgent/agents/"+name, string(doc))
}

func newRequest(method, target, body string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", typeJSON)
	return r
}

func serve(s *Server, r *http.Request) int {
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, r)
	return rec.Code
}

func checkName(what, name string) error {
	if strings.Contains(name, " ") {
		return fmt.Errorf("%s name %q has a space", what, name)
	}
	return nil
}

func eventName(d gate.Dialect, event gate.EventName) string {
	if d == gate.ClaudeCode && event == gate.Start {
		return "SessionStart"
	}
	return string(event)
}
