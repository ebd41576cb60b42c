package server

import (
	"context"
	"crypto/x509"
	"net/netip"
	"slices"
	"time"

	"stopgate/gate"
)

// What the fake store keeps of keys, changes and whose sessions are.

func (m *memory) note(action gate.Action, kind, name string, by gate.Actor) {
	m.audit = append(m.audit, gate.AuditEntry{Time: time.Now(), Action: action, Kind: kind, Name: name,
		By: by.Name, Credential: by.Credential, From: by.Address})
}

func (m *memory) join(session, agent string) {
	if session != "" && !slices.Contains(m.owners[session], agent) {
		m.owners[session] = append(m.owners[session], agent)
	}
}

func (m *memory) SessionAgents(_ context.Context, id string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.owners[id]), m.down
}

func (m *memory) ClaimSession(_ context.Context, id, agent string, seen gate.Erasure, mine func(string) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return m.down
	}
	if seen != 0 && seen < gate.NeverErased+m.erased[id] {
		return gate.ErrErased
	}
	for _, a := range m.owners[id] {
		if !mine(a) {
			return gate.Errorf(gate.CodeNotFound, "session %q is not known", id)
		}
	}
	m.join(id, agent)
	return nil
}

func (m *memory) AddKey(_ context.Context, k gate.Key, by gate.Actor) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.ContainsFunc(m.apiKeys, func(o gate.Key) bool { return o.Revoked.IsZero() && o.Name == k.Name }) {
		return gate.Errorf(gate.CodeConflict, "key %q exists already", k.Name)
	}
	k.Created, k.CreatedBy = time.Now(), by.Name
	m.apiKeys = append(m.apiKeys, k)
	m.note(gate.KeyCreated, "key", k.Name, by)
	return m.down
}

func (m *memory) Key(_ context.Context, id string) (gate.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.apiKeys {
		if k.ID == id {
			return k, m.down
		}
	}
	return gate.Key{}, gate.Errorf(gate.CodeNotFound, "key %q is not known", id)
}

func (m *memory) Keys(context.Context) ([]gate.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.apiKeys), m.down
}

func (m *memory) RevokeKey(_ context.Context, idOrName string, by gate.Actor) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, k := range m.apiKeys {
		if k.Revoked.IsZero() && (k.ID == idOrName || k.Name == idOrName) {
			m.apiKeys[i].Revoked = time.Now()
			m.note(gate.KeyRevoked, "key", k.Name, by)
			return m.down
		}
	}
	return gate.Errorf(gate.CodeNotFound, "key %q is not known", idOrName)
}

func (m *memory) KeyUsed(context.Context, string, time.Time) error { return nil }

func (m *memory) Audit(_ context.Context, f gate.AuditFilter) ([]gate.AuditEntry, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.Cursor != "" {
		return nil, "", gate.Errorf(gate.CodeValidation, "cursor %q is not ours", f.Cursor)
	}
	var list []gate.AuditEntry
	for _, e := range slices.Backward(m.audit) {
		if (f.Action == "" || f.Action == e.Action) && (f.Kind == "" || f.Kind == e.Kind) && (f.Name == "" || f.Name == e.Name) && (f.By == "" || f.By == e.By) {
			list = append(list, e)
		}
	}
	return list, "", m.down
}

// tokens is a login that knows its callers by their tokens. What an error is
// known for it answers.
type tokens map[string]any

func (l tokens) Caller(_ context.Context, bearer string, certificate *x509.Certificate, _ netip.Addr) (gate.Caller, error) {
	if bearer == "" && certificate != nil {
		bearer = certificate.Subject.CommonName
	}
	switch known := l[bearer].(type) {
	case gate.Caller:
		return known, nil
	case error:
		return gate.Caller{}, known
	}
	return gate.Caller{}, gate.Errorf(gate.CodeUnauthenticated, "key is not known")
}

func (m *memory) SetOverride(_ context.Context, o gate.Override, by gate.Actor) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.By = by.Name
	m.overrides[o.Session] = o
	m.note(gate.OverrideSet, "override", "", by)
	return m.down
}

func (m *memory) Override(_ context.Context, session string) (gate.Override, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o, ok := m.overrides[session]; ok || m.down != nil {
		return o, m.down
	}
	return gate.Override{}, gate.NoOverride(session)
}

func (m *memory) RemoveOverride(_ context.Context, session string, by gate.Actor) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.overrides[session]; !ok && m.down == nil {
		return gate.NoOverride(session)
	}
	delete(m.overrides, session)
	m.note(gate.OverrideRemoved, "override", "", by)
	return m.down
}
