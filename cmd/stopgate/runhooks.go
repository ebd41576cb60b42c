package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stopgate/cmd/internal/hookclient"
	"stopgate/commandhooks"
	"stopgate/config"
	"stopgate/gate"
	"stopgate/internal/regular"
	"stopgate/wire"
)

type runHooksCommand struct {
	Dialect string `required:"" placeholder:"D" help:"Whose hooks: ${hookSystems}."`
	Root    string `required:"" placeholder:"DIR" help:"The project's directory; antigravity: what is / in the environment."`
	Event   string `required:"" placeholder:"E" help:"The event, as that system calls it."`
	Tool    string `placeholder:"T" help:"The tool, where the payload names none, by that system's own name: bash (ax-code), Bash (claude-code), code_execution (antigravity)."`
	Cwd     string `placeholder:"DIR" help:"The working directory, in DIR (DIR; antigravity: DIR/workspace, if that is there)."`
	Network string `placeholder:"FILE" help:"antigravity: the environment's network object, by which http hooks reach what they may."`
	Config  string `placeholder:"FILE" help:"Server file, for models and sandbox."`
	Sandbox string `placeholder:"MODE" help:"auto, bubblewrap, process, container or off."`
	JSON    bool   `help:"Print the gate's whole decision as JSON, with feedback: what the agent reads after the tool's output."`
}

// Help is the detail of `stopgate run-hooks --help`.
func (runHooksCommand) Help() string {
	return `That system's payload on standard input, its answer on standard output (ax-code, and --json: the decision); what the hooks file has wrong, and what failed, on standard error. Counts nothing. The hooks file is looked for in the working directory, then in DIR. One that the system skips is said to be, and everything is allowed, as there; a settings file that cannot be read at all ends in 65. Of Claude Code's settings, a hook whose matcher or rule the gate cannot evaluate is asked more often than there, and said; env reaches the commands.

Hooks see DIR, which is their CLAUDE_PROJECT_DIR too, start in the working directory, and may write to both, unless sandbox.workspace of --config is read-only. For antigravity DIR is / in the sandbox: each of its entries lies there, but those that the sandbox has for itself (usr, etc, tmp, …).

Exit codes: 0 whatever the answer; 64 usage, 65 unreadable input, 70 internal.

Example:
  echo '{"tool_call":{"name":"code_execution","args":{"code":"rm -rf /"}},"environment_id":"e1"}' | stopgate run-hooks --dialect antigravity --root examples/antigravity --event pre_tool_execution`
}

// hookSystem is what run-hooks knows of a system beside its protocol, which has
// the dialect's name.
type hookSystem struct {
	dialect gate.Dialect
	// events are its own names of them, also of those that no gate is asked about.
	events []string
	// workspace is the usual working directory below the root; empty: the root.
	workspace string
	// rooted: the root is / for its hooks.
	rooted bool
	// networked: a network object says what its http hooks may reach.
	networked bool
	// ignores: a hooks file that cannot be read is there one without hooks
	// (spec/antigravity.md 3, spec/ax-code.md 2).
	ignores bool
	// tool is one of its own, as it calls that.
	tool string
	// decides: its answer is no JSON of its own, so that our decision is shown.
	decides bool
	// distrusts says why the environment keeps the system from reading a
	// project's hooks; empty: it does not. nil: it never does.
	distrusts func(getenv func(string) string) string
}

func hookSystems() []hookSystem {
	return []hookSystem{
		{dialect: gate.Antigravity, tool: "code_execution", events: []string{"pre_tool_execution", "post_tool_execution"}, workspace: "workspace", rooted: true, networked: true, ignores: true},
		{dialect: gate.AXCode, tool: "bash", events: gate.AXCodeEvents, ignores: true, decides: true, distrusts: axCodeDistrusts},
		{dialect: gate.ClaudeCode, tool: "Bash", events: config.ClaudeCodeEvents()},
	}
}

func hookSystemNames() []string {
	var names []string
	for _, s := range hookSystems() {
		names = append(names, string(s.dialect))
	}
	return names
}

// hookRuntime is one event on its way through another system's hooks.
type hookRuntime struct {
	runHooksCommand
	process
	system    hookSystem
	protocol  wire.Protocol
	root, cwd string   // absolute, with symbolic links resolved
	loaded    []string // files of hooks
}

