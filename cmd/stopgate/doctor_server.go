package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"stopgate/cmd/internal/hookclient"
	"stopgate/config"
	"stopgate/gate"
	"stopgate/server"
	"stopgate/wire"
	"stopgate/wire/install"
)

// examined is a server, and what is known of the agents that it is asked for.
type examined struct {
	client    *hookclient.Client
	reachable bool
	checks    map[string]server.Check // of /readyz
	agents    map[string]*gatedAgent
}

// gatedAgent is an agent as the hosts ask it: its own hooks, those that it has in
// other dialects and those of agent level. hooks is unknown where the server let
// nobody look. own: it has a spec of its own, and is not "default" with what is
// everybody's.
type gatedAgent struct {
	known bool
	own   bool
	hooks []gate.Hook
	// shadows are the names of hooks that gate nothing: they are not among hooks.
	shadows []string
}

// stops are the agent's hooks that can hold it at its Stop. Those of AX Code only
// watch (spec/ax-code.md 17).
func (a *gatedAgent) stops() []gate.Hook {
	return slices.DeleteFunc(slices.Clone(a.hooks), func(h gate.Hook) bool { return h.Event != gate.Stop || h.Dialect == gate.AXCode })
}

// examineServers looks at every server and agent that an entry or a flag names.
func (d *doctor) examineServers(c doctorCommand, patients []patient) {
	fallback := serverURL(d.getenv)
	for _, pt := range patients {
		for _, e := range pt.entries {
			if !e.Local {
				d.agentOf(orServer(e.Server, fallback), e.Agent)
			}
		}
	}
	if c.Server != "" || len(d.servers) == 0 && !slices.ContainsFunc(patients, func(p patient) bool { return len(p.entries) > 0 }) {
		d.serverAt(orServer(c.Server, fallback))
	}
	for _, s := range d.servers {
		if c.Server != "" && s.client.Base != orServer(c.Server, fallback) {
			continue
		}
		for _, name := range c.Agent {
			d.agentOf(s.client.Base, name)
		}
	}
	for _, s := range d.servers {
		d.examine(s)
		for _, name := range slices.Sorted(maps.Keys(s.agents)) {
			d.examineAgent(s, name, patients)
		}
	}
}

// orServer is a server's URL as it is spoken of and compared.
func orServer(server, fallback string) string {
	if server == "" {
		server = fallback
	}
	return strings.TrimRight(server, "/")
}

func (d *doctor) serverAt(base string) *examined {
	for _, s := range d.servers {
		if s.client.Base == base {
			return s
		}
	}
	s := &examined{client: hookclient.NewClient(base, ""), agents: map[string]*gatedAgent{}}
	if key := d.getenv("STOPGATE_API_KEY"); d.mayHaveKey(base) {
		s.client.Key = key
	} else if key != "" {
		d.say(s.name(), gate.SeverityWarning, "", "STOPGATE_API_KEY is not sent to it, since only the project's files name it", "if you know the server, say so: stopgate doctor --server "+base)
	}
	d.servers = append(d.servers, s)
	return s
}

// mayHaveKey reports whether a server is this machine's, or one that somebody
// but the project's authors named.
func (d *doctor) mayHaveKey(base string) bool {
	return d.trusting || d.vouched[base] || install.Loopback(base)
}

func (d *doctor) agentOf(base, name string) *gatedAgent {
	s := d.serverAt(base)
	if s.agents[name] == nil {
		s.agents[name] = &gatedAgent{}
	}
	return s.agents[name]
}

func (s *examined) name() string { return "server " + s.client.Base }

// serverWait is how long a server may take for one of the doctor's questions.
const serverWait = 10 * time.Second

// get reads what a path answers, whatever its status.
func (s *examined) get(ctx context.Context, path string, into any) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, serverWait)
	defer cancel()
	status, body, err := s.client.Send(ctx, http.MethodGet, path, "", http.NoBody)
	if err != nil {
		return status, err
	}
	if json.Unmarshal(body, into) != nil {
		return status, errors.New("something that is no stopgate answers there")
	}
	return status, nil
}

// examine asks a server how it is.
func (d *doctor) examine(s *examined) {
	advice := howToReach(s.client.Base) + ", or write another address into the entries: stopgate init HOST --server URL"
	var health struct{ Status string }
	if _, err := s.get(d.ctx, "/healthz", &health); err != nil {
		d.say(s.name(), gate.SeverityError, "", err.Error(), advice)
		return
	}
	var ready struct {
		Status  string
		Version string
		Checks  map[string]server.Check
	}
	if _, err := s.get(d.ctx, "/readyz", &ready); err != nil {
		d.say(s.name(), gate.SeverityError, "", err.Error(), advice)
		return
	}
	s.reachable, s.checks = true, ready.Checks
	if ready.Status != "ready" {
		d.say(s.name(), gate.SeverityError, "", fmt.Sprintf("it is not ready (%s): store: %s", ready.Status, s.why("store")), "see the server's log; until then answers follow on_gate_error")
		return
	}
	message := "reachable and ready, version " + ready.Version
	if store := ready.Checks["store"].Reason; store != "" {
		message += ", store " + store
	}
	d.say(s.name(), severityOK, "", message, "")
	if pool, reported := ready.Checks["sandbox.pool"]; reported && !pool.OK {
		d.say(s.name(), gate.SeverityWarning, "", "sandbox.pool: "+s.why("sandbox.pool"),
			"scripts run all the same, and are slower: mend that, or take pool and python out of the server file's sandbox")
	}
}

