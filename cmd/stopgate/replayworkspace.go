package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"stopgate/commandhooks"
	"stopgate/config"
	"stopgate/gate"
)

// inNoWorkspace asks scripts that may look at their agent's directory only where
// none was seen then either, or nobody knows: then the row says so.
func (a *again) inNoWorkspace(e gate.Evaluator) gate.Evaluator {
	return gate.EvaluatorFunc(func(ctx context.Context, in gate.Input) gate.Verdict {
		saw, known := a.sawWorkspace(in.Event)
		if known && !saw || !commandhooks.LooksAround(in.Hook) {
			return e.Evaluate(ctx, in)
		}
		if saw && !a.command.Blind {
			o := &obstacle{Code: workspace, Message: fmt.Sprintf("hook %q may look at its agent's directory, which is not what it was then; --no-workspace asks it without one", in.Hook.Name)}
			a.first.CompareAndSwap(nil, o)
			return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.Internal, Message: o.Message}}
		}
		a.blind.Store(true)
		return e.Evaluate(ctx, in)
	})
}

// sawWorkspace reports whether scripts saw then where their agent worked, as the
// record says, or the event, or the server file of now.
func (a *again) sawWorkspace(ev *gate.Event) (saw, known bool) {
	for _, v := range a.record.Hooks {
		if v.Evidence != nil && v.Evidence.Workspace != "" {
			saw, known = saw || v.Evidence.Workspace != string(config.WorkspaceNone), true
		}
	}
	switch {
	case known:
		return saw, true
	case ev.Cwd == "": // which AX Code says beside its payload
		return false, ev.Protocol != string(gate.AXCode)
	}
	saw = slices.ContainsFunc(a.workspaces, func(root string) bool {
		below, err := filepath.Rel(root, ev.Cwd)
		return err == nil && filepath.IsLocal(below)
	})
	return saw, saw
}
