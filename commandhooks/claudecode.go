package commandhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"stopgate/gate"
)

// claudeCode is the law of Claude Code (spec/claude-code.md 3): a JSON object on
// standard output is read whatever the exit code, 2 blocks in any case, and what
// fails lets the agent go on. Text that is no object says nothing, but is the
// context of a prompt or a session.
func (e ending) claudeCode(event gate.EventName) gate.Verdict {
	failed, ended := e.ended()
	if !ended && !e.unsure {
		return failed
	}
	said, isObject := e.object()
	v := gate.Verdict{Outcome: gate.Allow}
	var fault error
	switch {
	case isObject:
		v, fault = gate.ReadClaudeCodeAnswer(event, said)
	case !e.stdout.cut && bytes.HasPrefix(said, []byte("{")) && deeper(said, maxDepth):
		fault = fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	switch {
	case e.code == 2:
		return e.blocked(v)
	case fault != nil:
		return noVerdict(gate.BadOutput, "standard output is no answer, and Claude Code goes on: %v: %q", fault, head(clean(said), 80))
	case isObject:
		return v
	case !ended:
		return failed
	case e.code != 0:
		return noVerdict(gate.NonzeroExit, "the hook exited with %d, which blocks nothing: 2 does%s", e.code, e.lastWords())
	case e.stdout.cut && bytes.HasPrefix(said, []byte("{")):
		return noVerdict(gate.OutputTooLarge, "the hook wrote more than %d bytes to standard output", keepBytes)
	case event == gate.UserPromptSubmit || event == gate.Start:
		v.AdditionalContext = head(clean(said), gate.ClaudeCodeCharacters-1)
	}
	return v
}

// blocked is an exit 2 with what standard output says beside it: its reason, if
// it blocks too, and its context. Only continue:false is stronger: it lets a Stop
// go (spec/claude-code.md 5, seen with 2.1.332).
func (e ending) blocked(v gate.Verdict) gate.Verdict {
	if v.Outcome == gate.Allow && v.Has(gate.HaltRequested) {
		return v
	}
	b := gate.Verdict{Outcome: gate.Block, AdditionalContext: v.AdditionalContext}
	if v.Outcome == gate.Block {
		b.Reason, b.Notes = v.Reason, v.Notes
	}
	if strings.TrimSpace(b.Reason) == "" {
		b.Reason = strings.TrimSpace(clean(e.stderr.kept))
	}
	return b
}

// object is what the hook wrote to standard output, and whether it begins as an
// object and is JSON.
func (e ending) object() (said []byte, ok bool) {
	said = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(e.stdout.kept), []byte("\ufeff")))
	return said, bytes.HasPrefix(said, []byte("{")) && !e.stdout.cut && json.Valid(said)
}

// maxDepth is how deep JSON may be nested that encoding/json reads. JavaScript reads
// any, so that what is deeper is an answer all the same.
const maxDepth = 10_000

// deeper reports whether a text opens more brackets in one another than depth, what
// stands in quotes left out.
func deeper(text []byte, depth int) bool {
	open, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			open++
		case c == '}' || c == ']':
			open--
		}
		if open > depth {
			return true
		}
	}
	return false
}

// projectDir is the variable in which hooks of Claude Code find the directory of
// the agent's project, wherever the agent works. It is all that they get of the
// host's environment (DESIGN §9), beside what their file sets.
const projectDir = "CLAUDE_PROJECT_DIR"

// envFile is the variable in which hooks on SessionStart find a file to write
// variables into, for the session's commands. A gate has no such commands: what is
// written is gone.
const envFile = "CLAUDE_ENV_FILE"

// forClaudeCode adds what hooks of Claude Code have beside the others: the
// variables of their file, the project's directory, and commands with arguments that no shell reads.
func (j *job) forClaudeCode(h *gate.Hook) {
	j.env = map[string]string{}
	for name, value := range h.Env {
		if gate.HookVariable(name) && !strings.Contains(value, "\x00") {
			j.env[name] = value
		}
	}
	if j.project != "" && !strings.Contains(j.project, "\x00") {
		j.env[projectDir] = j.project
	}
	if h.Event == gate.Start {
		j.env[envFile] = os.DevNull
	}
	if h.Args == nil {
		return
	}
	for _, word := range append([]string{h.Command}, h.Args...) {
		j.args = append(j.args, strings.ReplaceAll(word, "${"+projectDir+"}", j.project))
	}
}

// unread is what bash does with a command that it does not read: it looks for
// the program and becomes it, with the arguments as they are.
const unread = `exec -- "$0" "$@"`
