package commandhooks

import (
	"os"
	"path/filepath"
	"strings"

	"stopgate/gate"
)

// job is one run of one hook, worked out before anything is started.
type job struct {
	interpreter interpreter
	inline      string   // a shell line for bash -c …
	args        []string // … or a program and its arguments, which no shell reads
	script      string   // … or a whole script
	fileName    string   // what the script's file is called
	stdin       []byte
	transcripts []string // files to be readable at their own paths
	// isTranscript says whether a file is the one that was opened at that path.
	isTranscript func(path string, info os.FileInfo) bool
	cwd          string // the agent's working directory
	project      string // the directory of its project
	rooted       bool   // Options.Root is / for it
	dialect      gate.Dialect
	// once: what it finds in its environment is of this event alone.
	once bool
	// env is over what every hook finds in its environment; see withHost.
	env         map[string]string
	agent, hook string // whose it is
	forks       bool   // what waits for it is a Python that is forked for each job
}

// plan picks the interpreter (spec/azure.md 20) and gathers what the hook is
// to see.
func (r *Runner) plan(in gate.Input) (job, *gate.Failure) {
	j := job{stdin: in.Context, cwd: in.Event.Cwd, inline: in.Hook.Command, script: in.Hook.Script, dialect: in.Hook.Dialect,
		agent: in.Event.Agent, hook: string(in.Hook.Level) + " " + in.Hook.Name,
		rooted: r.root != nil && in.Hook.Dialect == gate.Antigravity}
	j.project = r.opt.Workspace.projectOf(in.Hook.Dialect, in.Event)
	if in.Event.Projects != nil && !j.rooted && (in.Hook.Dialect == gate.AXCode || in.Hook.Dialect == gate.Antigravity) {
		j.cwd = j.project // in their own systems there is no other directory for them
	}
	name := "bash"
	switch {
	case j.script != "":
		var ok bool
		if name, ok = shebang(j.script); !ok {
			return job{}, failed(gate.InterpreterMissing, "the script's first line is %q: only #!/bin/bash and #!/usr/bin/env python3 are run",
				head(firstLine(j.script), 80))
		}
	case j.inline == "":
		return job{}, failed(gate.Internal, "the hook has neither a command nor a script")
	case in.Hook.Args != nil:
		// It is no line for a shell, however long.
	case len(j.inline) > maxInline || strings.Contains(j.inline, "\x00"):
		j.inline, j.script = "", j.inline
	}
	j.interpreter, j.fileName = r.tools.bash, "script.sh"
	if name == "python3" {
		j.interpreter, j.fileName = r.tools.python, "script.py"
	}
	if j.interpreter.file == "" {
		return job{}, failed(gate.InterpreterMissing, "%s was not found when the gate started: install it, and start the gate anew", name)
	}
	switch in.Hook.Dialect {
	case gate.ClaudeCode:
		j.forClaudeCode(in.Hook)
	case gate.AXCode:
		j.env, j.once = axCodeEnv(r.opt.HostEnv, in), true
		return j, nil // it knows of no conversation
	}
	if in.Transcript != nil {
		j.isTranscript = func(string, os.FileInfo) bool { return true }
		if known, ok := in.Transcript.(identified); ok {
			j.isTranscript = known.Is
		}
		for _, path := range []string{in.Transcript.Path(), in.Transcript.RawPath()} {
			if filepath.IsAbs(path) && (len(j.transcripts) == 0 || j.transcripts[0] != path) {
				j.transcripts = append(j.transcripts, path)
			}
		}
	}
	return j, nil
}

// identified may be implemented by a [gate.Transcript] that knows its files by
// more than their paths, at which somebody may have put another since.
//
// Is reports whether a file that was just opened at the path, [gate.Transcript]'s
// Path or RawPath, is the transcript's own. A transcript without it is taken to
// be whatever lies at its paths.
type identified interface {
	Is(path string, about os.FileInfo) bool
}

// maxInline is what the kernel surely takes as one argument (fault size-04); a
// longer line is run as a script, and one that no argument can hold too.
const maxInline = 100_000

// shebang is the interpreter that a script asks for; without a shebang it is
// bash. ok is false for one that is not run (spec/azure.md 20).
func shebang(script string) (name string, ok bool) {
	line := firstLine(script)
	if !strings.HasPrefix(line, "#!") {
		return "bash", true
	}
	switch strings.TrimSpace(line[2:]) {
	case "/bin/bash":
		return "bash", true
	case "/usr/bin/env python3":
		return "python3", true
	}
	return "", false
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimRight(line, "\r")
}

// failsafe begins what a shell does before it becomes the hook. What goes wrong
// there is not the hook's, and a shell may give up with 2, which would be a
// block: 125 is what other programs that start a program exit with.
const failsafe = "trap 'exit 125' EXIT; "

// scriptFile is where a sandbox has the job's script.
func (j job) scriptFile() string { return scriptDir + "/" + j.fileName }

// argv is the command line that runs the job; file is where its script lies.
func (j job) argv(file string) []string {
	switch {
	case j.args != nil:
		return append([]string{j.interpreter.file, "-c", unread}, j.args...)
	case j.script != "":
		return []string{j.interpreter.file, file}
	}
	return []string{j.interpreter.file, "-c", j.inline}
}
