package expressions

import (
	"testing"

	"stopgate/gate"
)

// Places are counted in characters, as CEL's own functions count them.
func TestIndexOf(t *testing.T) {
	for _, text := range []string{
		`"tacocat".indexOf("") == 0`, `"tacocat".indexOf("ac") == 1`, `"tacocat".indexOf("none") == -1`, `"tacocat".indexOf("", 3) == 3`, `"tacocat".indexOf("a", 3) == 5`, `"tacocat".indexOf("at", 3) == 5`, `"ta©o©αT".indexOf("α") == 5`, `"ta©o©αT".indexOf("©", 3) == 4`, `"ab".indexOf("b", 9) == -1`, `"ab".indexOf("", 9) == 2`,
		`"tacocat".lastIndexOf("") == 7`, `"tacocat".lastIndexOf("at") == 5`, `"tacocat".lastIndexOf("none") == -1`, `"tacocat".lastIndexOf("", 3) == 3`, `"tacocat".lastIndexOf("a", 3) == 1`, `"tacocat".lastIndexOf("a", 5) == 5`, `"ta©o©αT".lastIndexOf("©") == 4`, `"ta©o©αT".lastIndexOf("©", 3) == 2`, `"ab".lastIndexOf("b", 9) == -1`, `"ab".lastIndexOf("", 9) == 2`, `"a".lastIndexOf("abc") == -1`,
	} {
		if holds, failure := answered(t, asking(gate.Stop, gate.Event{}), text); !holds || failure != nil {
			t.Errorf("%s: %v, %v", text, holds, failure)
		}
	}
	for _, text := range []string{`"a".indexOf("a", -1) == 0`, `"a".lastIndexOf("a", -1) == 0`} {
		if _, failure := answered(t, asking(gate.Stop, gate.Event{}), text); failure == nil || failure.Code != gate.BadExpression {
			t.Errorf("%s: %v", text, failure)
		}
	}
}