// examineAgent looks at an agent's hooks.
func (d *doctor) examineAgent(s *examined, name string, patients []patient) {
	if !s.reachable {
		return
	}
	agent := s.agents[name]
	err := s.loadHooks(d.ctx, name, agent)
	switch {
	case errors.Is(err, errUnknownAgent):
		d.say(s.name(), gate.SeverityError, "", fmt.Sprintf("no agent %q is known: every answer is on_gate_error's", name), "upload its spec with stopgate apply -f FILE, or name another agent: stopgate init HOST --agent NAME")
		return
	case err != nil:
		d.say(s.name(), gate.SeverityWarning, "", fmt.Sprintf("agent %q cannot be looked at: %v", name, err), "set STOPGATE_API_KEY to a key with the read scope; the probe below tells the rest")
		return
	}
	agent.known = true
	d.examineHooks(s, name, agent)
	for _, pt := range patients {
		if slices.ContainsFunc(pt.entries, func(e install.Entry) bool {
			return e.Agent == name && orServer(e.Server, serverURL(d.getenv)) == s.client.Base
		}) {
			d.examineMatchers(s, name, agent, pt.host)
		}
	}
}

func (d *doctor) examineHooks(s *examined, name string, agent *gatedAgent) {
	stops := len(agent.stops())
	switch {
	case len(agent.hooks) == 0:
		d.say(s.name(), gate.SeverityError, "", fmt.Sprintf("agent %q has no hooks, own or agent-level: everything is allowed", name), "give it some: stopgate apply -f FILE")
	case stops == 0:
		d.say(s.name(), gate.SeverityWarning, "", fmt.Sprintf("agent %q has no Stop hook: it may always stop", name), "give it one, if it should not: stopgate apply -f FILE")
	case len(agent.hooks) == 1:
		d.say(s.name(), severityOK, "", fmt.Sprintf("agent %q has 1 hook, on Stop", name), "")
	default:
		d.say(s.name(), severityOK, "", fmt.Sprintf("agent %q has %d hooks, %d of them on Stop", name, len(agent.hooks), stops), "")
	}
	if len(agent.shadows) > 0 {
		d.say(s.name(), gate.SeverityWarning, "", fmt.Sprintf("agent %q: in mode shadow, so that nothing comes of their verdicts: %s", name, strings.Join(agent.shadows, ", ")),
			"set mode: enforce when their records show what you want")
	}
	gating := agent.stops()
	if stops == 0 {
		gating = agent.hooks
	}
	working := slices.ContainsFunc(gating, func(h gate.Hook) bool { return s.works(h.Type) })
	for _, need := range hookNeeds {
		if s.works(need.hookType) {
			continue
		}
		reason := s.why(need.check)
		if !slices.ContainsFunc(agent.hooks, func(h gate.Hook) bool { return h.Type == need.hookType }) {
			d.say(s.name(), severityOK, "", fmt.Sprintf("agent %q has no active %s, so it needs no %s (%s)", name, need.kind, need.thing, reason), "")
			continue
		}
		severity := gate.SeverityWarning
		if !working { // nothing is left that could say no
			severity = gate.SeverityError
		}
		d.say(s.name(), severity, "", fmt.Sprintf("agent %q: %s: %s; its %s end by their failMode", name, need.check, reason, need.kind), need.do)
	}
}

// hookNeeds are the server's own checks that a type of hooks depends on.
var hookNeeds = []struct {
	check, kind, thing, do string
	hookType               gate.HookType
}{
	{"sandbox", "command hooks", "sandbox", "install bubblewrap, or choose another sandbox mode in the server file", gate.CommandHook},
	{"models", "prompt hooks", "model", "give the server a model: GEMINI_API_KEY, or a provider in the server file", gate.PromptHook},
}

// why is what the server says of a check that failed.
func (s *examined) why(check string) string {
	return cmp.Or(s.checks[check].Reason, "it tells why to a key with the read scope")
}

// works reports whether the server can ask hooks of a type, as far as it says.
func (s *examined) works(t gate.HookType) bool {
	for _, need := range hookNeeds {
		if check, reported := s.checks[need.check]; need.hookType == t && reported && !check.OK {
			return false
		}
	}
	return true
}

