package config

import (
	"stopgate/gate"
	"stopgate/rulehooks/expressions"
)

// maxExpressions bounds what all expressions of one text may have together, in
// bytes: compiling takes longer than any other reading.
const maxExpressions = 256 << 10

// compile compiles what a value says, and tells what is wrong with it where that
// stands.
func compile[T any](f *findings, path, name string, n *node, by func(gate.EventName, string) (T, []expressions.Problem), event gate.EventName) (compiled T, ok bool) {
	if f.expressions += min(len(n.text), expressions.MaxBytes); f.expressions > maxExpressions {
		f.errorf(path, n.pos, "%s: all expressions together are longer than %d bytes", name, maxExpressions)
		return compiled, false
	}
	compiled, problems := by(event, n.text)
	for _, p := range problems {
		f.errorf(path, f.within(n, p.At), "%s: %s", name, p.Message)
	}
	return compiled, problems == nil
}

// readWhen reads a hook's condition: ours, docs/rules.md. Where the event is not
// known it is not known either what may be asked.
func readWhen(o *object, event gate.EventName) gate.Condition {
	n := o.typed("when", textKind, "text")
	if n == nil || event == "" {
		return nil
	}
	if c, ok := compile(o.findings, o.child("when"), "when", n, o.compiler.Condition, event); ok {
		return c
	}
	return nil
}
