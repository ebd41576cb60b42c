package expressions

import (
	"slices"

	"cel.dev/cel-go/common/ast"
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
