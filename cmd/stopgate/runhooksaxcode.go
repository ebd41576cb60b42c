package main

import (
	"bytes"
	"fmt"
	"strings"

	"stopgate/commandhooks"
	"stopgate/gate"
	"stopgate/wire"
)

// axCodeDistrusts: a project's hooks are run only where the environment says so,
// in one way (spec/ax-code.md 1).
func axCodeDistrusts(getenv func(string) string) string {
	const variable = "AX_CODE_TRUST_PROJECT_CONFIG"
	if getenv(variable) == "1" {
		return ""
	}
	return "AX Code reads a project's hooks only with " + variable + "=1 in its environment"
}

// decodeAXCode reads a tool's arguments, or what else the event is told with.
// Nothing is the same as {} there; the session comes as AX Code gives it to
// hooks.
func (r *hookRuntime) decodeAXCode(payload []byte) (gate.Event, error) {
	if len(bytes.TrimSpace(payload)) == 0 {
		payload = []byte("{}")
	}
	ev, err := r.protocol.Decode(payload, wire.Options{Event: r.Event, Tool: r.Tool, Cwd: r.cwd, Session: r.getenv("HOOK_SESSION_ID")})
	ev.Name, _ = gate.AXCodeEvent(r.Event) // some are nobody else's
	if ev.ToolInput == nil {
		ev.ToolInput = bytes.ToValidUTF8(payload, []byte("\uFFFD"))
	}
	return ev, err
}

// sayFullEnvironment warns, once, that hooks get all of the environment
// (spec/ax-code.md 22).
func (r *hookRuntime) sayFullEnvironment(host []string) {
	if r.system.dialect == gate.AXCode && commandhooks.FullEnvironment(host) {
		fmt.Fprintln(r.stderr, "warning: AX_CODE_HOOKS_FULL_ENV is set: hooks get the whole environment, secrets too")
	}
}

// sayLogged shows what AX Code would have in its log: what hooks write to
// standard error.
func (r *hookRuntime) sayLogged(d gate.Decision) {
	if r.system.dialect != gate.AXCode {
		return
	}
	for _, v := range d.Hooks {
		if v.Evidence == nil {
			continue
		}
		for line := range strings.Lines(v.Evidence.Stderr) {
			fmt.Fprintf(r.stderr, "%s: %s\n", v.Name, strings.TrimRight(line, "\n"))
		}
	}
}
