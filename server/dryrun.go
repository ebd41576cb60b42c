package server

import (
	"bytes"
	"encoding/json"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

// dryRun is POST /v1/dry-run: an event against an inline spec. It counts
// nothing and is recorded as a dry run. Hooks that a thread would have to
// activate are tried as active.
func (s *Server) dryRun(c echo.Context) error {
	return s.admit(c, func(body []byte) error {
		ev, specs, err := s.readDryRun(body)
		if err != nil {
			return err
		}
		if err := s.confine(c.Request().Context(), callerOf(c), &ev); err != nil {
			return err
		}
		return s.decide(c, ev, gate.Options{Specs: specs, AllActive: true, Caller: c.Request().Context()})
	}, nil)
}

func (s *Server) readDryRun(body []byte) (gate.Event, []*gate.Spec, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		_, err := s.opt.Decode(body) // which knows to say where
		if err == nil {
			err = gate.Errorf(gate.CodeInvalidJSON, "body is not a JSON object")
		}
		return gate.Event{}, nil, err
	}
	spec, err := s.inlineSpec(fields["spec"])
	if err != nil {
		return gate.Event{}, nil, err
	}
	event := body
	if _, named := fields["agent_name"]; !named {
		name := gate.DefaultAgent // to which an agent-level hook applies as to any other
		if spec.Kind == gate.AgentSpec {
			name = spec.Name
		}
		fields["agent_name"], _ = json.Marshal(name) // a string always has a JSON form
		if event, err = json.Marshal(fields); err != nil {
			return gate.Event{}, nil, err
		}
	}
	ev, err := s.opt.Decode(event)
	if err != nil {
		return gate.Event{}, nil, err
	}
	ev.Dry, ev.Payload = true, body
	specs := []*gate.Spec{spec}
	switch {
	case spec.Kind == gate.HookSpec: // it applies to every agent, so to the one named
		specs = append(specs, &gate.Spec{Kind: gate.AgentSpec, Name: ev.Agent})
	case ev.Agent != spec.Name:
		return ev, nil, gate.Errorf(gate.CodeValidation, "agent_name %q is not the name %q of the spec", ev.Agent, spec.Name)
	}
	return ev, specs, nil
}

// inlineSpec reads the field "spec": a JSON object, or a string of YAML.
func (s *Server) inlineSpec(field json.RawMessage) (*gate.Spec, error) {
	contentType, document := typeJSON, []byte(field)
	field = bytes.TrimSpace(field)
	switch {
	case len(field) > 0 && field[0] == '"':
		var text string
		if err := json.Unmarshal(field, &text); err != nil {
			return nil, gate.Errorf(gate.CodeInvalidJSON, "spec is not a string: %w", err)
		}
		contentType, document = "application/yaml", []byte(text)
	case len(field) == 0 || field[0] != '{':
		return nil, gate.Errorf(gate.CodeValidation, "spec must be a JSON object, or a string of YAML")
	}
	spec, _, err := sound(s.opt.ReadAny(contentType, document))
	return spec, err
}
