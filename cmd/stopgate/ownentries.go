package main

import (
	"slices"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/wire/install"
)

// withoutOwn takes out of another system's hooks what of them is stopgate's own, as
// init writes it beside them: asked as a hook, the gate would ask itself. name and
// data are the file's, as for [config.Locate].
func withoutOwn(spec *gate.Spec, name string, data []byte) (found []gate.Finding) {
	if spec.Kind == gate.AgentSpec || spec.Kind == gate.HookSpec {
		return nil
	}
	spec.Hooks = slices.DeleteFunc(spec.Hooks, func(h gate.Hook) bool {
		own := install.Own(&h)
		if own {
			found = append(found, gate.Finding{Severity: gate.SeverityWarning, Path: h.Name,
				Message: "this is stopgate's own entry; asked as a hook, the gate would ask itself, so it is left out"})
		}
		return own
	})
	if found == nil {
		return nil
	}
	return config.Locate(spec, name, data, found)
}

// readAttached is [config.ReadAttached] without stopgate's own entries.
func readAttached(d gate.Dialect, agent string, data []byte) (*gate.Spec, []gate.Finding) {
	spec, found := config.ReadAttached(d, agent, data)
	if spec != nil {
		found = append(found, withoutOwn(spec, "", data)...)
	}
	return spec, found
}

// unservedIn are the warnings of [app.unserved], with the places in the document that
// the spec was read from.
func (a *app) unservedIn(spec *gate.Spec, document []byte) []gate.Finding {
	return config.Locate(spec, "", document, a.unserved(spec))
}
