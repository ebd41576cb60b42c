package config

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"stopgate/gate"
	"stopgate/rulehooks/expressions"
)

// endless says what ends a loop that its hook does not: maxRejections caps prompt
// hooks alone (spec/azure.md 35, 36), and the last turn is the agent's.
const endless = "maxRejections limits prompt hooks alone, so that the agent is sent back until its max_turns or a person ends it"

// changing are the variables of a Stop that another try of the agent can change;
// the rest is the same in every round of a loop.
var changing = []string{"final_output", "tools_used", "turn"}

// checkLoop warns about a Stop hook that refuses every round of a loop alike, as far
// as that is certain.
func checkLoop(o *object, h *gate.Hook) {
	if when, narrowed := h.When.(*expressions.Condition); h.Event != gate.Stop || h.Shadow || narrowed && when.Reads(changing...) {
		return
	}
	switch h.Type {
	case gate.RuleHook:
		checkRuleLoop(o, h)
	case gate.CommandHook:
		for _, f := range []struct{ name, text string }{{"command", h.Command}, {"script", h.Script}} {
			if alwaysBlocks(f.text) {
				o.warnf(o.child(f.name), o.place(f.name), "%s blocks every Stop, whatever the agent answers: look at final_output or stop_rejection_count on "+
					"standard input; %s", f.name, endless)
			}
		}
	}
}

// checkRuleLoop: the first case that holds decides, so that one before it that
// allows is a way out.
func checkRuleLoop(o *object, h *gate.Hook) {
	rules, _ := h.Rules.(expressions.Rules)
	for i, r := range rules {
		switch {
		case r.If == nil: // it is an error
			return
		case r.Then == gate.Allow && (r.If.Reads(changing...) || strings.TrimSpace(r.If.String()) == "true"):
			return
		case r.Then == gate.Block && !r.If.Reads(changing...) && strings.TrimSpace(r.If.String()) != "false":
			at := &object{findings: o.findings, path: o.child(fmt.Sprintf("rules[%d]", i)), node: o.list("rules")[i]}
			o.warnf(at.child("if"), at.place("if"), "where this holds every Stop is blocked, whatever the agent does: it asks for none of %s; %s; "+
				"a rule before it can give way, as if: turn > 20, then: allow", strings.Join(changing, ", "), endless)
			return
		}
	}
}

// alwaysBlocks reports whether a text of bash is nothing but words to print and an
// exit, and blocks a Stop. It is run by nobody: what is not certain is no.
func alwaysBlocks(text string) bool {
	file, err := parseBash(text)
	if err != nil || strings.HasPrefix(text, "#!") && !strings.HasPrefix(text, shebangs[0]) {
		return false
	}
	r := constantRun{}
	for _, s := range file.Stmts {
		if !r.statement(s) {
			return false
		}
		if r.ended {
			break
		}
	}
	switch r.code {
	case "", "0":
		v, err := gate.ReadAnswer(gate.Stop, []byte(strings.TrimSpace(r.out.String())))
		return err == nil && v.Outcome == gate.Block && strings.TrimSpace(v.Reason) != ""
	case "2": // without a reason it counts as approved
		return strings.TrimSpace(r.err.String()) != ""
	}
	return false
}

// constantRun is what a script prints and exits with that does the same each time.
type constantRun struct {
	out, err strings.Builder
	code     string // of an exit
	ended    bool
}

// statement takes one statement in; false: what it does is not known.
func (r *constantRun) statement(s *syntax.Stmt) bool {
	if s.Background || s.Coprocess || s.Negated {
		return false
	}
	if both, is := s.Cmd.(*syntax.BinaryCmd); is && both.Op == syntax.AndStmt && len(s.Redirs) == 0 { // all that is known here succeeds
		return r.statement(both.X) && (r.ended || r.statement(both.Y))
	}
	call, is := s.Cmd.(*syntax.CallExpr)
	if !is || len(call.Assigns) > 0 {
		return false
	}
	words, constant := constantWords(call.Args)
	if !constant {
		return false
	}
	into, known := r.target(s.Redirs)
	if !known {
		return false
	}
	switch program, args := words[0], words[1:]; {
	case program == "exit" && len(args) <= 1:
		r.code, r.ended = strings.Join(args, ""), true
	case program == "echo" && (len(args) == 0 || !strings.HasPrefix(args[0], "-")):
		into.WriteString(strings.Join(args, " ") + "\n")
	case program == "printf" && len(args) == 1 && !strings.ContainsAny(args[0], `%\`):
		into.WriteString(args[0])
	case program == "printf" && len(args) == 2 && (args[0] == "%s" || args[0] == `%s\n`):
		into.WriteString(args[1])
	case program == "true" || program == ":" || program == "set":
	default:
		return false
	}
	return true
}

// target is where a statement prints to.
func (r *constantRun) target(redirections []*syntax.Redirect) (into *strings.Builder, known bool) {
	into = &r.out
	for _, d := range redirections {
		if d.Op != syntax.DplOut || d.Word.Lit() != "2" || d.N != nil && d.N.Value != "1" {
			return nil, false
		}
		into = &r.err
	}
	return into, true
}

// constantWords are words without anything that a shell puts in.
func constantWords(words []*syntax.Word) (texts []string, constant bool) {
	for _, w := range words {
		constant = true
		syntax.Walk(w, func(n syntax.Node) bool {
			switch n.(type) {
			case nil, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
				return constant
			}
			constant = false
			return false
		})
		if !constant {
			return nil, false
		}
		text, err := expand.Literal(nil, w)
		if err != nil {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, constant
}