// Run answers one payload.
func (c runHooksCommand) Run(p process) error {
	p.stderr = visible{p.stderr}
	run := hookRuntime{runHooksCommand: c, process: p}
	if err := run.settle(); err != nil {
		return err
	}
	ev, err := run.event()
	if err != nil {
		return err
	}
	specs, err := run.specs()
	if err != nil {
		return err
	}
	d, err := run.decide(ev, specs)
	if err != nil {
		return err
	}
	if len(d.Hooks) == 0 {
		run.sayMissed(ev, specs[0].Hooks)
	}
	return run.answer(ev, d)
}

// settle checks what was asked for.
func (r *hookRuntime) settle() error {
	systems := hookSystems()
	i := slices.IndexFunc(systems, func(s hookSystem) bool { return string(s.dialect) == r.Dialect })
	if i < 0 {
		names := hookSystemNames()
		return exit{exitUsage, fmt.Errorf("--dialect is %q: want one of %s%s", r.Dialect, strings.Join(names, ", "), config.DidYouMean(r.Dialect, names))}
	}
	r.system = systems[i]
	if names := r.system.events; !slices.Contains(names, r.Event) {
		meant := config.EventName(r.system.dialect, gate.EventName(r.Event)) // which another system calls so
		if !slices.Contains(names, meant) {
			meant = r.Event
		}
		return exit{exitUsage, fmt.Errorf("--event is %q: %s has %s%s", r.Event, r.Dialect, strings.Join(names, ", "), config.DidYouMean(meant, names))}
	}
	if r.Network != "" && !r.system.networked {
		elsewhere := ""
		if r.system.dialect == gate.ClaudeCode {
			elsewhere = ": its http hooks reach what http_hooks.allow of a server file names (--config FILE)"
		}
		return exit{exitUsage, fmt.Errorf("--network: %s has no network object%s", r.Dialect, elsewhere)}
	}
	r.protocol, _ = wire.Find(r.Dialect) // each has one
	r.root = absolute(r.Root)
	r.cwd = r.root
	if at := filepath.Join(r.root, r.system.workspace); isDir(at) {
		r.cwd = at
	}
	if r.Cwd != "" {
		r.cwd = absolute(r.Cwd)
	}
	if !isDir(r.root) {
		return exit{exitInput, fmt.Errorf("%q is not a directory", r.root)}
	}
	return r.resolve()
}

// resolve makes of root and cwd paths without symbolic links: hooks may write to
// the root, in which the cwd lies. Where the root is /, it may be named
// as it is seen from there.
func (r *hookRuntime) resolve() error {
	root, err := filepath.EvalSymlinks(r.root)
	if err != nil {
		return exit{exitInput, err}
	}
	r.root = root
	dirs, where := []string{r.cwd}, ""
	if r.system.rooted {
		dirs, where = append(dirs, filepath.Join(root, r.Cwd)), ", which is / there"
	}
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil && isDir(real) && inside(root, real) {
			r.cwd = real
			return nil
		}
	}
	return exit{exitUsage, fmt.Errorf("--cwd is %q, want a directory in --root%s", r.cwd, where)}
}

func isDir(path string) bool {
	about, err := os.Stat(path)
	return err == nil && about.IsDir()
}

// event reads the payload.
func (r *hookRuntime) event() (gate.Event, error) {
	payload, err := r.payload()
	if err != nil {
		return gate.Event{}, exit{exitInput, err}
	}
	if named := memberText(payload, "hook_event_name"); r.system.dialect == gate.ClaudeCode && named != "" && named != r.Event {
		return gate.Event{}, exit{exitInput, fmt.Errorf("payload is about %.60q, and --event is %s", named, r.Event)}
	}
	ev, err := r.decode(payload)
	if err != nil {
		return gate.Event{}, exit{exitInput, err}
	}
	if ev.Name.ForTool() && ev.ToolName == "" {
		ev.ToolName, ev.ToolAliases = r.Tool, wire.Aliases(r.Dialect, r.Tool)
	}
	if r.Tool != "" && ev.ToolName != r.Tool {
		return gate.Event{}, exit{exitInput, fmt.Errorf("payload is about the tool %q, and --tool is %q", ev.ToolName, r.Tool)}
	}
	if own := strings.ToLower(r.Tool); r.system.dialect == gate.AXCode && own != r.Tool && slices.Contains(wire.OwnTools(r.Dialect), own) {
		fmt.Fprintf(r.stderr, "warning: --tool is %q, and AX Code calls its tool %s: in its matchers letter case counts\n", r.Tool, own)
	}
	ev.Dry, ev.Cwd, ev.Project = true, r.cwd, r.root
	return ev, nil
}

