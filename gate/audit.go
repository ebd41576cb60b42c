package gate

import (
	"context"
	"time"
)

// Actor is who changes something, and from where.
type Actor struct {
	Name       string // of the credential; see [Caller]
	Credential string
	Address    string // of the other end of the connection; empty: on the data directory itself
}

// Action is what was done.
type Action string

const (
	SpecPut         Action = "spec.put"
	SpecDeleted     Action = "spec.delete"
	KeyCreated      Action = "key.create"
	KeyRevoked      Action = "key.revoke"
	HookActivated   Action = "hook.activate" // in one session
	HookDeactivated Action = "hook.deactivate"
	OverrideSet     Action = "override.set"
	OverrideRemoved Action = "override.remove"
)

// Actions lists every action.
var Actions = []Action{SpecPut, SpecDeleted, KeyCreated, KeyRevoked, HookActivated, HookDeactivated, OverrideSet, OverrideRemoved}

// AuditEntry is one change. Stores write it in the change's own transaction, so
// that neither is ever without the other.
type AuditEntry struct {
	Time       time.Time `json:"time"`
	Action     Action    `json:"action"`
	Kind       string    `json:"kind"` // a [SpecKind]; "key"; "activation"; "override"
	Name       string    `json:"name"` // of the spec, the key, the hook; an override has none
	Session    string    `json:"session_id,omitempty"`
	KeyID      string    `json:"key_id,omitempty"`
	Before     int       `json:"version_before,omitempty"` // of a spec; 0: there was none
	After      int       `json:"version_after,omitempty"`
	Reason     string    `json:"reason,omitempty"` // of an override
	Until      time.Time `json:"until,omitzero"`   // of an override; whole milliseconds
	By         string    `json:"by"`
	Credential string    `json:"credential,omitempty"`
	From       string    `json:"from,omitempty"` // an address
}

// Audit tells what was changed.
type Audit interface {
	// Audit lists changes, newest first. next is the cursor of the next page,
	// empty at the end. A cursor that is not ours: CodeValidation.
	Audit(ctx context.Context, f AuditFilter) (entries []AuditEntry, next string, err error)
}

// AuditFilter picks changes; the zero value of a field picks all.
type AuditFilter struct {
	Action       Action
	Kind, Name   string
	By           string
	Since, Until time.Time // since inclusive, until exclusive
	Limit        int       // 1…1000; 0 = 100
	Cursor       string
}
