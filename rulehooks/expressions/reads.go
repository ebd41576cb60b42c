package expressions

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Reads reports whether the answer can depend on one of the variables. A name that
// the expression itself binds in a loop counts as the variable.
func (c *Condition) Reads(variables ...string) (reads bool) {
	c.visit(func(e ast.Expr) {
		reads = reads || e.Kind() == ast.IdentKind && slices.Contains(variables, e.AsIdent())
	})
	return reads
}

// Literals are the texts in the expression, each once, in its order; those that are
// patterns too, and keys of maps.
func (c *Condition) Literals() (texts []string) {
	c.visit(func(e ast.Expr) {
		if e.Kind() != ast.LiteralKind {
			return
		}
		if s, is := e.AsLiteral().(types.String); is && !slices.Contains(texts, string(s)) {
			texts = append(texts, string(s))
		}
	})
	return texts
}

func (c *Condition) visit(each func(ast.Expr)) {
	ast.PreOrderVisit(c.tree.Expr(), ast.NewExprVisitor(each))
}

// Members are the names by which the expression asks for members of a variable,
// each once, in its order.
func (c *Condition) Members(variable string) (names []string) {
	of := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == variable }
	c.visit(func(e ast.Expr) {
		name := ""
		switch e.Kind() {
		case ast.SelectKind:
			if s := e.AsSelect(); of(s.Operand()) {
				name = s.FieldName()
			}
		case ast.CallKind:
			call := e.AsCall()
			if slices.Contains([]string{operators.Index, operators.OptIndex, operators.OptSelect}, call.FunctionName()) && of(call.Args()[0]) && call.Args()[1].Kind() == ast.LiteralKind {
				name, _ = call.Args()[1].AsLiteral().Value().(string)
			}
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	return names
}