// payload waits for standard input until it is told to end.
func (r *hookRuntime) payload() ([]byte, error) {
	read := make(chan struct{})
	var all []byte
	var fault error
	go func() {
		defer close(read)
		all, fault = io.ReadAll(io.LimitReader(r.stdin, hookclient.MaxPayload+1))
	}()
	select {
	case <-r.ctx.Done():
		return nil, errors.New("interrupted while the payload was read")
	case <-read:
	}
	if fault == nil && len(all) > hookclient.MaxPayload {
		fault = fmt.Errorf("payload is larger than %d MiB", hookclient.MaxPayload>>20)
	}
	return all, fault
}

func (r *hookRuntime) decode(payload []byte) (gate.Event, error) {
	if r.system.dialect == gate.AXCode {
		return r.decodeAXCode(payload)
	}
	if len(bytes.TrimSpace(payload)) == 0 {
		return gate.Event{}, fmt.Errorf("standard input is empty, want what %s hands to its hooks on %s, as JSON", config.SystemName(r.system.dialect), r.Event)
	}
	return r.protocol.Decode(payload, wire.Options{Event: r.Event, Tool: r.Tool, Cwd: r.cwd})
}

// specs are the hooks, and what those by http may reach.
func (r *hookRuntime) specs() ([]*gate.Spec, error) {
	hooks, err := r.hooks()
	if err != nil {
		return nil, err
	}
	specs := []*gate.Spec{hooks}
	if r.Network == "" {
		return specs, nil
	}
	data, err := readBounded(r.Network)
	if err != nil {
		return nil, exit{exitInput, err}
	}
	network, findings := config.ReadNetwork(gate.DefaultAgent, data)
	printFindings(r.stderr, []specFile{{path: r.Network, findings: findings}})
	if network == nil {
		return nil, exit{exitInput, fmt.Errorf("%s is no network object", r.Network)}
	}
	return append(specs, network), nil
}

