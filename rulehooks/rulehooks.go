// Package rulehooks asks hooks that need neither a script nor a model: the rules
// are in the hook, compiled by package expressions, or in the program. The latter are
// the five packs that AX Code brings along (spec/ax-code.md, packs), with the same
// events, matchers and effects.
package rulehooks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"stopgate/gate"
	"stopgate/rulehooks/shell"
)

// Evaluate asks a rule hook; it is a [gate.EvaluatorFunc]. What a rule only logs
// is the evidence's standard error, as of a command that does the same. A rule
// that is not known is no verdict.
func Evaluate(ctx context.Context, in gate.Input) gate.Verdict {
	if in.Hook.Rules != nil {
		return in.Hook.Rules.Evaluate(ctx, in)
	}
	switch in.Hook.Pack {
	case "format-after-edit":
		return gate.Verdict{Outcome: gate.Allow, AdditionalContext: "Files were edited: run the project's formatter on them before you go on."}
	case "block-force-push":
		return blockForcePush(ctx, in.Context)
	case "require-tests-on-stop":
		return logged("The agent stops: see that the project's tests were run and pass.")
	case "protect-env-files":
		return protectEnvFiles(in.Context)
	case "log-bash-commands":
		return logged(gate.FirstRunes(strings.Join(commandsIn(in.Context), "\n"), loggedRunes))
	}
	return gate.Verdict{Outcome: gate.NoVerdict, Failure: &gate.Failure{Code: gate.Internal, Message: fmt.Sprintf("there is no rule %q", in.Hook.Pack)}}
}

// logged lets go on and keeps a text in the record.
func logged(text string) gate.Verdict {
	return gate.Verdict{Outcome: gate.Allow, Evidence: &gate.Evidence{Stderr: gate.CutEvidence(text)}}
}

// blockForcePush reads the commands as a shell would (spec/ax-code.md 23). What it
// cannot read to the end, within the budget or in time, it does not let pass.
func blockForcePush(ctx context.Context, args []byte) gate.Verdict {
	p := pushes{shell.NewBudget(ctx)}
	switch {
	case slices.ContainsFunc(commandsIn(args), func(text string) bool { return p.anyForced(text, nil) }):
		return gate.Verdict{Outcome: gate.Block, Reason: "Blocked force push by block-force-push hook"}
	case p.budget.Spent():
		return gate.Verdict{Outcome: gate.Block, Reason: "Blocked by block-force-push hook: the command is too involved to tell whether it forces a push; run it in simpler parts"}
	}
	return gate.Verdict{Outcome: gate.Allow}
}

// protectEnvFiles warns, and blocks nothing.
func protectEnvFiles(args []byte) gate.Verdict {
	if name := envFile.FindStringSubmatch(texts(args)); name != nil {
		return logged(fmt.Sprintf("Warning: the call names %s, which may hold secrets.", gate.FirstRunes(name[1], loggedRunes)))
	}
	return gate.Verdict{Outcome: gate.Allow}
}

// envFile is .env, or one of its kind as .env.local, wherever it lies.
var envFile = regexp.MustCompile(`(?:^|[^\w.-])(\.env(?:\.[\w-]+)*)(?:$|[^\w.-])`)

// loggedRunes is how much of a command is logged.
const loggedRunes = 500

// commandsIn are what may be the shell command in a tool's arguments, each a
// text, or the words that some hosts start a shell with. Hosts name it
// differently, and pass over the names that are another's: of several, any may
// be the one that is run.
func commandsIn(args []byte) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) != nil {
		return nil
	}
	var commands []string
	for _, name := range []string{"command", "cmd", "code"} {
		var text string
		var words []string
		switch {
		case json.Unmarshal(members[name], &text) == nil && text != "":
			commands = append(commands, text)
		case json.Unmarshal(members[name], &words) == nil && len(words) > 0:
			for i, w := range words {
				words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
			}
			commands = append(commands, strings.Join(words, " "))
		}
	}
	return commands
}

// texts are all strings in a tool's arguments, a line each.
func texts(args []byte) string {
	var b strings.Builder
	dec := json.NewDecoder(bytes.NewReader(args))
	for {
		token, err := dec.Token()
		if err != nil {
			return b.String()
		}
		if text, ok := token.(string); ok {
			b.WriteString(text)
			b.WriteByte('\n')
		}
	}
}
