package config

import (
	"stopgate/gate"
	"stopgate/rulehooks/expressions"
)

// maxExpressions bounds what all expressions of one text may have together, in
// bytes: compiling takes longer than any other reading.
const maxExpressions = 256 << 10

// compile compiles an expression that stands somewhere in a value, shift runes
// behind its beginning, and says what is wrong with it where that stands.
func compile[T any](f *findings, path, name string, n *node, shift int, text string, by func(gate.EventName, string) (T, []expressions.Problem), event gate.EventName) (compiled T, ok bool) {
	if f.expressions += min(len(text), expressions.MaxBytes); f.expressions > maxExpressions {
		f.errorf(path, n.pos, "%s: all expressions together are longer than %d bytes", name, maxExpressions)
		return compiled, false
	}
	compiled, problems := by(event, text)
	for _, p := range problems {
		f.errorf(path, f.within(n, shift+p.At), "%s: %s", name, p.Message)
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
	if c, ok := compile(o.findings, o.child("when"), "when", n, 0, n.text, o.compiler.Condition, event); ok {
		return c
	}
	return nil
}