// examineMatchers reports matchers that no known tool of a host's has (fault
// match-04). A plugin's tools have names that nobody knows beforehand, so that
// it is a warning.
func (d *doctor) examineMatchers(s *examined, name string, agent *gatedAgent, host install.Host) {
	tools := wire.KnownTools(host.Name)
	for _, h := range agent.hooks {
		if h.Event.ForTool() && !slices.ContainsFunc(tools, func(tool string) bool {
			h.If = nil // which is about arguments
			return h.Concerns(toolCall(host, h.Event, tool))
		}) {
			d.say(s.name(), gate.SeverityWarning, "", fmt.Sprintf("agent %q: matcher %q of %s matches no tool of %s that stopgate knows", name, h.Matcher, h.Name, host.Contract.Program),
				"stopgate validate --explain FILE lists the names; a plugin's MCP tools are called mcp__plugin_PLUGIN_SERVER__TOOL")
		}
	}
}

var errUnknownAgent = errors.New("agent is unknown")

// toolCall is a host's event about one of its tools, as a probe has it.
func toolCall(host install.Host, event gate.EventName, tool string) *gate.Event {
	return &gate.Event{Name: event, Protocol: host.Name, ToolName: tool, ToolAliases: wire.Aliases(host.Name, tool),
		ToolInput: json.RawMessage(`{"command":"true"}`), ToolSucceeded: event != gate.PostToolUseFailure}
}

// loadHooks reads an agent's hooks from the server: its own, those in other
// dialects, and the agent-level ones that are active without being asked for. An
// agent with hooks in another dialect needs no spec, "default" nothing at all.
func (s *examined) loadHooks(ctx context.Context, name string, agent *gatedAgent) error {
	var own json.RawMessage
	status, err := s.get(ctx, "/api/v2/extendedAgent/agents/"+url.PathEscape(name), &own)
	switch {
	case err != nil:
		return err
	case status == http.StatusOK:
		agent.own = true
		err = agent.add(gate.AgentSpec, own)
	case status != http.StatusNotFound:
		err = refusal(strconv.Itoa(status), own)
	}
	if err != nil {
		return err
	}
	attached, err := s.loadAttached(ctx, name, agent)
	switch {
	case err != nil:
		return err
	case !agent.own && !attached && name != gate.DefaultAgent:
		return errUnknownAgent
	}
	var list struct{ Value []json.RawMessage }
	if status, err = s.get(ctx, "/api/v2/extendedAgent/hooks", &list); err != nil {
		return err
	}
	if status != http.StatusOK {
		return refusal(strconv.Itoa(status), nil)
	}
	for _, document := range list.Value {
		if err := agent.add(gate.HookSpec, document); err != nil {
			return err
		}
	}
	return nil
}

// loadAttached reads the hooks that an agent has in other dialects.
func (s *examined) loadAttached(ctx context.Context, name string, agent *gatedAgent) (some bool, err error) {
	for _, dialect := range gate.Dialects {
		if dialect == gate.Azure {
			continue
		}
		var document json.RawMessage
		status, err := s.get(ctx, "/v1/agents/"+url.PathEscape(name)+"/hooks?dialect="+string(dialect), &document)
		switch {
		case err != nil:
			return false, err
		case status == http.StatusNotFound:
			continue
		case status != http.StatusOK:
			return false, refusal(strconv.Itoa(status), document)
		}
		some = true
		if spec, _ := config.ReadShown(dialect, name, document); spec != nil {
			withoutOwn(spec, "", document)
			agent.hooks = append(agent.hooks, spec.Hooks...)
		}
	}
	return some, nil
}

func (a *gatedAgent) add(kind gate.SpecKind, document []byte) error {
	spec, _, err := config.ReadSpecAs(kind, "application/json", document)
	if err != nil {
		return err
	}
	for _, h := range spec.Hooks {
		switch {
		case h.Activation == gate.OnDemand:
		case h.Shadow:
			a.shadows = append(a.shadows, h.Name)
		default:
			a.hooks = append(a.hooks, h)
		}
	}
	return nil
}

// versionWait is how long a host may take to say its version: programs on Node
// took eight seconds on a busy machine.
const versionWait = 20 * time.Second

// checkVersion compares the installed host with the versions that were tried.
// A host that is not on PATH says nothing.
func (d *doctor) checkVersion(host install.Host) {
	program, err := exec.LookPath(host.Executable)
	if err != nil {
		return
	}
	out, err := d.runCommand(exec.Command(program, "--version"), nil, versionWait) //nolint:gosec // the host's own program
	version := strings.TrimSpace(string(out.stdout))
	if err != nil || version == "" {
		d.say(host.Name, gate.SeverityWarning, program, fmt.Sprintf("it does not say its version: %v", err), "run "+host.Executable+" --version")
		return
	}
	remark := host.Contract.Says(version)
	if remark == "" {
		d.say(host.Name, severityOK, program, "version "+version+" is one that was tried", "")
		return
	}
	d.say(host.Name, gate.SeverityWarning, program, remark, "watch a first session: docs/hosts.md says what should happen")
}