// hooks are those of every file that loads. It says what keeps others from it, where
// the system that is played goes on without a word; where it is not known to, a file
// that cannot be read is an error, since its hooks might have refused.
func (r *hookRuntime) hooks() (*gate.Spec, error) {
	all := &gate.Spec{Kind: gate.Attached(r.system.dialect), Name: gate.DefaultAgent}
	env := map[string]string{} // of all files, the later ones' over the earlier ones'
	found, places := false, config.HookPlaces(r.system.dialect)
	for _, dir := range slices.Compact([]string{r.cwd, r.root}) {
		for _, name := range places { // all that there are count
			path := filepath.Join(dir, filepath.FromSlash(name))
			data, err := r.read(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			found = true
			if why := r.distrust(); why != "" {
				fmt.Fprintf(r.stderr, "%s: ignored, so its hooks are not asked: %s\n", path, why)
				continue
			}
			if err != nil && !r.system.ignores {
				return nil, exit{exitInput, fmt.Errorf("%s cannot be read, so its hooks cannot be asked: %w", path, err)}
			}
			if err != nil {
				fmt.Fprintf(r.stderr, "%s: not loaded, so its hooks are not asked: %s\n", path, err)
				continue
			}
			spec, set, findings := config.ReadPlayed(r.system.dialect, gate.DefaultAgent, data)
			if spec != nil {
				findings = append(findings, withoutOwn(spec, path, data)...)
			}
			r.sayFindings(path, data, findings)
			if spec == nil && !r.system.ignores {
				return nil, exit{exitInput, fmt.Errorf("%s cannot be read, so its hooks cannot be asked", path)}
			}
			if spec == nil {
				fmt.Fprintf(r.stderr, "%s: not loaded, so its hooks are not asked\n", path)
				continue
			}
			maps.Copy(env, set)
			r.loaded = append(r.loaded, path)
			if len(places) > 1 { // each counts from 0
				for i := range spec.Hooks {
					spec.Hooks[i].Name = filepath.Base(name) + " " + spec.Hooks[i].Name
				}
			}
			all.Hooks = append(all.Hooks, spec.Hooks...)
		}
		if found {
			for i := range all.Hooks {
				all.Hooks[i].Env = env
			}
			return all, nil
		}
	}
	fmt.Fprintf(r.stderr, "no %s in %s: no hook is asked\n", strings.Join(places, ", "), strings.Join(slices.Compact([]string{r.cwd, r.root}), " or "))
	return all, nil
}

func (r *hookRuntime) distrust() string {
	if r.system.distrusts == nil {
		return ""
	}
	return r.system.distrusts(r.getenv)
}

// read is a hooks file; in a rooted system no symbolic link leads out of the
// root.
func (r *hookRuntime) read(path string) ([]byte, error) {
	if !r.system.rooted {
		return readBounded(path)
	}
	rel, err := filepath.Rel(r.root, path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := regular.Check(root.OpenFile(rel, regular.How, 0))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return regular.ReadAll(f, maxSpecFile)
}

// decide asks the hooks. Nothing is kept.
func (r *hookRuntime) decide(ev gate.Event, specs []*gate.Spec) (gate.Decision, error) {
	if ev.Name == "" { // no hook is about it
		return gate.Decision{Outcome: gate.Allow, Messages: []gate.Message{}, Hooks: []gate.Verdict{}}, nil
	}
	cfg, err := r.config()
	if err != nil {
		return gate.Decision{}, err
	}
	commands := commandOptions(cfg, r.getenv)
	commands.AsRoot = true
	if r.system.rooted {
		commands.Root = r.root
	}
	app, err := buildOffline(r.ctx, cfg, commands, r.getenv)
	if err != nil {
		return gate.Decision{}, exit{exitInput, err}
	}
	defer app.close()
	if slices.ContainsFunc(specs[0].Hooks, func(h gate.Hook) bool { return h.Type == gate.CommandHook }) {
		r.sayUnshown(app.runner)
		r.sayFullEnvironment(commands.HostEnv)
	}
	d, err := app.gate.Decide(r.ctx, ev, gate.Options{Specs: specs})
	if err == nil && r.ctx.Err() != nil { // hooks were cut short
		err = errors.New("interrupted")
	}
	return d, err
}

// config is the server file's, with what hooks of the person at the command line
// may see: their project.
func (r *hookRuntime) config() (config.Server, error) {
	cfg, err := loadConfig(r.process, r.Config, overrides{sandbox: r.Sandbox, offline: true})
	if err != nil {
		return config.Server{}, err
	}
	cfg.Transcripts.Roots = []string{"/"} // whatever file they name, they may read
	if r.system.rooted {
		return cfg, nil
	}
	r.sayUnshownProject(cfg.Sandbox)
	if r.Config == "" || cfg.Sandbox.Workspace != config.WorkspaceReadOnly {
		cfg.Sandbox.Workspace = config.WorkspaceReadWrite
	}
	cfg.Sandbox.WorkspaceRoots = []string{r.root}
	return cfg, nil
}

func (r *hookRuntime) sayUnshown(runner *commandhooks.Runner) {
	for _, what := range runner.Unshown() {
		fmt.Fprintf(r.stderr, "%s: warning: hooks do not see %s\n", r.root, what)
	}
}

// played is the decision as run-hooks shows it.
func (r *hookRuntime) played(d gate.Decision) any {
	p := struct {
		gate.Decision
		Feedback string `json:"feedback"`
		// Appended is the feedback in the form in which the tool's output ends
		// with it.
		Appended string `json:"appended,omitempty"`
	}{Decision: d.WithoutEvidence(), Feedback: d.AdditionalContext}
	if r.system.dialect == gate.AXCode {
		p.Appended = gate.AXCodeAppended(p.Feedback)
	}
	return p
}

// reach says where it is settled what http hooks may reach.
func (r *hookRuntime) reach() string {
	listed := "http_hooks.allow in the server file that --config FILE names"
	if r.Config != "" {
		listed = "http_hooks.allow in " + r.Config
	}
	if !r.system.networked {
		return "what http hooks may reach is listed as " + listed
	}
	network := "the network object that --network FILE names"
	if r.Network != "" {
		network = "the network object in " + r.Network
	}
	return "what http hooks may reach is said by " + network + ", and of private addresses by " + listed
}

// answer writes what the system's agent would be told, and what went wrong
// meanwhile.
func (r *hookRuntime) answer(ev gate.Event, d gate.Decision) error {
	for _, v := range d.Hooks {
		if v.Failure != nil {
			fmt.Fprintf(r.stderr, "%s: %s %s\n", v.Name, v.Failure, v.Notes)
		}
	}
	if slices.ContainsFunc(d.Hooks, func(v gate.Verdict) bool { return v.Failure != nil && v.Failure.Code == gate.EgressDenied }) {
		fmt.Fprintln(r.stderr, r.reach())
	}
	r.sayLogged(d)
	if r.JSON || r.system.decides {
		return printJSON(r.stdout, r.played(d))
	}
	body := r.protocol.Encode(ev, d).Body
	if len(body) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(r.stdout, "%s\n", body)
	return err
}
