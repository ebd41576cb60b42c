package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// threadHook is an agent-level hook as one thread has it: exactly the names of
// spec/azure.md 12.
type threadHook struct {
	Name           string          `json:"name"`
	EventType      gate.EventName  `json:"eventType"`
	ActivationMode gate.Activation `json:"activationMode"`
	Description    string          `json:"description"`
	IsActive       bool            `json:"isActive"`
	IsSystemHook   bool            `json:"isSystemHook"` // we have none
	CanModify      bool            `json:"canModify"`    // every hook can be switched
}

func threadHookOf(spec *gate.Spec, switched map[string]bool) threadHook {
	h := spec.Hooks[0]
	mode := cmp.Or(h.Activation, gate.Always)
	active, ok := switched[spec.Name]
	if !ok {
		active = mode == gate.Always
	}
	return threadHook{Name: spec.Name, EventType: h.Event, ActivationMode: mode, Description: spec.Description,
		IsActive: active, CanModify: true}
}

func (s *Server) listThreadHooks(c echo.Context) error {
	thread, err := segment(c, "thread")
	if err != nil {
		return err
	}
	switched, err := s.opt.Store.Active(c.Request().Context(), thread)
	if err != nil {
		return err
	}
	hooks := []threadHook{}
	for _, spec := range s.opt.Gate.Policies.Hooks() {
		hooks = append(hooks, threadHookOf(spec, switched))
	}
	return s.answer(c, http.StatusOK, map[string]any{"hooks": hooks})
}

// maxSwitchBody is what `{}` may be.
const maxSwitchBody = 64 << 10

// switchHook makes a hook active or inactive in one thread, from the next
// event on (spec/azure.md 12).
func (s *Server) switchHook(active bool) echo.HandlerFunc {
	return func(c echo.Context) error {
		thread, err := segment(c, "thread")
		if err != nil {
			return err
		}
		name, err := segment(c, "hook")
		if err != nil {
			return err
		}
		if err := s.withBody(c, maxSwitchBody, emptyObject); err != nil {
			return err
		}
		spec := s.opt.Gate.Policies.Find(gate.HookSpec, name)
		if spec == nil {
			return gate.Errorf(gate.CodeNotFound, "hook %q is not known", name)
		}
		if err := s.opt.Store.SetActive(c.Request().Context(), thread, name, active, actorOf(c)); err != nil {
			return err
		}
		return s.answer(c, http.StatusOK, threadHookOf(spec, map[string]bool{name: active}))
	}
}

// emptyObject accepts `{}`, with or without fields, and nothing at all.
func emptyObject(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return gate.Errorf(gate.CodeInvalidJSON, "body is not a JSON object: %w", err)
	}
	return nil
}
