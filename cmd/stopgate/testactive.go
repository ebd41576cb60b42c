package main

import (
	"slices"
	"strings"

	"stopgate/config"
	"stopgate/gate"
)

// onDemand are the names of the hooks that a session switches on.
func (s *suite) onDemand() (names []string) {
	for _, spec := range s.specs {
		for i := range spec.Hooks {
			if h := &spec.Hooks[i]; h.Activation == gate.OnDemand && !slices.Contains(names, h.Name) {
				names = append(names, h.Name)
			}
		}
	}
	return names
}

// checkActive finds names of hooks that cannot be switched on.
func (s *suite) checkActive(e config.TestEvent) {
	names := s.onDemand()
	for _, name := range e.Active {
		if !slices.Contains(names, name) {
			are := "none is on demand"
			if len(names) > 0 {
				are = "on demand are " + strings.Join(names, ", ")
			}
			s.errorf(e.Place, "active names %q, which is no hook that a session switches on: %s%s", name, are, config.DidYouMean(name, names))
		}
	}
}

// activeSpecs are the suite's specs as an event finds them: a hook on demand that is
// active is one that always is. nil: all are.
func (s *suite) activeSpecs(active []string) []*gate.Spec {
	specs := make([]*gate.Spec, len(s.specs))
	for i, spec := range s.specs {
		of := *spec
		of.Hooks = slices.Clone(spec.Hooks)
		for j := range of.Hooks {
			if h := &of.Hooks[j]; h.Activation == gate.OnDemand && (active == nil || slices.Contains(active, h.Name)) {
				h.Activation = gate.Always
			}
		}
		specs[i] = &of
	}
	return specs
}
