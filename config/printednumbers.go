package config

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// numberTests are the tests by which [[ … ]] compares numbers.
var numberTests = []syntax.BinTestOperator{syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr}

// numeral is a number, a variable of the shell's own that is one, or all of a list.
var numeral = regexp.MustCompile(`\A(?:[0-9]+|[@*]|\$[#?$]|\$\{#[A-Za-z_]\w*\})\z`)

// numbers looks for what is worked out as a number in a part of shell. bash runs the
// command in the text of a variable that looks like an element of a list, as a[$(x)],
// with the outputs that the shell has; and that text may come from anywhere.
func (r *textReader) numbers(n syntax.Node) {
	switch c := n.(type) {
	case *syntax.ArithmExp:
		r.computed(c.X)
	case *syntax.ArithmCmd:
		r.computed(c.X)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			r.computed(x)
		}
	case *syntax.CStyleLoop:
		r.computed(c.Init, c.Cond, c.Post)
	case *syntax.ParamExp:
		r.computed(c.Index)
		if c.Slice != nil {
			r.computed(c.Slice.Offset, c.Slice.Length)
		}
	case *syntax.Assign:
		r.computed(c.Index)
	case *syntax.ArrayElem:
		r.computed(c.Index)
	case *syntax.BinaryTest:
		if x, ok := c.X.(*syntax.Word); ok && slices.Contains(numberTests, c.Op) {
			y, _ := c.Y.(*syntax.Word)
			r.computed(x, y)
		}
	case *syntax.UnaryTest:
		if c.Op == syntax.TsVarSet || c.Op == syntax.TsRefVar {
			r.unseen(computes)
		}
	}
}

const computes = "it computes with what a variable holds"

func (r *textReader) computed(list ...syntax.ArithmExpr) {
	for _, x := range list {
		if w, word := x.(*syntax.Word); x == nil || word && w == nil {
			continue
		}
		syntax.Walk(x, func(n syntax.Node) bool {
			w, ok := n.(*syntax.Word)
			if ok && !numeral.MatchString(strings.Trim(printedShell(w), `"`)) {
				r.unseen(computes)
			}
			return !ok
		})
	}
}

// printedShell is a node as it is written.
func printedShell(n syntax.Node) string {
	var b bytes.Buffer
	if err := syntax.NewPrinter().Print(&b, n); err != nil {
		return unplain
	}
	return b.String()
}

// alikeInShells reports whether a text that sh runs is the same to all that stand for
// it: dash, which knows POSIX alone, and bash, which knows more. To dash &> is an end
// of one command and the beginning of another.
func alikeInShells(text string, file *syntax.File) bool {
	posix, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), "")
	if err != nil || printedShell(posix) != printedShell(file) {
		return false
	}
	alike := true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch c := n.(type) {
		case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause, *syntax.ProcSubst, *syntax.ArrayExpr, *syntax.CoprocClause, *syntax.TimeClause, *syntax.ExtGlob:
			alike = false
		case *syntax.FuncDecl:
			alike = alike && !c.RsrvWord
		case *syntax.DeclClause:
			alike = alike && (c.Variant.Value == "export" || c.Variant.Value == "local" || c.Variant.Value == "readonly")
		case *syntax.Redirect:
			alike = alike && c.Op != syntax.RdrAll && c.Op != syntax.AppAll && c.Op != syntax.WordHdoc
		case *syntax.SglQuoted:
			alike = alike && !c.Dollar
		case *syntax.DblQuoted:
			alike = alike && !c.Dollar
		case *syntax.ParamExp:
			alike = alike && !c.Excl && c.Slice == nil && c.Repl == nil && c.Index == nil
		}
		return alike
	})
	return alike
}
