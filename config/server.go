package config

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"stopgate/gate"
	"stopgate/internal/loopback"
)

// Server is the server file stopgate.yaml with every default filled in. Paths
// are absolute or relative to the working directory, sizes are bytes.
type Server struct {
	Listen      string // host:port
	Data        string // directory of everything that survives a restart
	Database    Secret // postgres://… with its password; empty: SQLite in Data
	Agents      string // directory of specs, loaded and watched; empty: none
	HTTP        HTTP
	Auth        Auth
	HTTPHooks   HTTPHooks
	Models      Models
	Sandbox     Sandbox
	Transcripts Transcripts
	Limits      Limits
	Retention   Retention
	Export      []Sink // in the order of the file
	Telemetry   Telemetry
	Redaction   Redaction
	OnGateError gate.FailMode // what an allow becomes when the gate itself failed
	Durability  Durability
	Warnings    []gate.Finding // what of the file does not do what it looks like
}

// Sandbox is how command hooks run.
type Sandbox struct {
	Mode           SandboxMode
	Network        bool // scripts may use the network
	Workspace      Workspace
	WorkspaceRoots []string // directories that a workspace may lie under
	Limits         SandboxLimits
	Pool           int64 // bytes of sandboxes that a server starts ahead; 0: none
	Python         SandboxPython
}

// SandboxPython says where a Python script finds its interpreter.
type SandboxPython string

const (
	PythonFresh  SandboxPython = "fresh"  // starts with its sandbox
	PythonForked SandboxPython = "forked" // is forked from one that waits for that hook; needs a Pool
)

// SandboxMode names what a script is confined by.
type SandboxMode string

// The modes of DESIGN §8.
const (
	SandboxAuto       SandboxMode = "auto" // bubblewrap, or no command hooks
	SandboxBubblewrap SandboxMode = "bubblewrap"
	SandboxProcess    SandboxMode = "process"   // limits only; loopback only
	SandboxContainer  SandboxMode = "container" // the container is the sandbox
	SandboxOff        SandboxMode = "off"       // no command hooks
)

// Workspace says what a script sees of the agent's working directory.
type Workspace string

const (
	WorkspaceNone      Workspace = "none"
	WorkspaceReadOnly  Workspace = "read-only"
	WorkspaceReadWrite Workspace = "read-write"
)

// SandboxLimits bound one script. Their defaults are [LoadServer]'s alone.
type SandboxLimits struct {
	Memory    int64 // bytes
	Processes int
	FileSize  int64 // bytes of one file, and of the private /tmp
	OpenFiles int
	CPU       time.Duration // processor time of one process
}

// Transcripts says where conversations may be read, and how much of them.
type Transcripts struct {
	Roots   []string // directories that a named transcript must lie under
	MaxSize int64    // bytes of one conversation
	MaxLine int64    // bytes of one line
}

// Limits bound what callers and judges may use.
type Limits struct {
	EvaluateBody     int64 // bytes of an event with its inline transcript
	SpecBody         int64 // bytes of an uploaded spec
	ParallelHooks    int   // hooks of one event at once
	Evaluations      int   // events being decided at once; more are refused
	CommandHooks     int   // scripts at once, over all events; more wait
	JudgeRounds      int   // answers with tool calls before the verdict is asked for
	JudgeTokens      int   // tokens for one verdict
	AgentDailyTokens int   // tokens per agent and day; 0: no limit
}

// Retention says how long, and how much, is kept. 0 is no bound.
type Retention struct {
	Records            time.Duration // age at which an evaluation is deleted
	RecordsMaxSize     int64         // bytes of all evaluations, as the store counts them
	TranscriptsMaxSize int64         // bytes of all transcripts
}

// Durability says what an acknowledged decision survives.
type Durability string

const (
	DurablePower   Durability = "power"   // a power cut
	DurableProcess Durability = "process" // kill -9, not a power cut
)

// validate checks what a flag may have changed after the file was read, and what
// depends on several values. at is where a path's value stands.
func (s Server) validate(f *findings, at func(path string) pos) {
	loopback, err := IsLoopback(s.Listen)
	switch {
	case err != nil:
		f.errorf("listen", at("listen"), "listen is %q, want host:port as 127.0.0.1:8790: %s", s.Listen, err)
		loopback = true // the address is wrong, not exposed: one finding is enough
	case !loopback && !s.Auth.LoginNeeded():
		f.errorf("listen", at("listen"), "listen %q is reachable from other machines, where anybody could change the gate: "+
			"let them log in (auth in the server file, as auth: {keys: true}; then stopgate key create), or listen on 127.0.0.1 or [::1]", s.Listen)
	}
	switch s.Sandbox.Mode {
	case SandboxAuto, SandboxBubblewrap, SandboxContainer, SandboxOff:
	case SandboxProcess:
		if !loopback {
			f.errorf("sandbox.mode", at("sandbox.mode"), "sandbox.mode process does not confine scripts, so it is refused on %q: "+
				"use bubblewrap, or listen on 127.0.0.1", s.Listen)
		}
	default:
		f.errorf("sandbox.mode", at("sandbox.mode"), "sandbox.mode is %q, want one of auto, bubblewrap, process, container, off", string(s.Sandbox.Mode))
	}
	if s.Sandbox.Workspace != WorkspaceNone && s.Sandbox.Workspace != "" && len(s.Sandbox.WorkspaceRoots) == 0 {
		f.errorf("sandbox.workspace", at("sandbox.workspace"), "sandbox.workspace is %s, but sandbox.workspace_roots names no directory", s.Sandbox.Workspace)
	}
	if n := len(s.Sandbox.WorkspaceRoots); n > 0 && s.Sandbox.Workspace == WorkspaceNone {
		f.warnf("sandbox.workspace_roots", at("sandbox.workspace_roots"), "sandbox.workspace_roots has no effect without sandbox.workspace: hooks see no directory of an agent's; set it to read-only")
	}
	if s.Data == "" {
		f.errorf("data", at("data"), "data is not set, and neither XDG_STATE_HOME nor HOME says where the default is")
	}
}

// IsLoopback reports whether an address, as host:port, can be reached from this
// machine only. A name other than localhost is not trusted to stay one. The
// error says why it is no address.
func IsLoopback(address string) (bool, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false, fmt.Errorf("no host and port in it")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false, fmt.Errorf("port %q is not a number 0…65535", port)
	}
	return loopback.Host(host), nil
}
