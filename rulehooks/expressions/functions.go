package expressions

import (
	"path"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"stopgate/rulehooks/shell"
)

// Call is one program that a shell command would start, as `shell` gives it.
type Call struct {
	// Program is its name without the directory; "" where only a running shell
	// knows it.
	Program string `cel:"program"`
	// Args are the words that it gets, without their quotes.
	Args         []string      `cel:"args"`
	Redirections []Redirection `cel:"redirections"`
	// Literal: every word is known. If not, a shell would put something in the
	// place of a variable or a pattern, or add more, or the text could only be
	// guessed at.
	Literal bool `cel:"literal"`
	// Opaque: it may run what is not among the calls.
	Opaque bool `cel:"opaque"`
}

// Redirection is one of a call's.
type Redirection struct {
	Operator string `cel:"operator"` // ">", ">>", "<", …
	Target   string `cel:"target"`
	Literal  bool   `cel:"literal"`
}

// callOf is a command as expressions see it.
func callOf(c shell.Command) Call {
	call := Call{Program: c.Name(), Args: []string{}, Redirections: []Redirection{}, Literal: c.Program.Literal && !c.Guessed && !c.Partial, Opaque: c.Opaque()}
	for _, w := range c.Args {
		call.Args = append(call.Args, w.Text)
		call.Literal = call.Literal && w.Literal
	}
	for _, r := range c.Redirections {
		call.Redirections = append(call.Redirections, Redirection{r.Operator, r.Target.Text, r.Target.Literal})
	}
	return call
}

// The overloads of shell: a text, and a program with its arguments.
const (
	shellOverload     = "shell_string"
	shellListOverload = "shell_list"
)

// maxMade is how long a text may be that an expression makes, and maxParts how
// many parts one may be split into: what a function would make is asked before
// it does, since the bounds of CEL's own see it only then.
const (
	maxMade  = 4 << 20
	maxParts = 10_000
)

// functions are those that expressions have beside CEL's own and its library of
// strings, of which the ones that could make a long text of a short one are
// bounded here, and the ones that could take the time of two texts multiplied take that
// of both. format is left out: what it makes cannot be told beforehand.
func functions() []cel.EnvOption {
	text, texts := cel.StringType, cel.ListType(cel.StringType)
	calls := cel.ListType(cel.ObjectType("expressions.Call"))
	return []cel.EnvOption{
		cel.CostModel(costs()...),
		cel.Function("shell",
			cel.Overload(shellOverload, []*cel.Type{text}, calls, cel.LateFunctionBinding()),
			cel.Overload(shellListOverload, []*cel.Type{texts}, calls, cel.LateFunctionBinding())),
		cel.Function("path.clean", cel.Overload("path_clean", []*cel.Type{text}, text, ofText(path.Clean))),
		cel.Function("path.base", cel.Overload("path_base", []*cel.Type{text}, text, ofText(path.Base))),
		cel.Function("path.ext", cel.Overload("path_ext", []*cel.Type{text}, text, ofText(path.Ext))),
		cel.Function("path.within", cel.Overload("path_within", []*cel.Type{text, text}, cel.BoolType,
			cel.BinaryBinding(func(name, root ref.Val) ref.Val {
				return types.Bool(within(string(name.(types.String)), string(root.(types.String))))
			}))),
		cel.Function("format", cel.DisableDeclaration(true), cel.MemberOverload("string_format", []*cel.Type{text, cel.ListType(cel.DynType)}, text)),
		cel.Function("replace",
			cel.MemberOverload("string_replace_string_string", []*cel.Type{text, text, text}, text, cel.FunctionBinding(replaced)),
			cel.MemberOverload("string_replace_string_string_int", []*cel.Type{text, text, text, cel.IntType}, text, cel.FunctionBinding(replaced))),
		cel.Function("indexOf",
			cel.MemberOverload("string_index_of_string", []*cel.Type{text, text}, cel.IntType, cel.FunctionBinding(indexed)),
			cel.MemberOverload("string_index_of_string_int", []*cel.Type{text, text, cel.IntType}, cel.IntType, cel.FunctionBinding(indexed))),
		cel.Function("lastIndexOf",
			cel.MemberOverload("string_last_index_of_string", []*cel.Type{text, text}, cel.IntType, cel.FunctionBinding(lastIndexed)),
			cel.MemberOverload("string_last_index_of_string_int", []*cel.Type{text, text, cel.IntType}, cel.IntType, cel.FunctionBinding(lastIndexed))),
		cel.Function("split",
			cel.MemberOverload("string_split_string", []*cel.Type{text, text}, texts, cel.FunctionBinding(parted)),
			cel.MemberOverload("string_split_string_int", []*cel.Type{text, text, cel.IntType}, texts, cel.FunctionBinding(parted))),
		cel.Function("join",
			cel.MemberOverload("list_join", []*cel.Type{texts}, text, cel.FunctionBinding(joined)),
			cel.MemberOverload("list_join_string", []*cel.Type{texts, text}, text, cel.FunctionBinding(joined))),
	}
}

// ofText binds a function of one text.
func ofText(f func(string) string) cel.OverloadOpt {
	return cel.UnaryBinding(func(v ref.Val) ref.Val { return types.String(f(string(v.(types.String)))) })
}

// within reports whether a path is a directory or lies below it, by its letters
// alone: links are not followed, and of a relative path it is not known where it
// lies, so it is below none that is absolute.
func within(name, root string) bool {
	name, root = path.Clean(name), path.Clean(root)
	switch {
	case name == root:
		return true
	case root == ".":
		return !path.IsAbs(name) && name != ".." && !strings.HasPrefix(name, "../")
	case root == "/":
		return path.IsAbs(name)
	}
	rest, below := strings.CutPrefix(name, root+"/")
	return below && rest != ".." && !strings.HasPrefix(rest, "../")
}

// replaced is strings.Replace, bounded.
func replaced(args ...ref.Val) ref.Val {
	text, old, by := string(args[0].(types.String)), string(args[1].(types.String)), string(args[2].(types.String))
	times := strings.Count(text, old)
	if len(args) == 4 {
		if n := args[3].(types.Int); n >= 0 && n < types.Int(times) {
			times = int(n)
		}
	}
	if len(text)+times*max(len(by)-len(old), 0) > maxMade {
		return tooLong("replace")
	}
	return types.String(strings.Replace(text, old, by, times))
}

// indexed is the first place of a text in another, from a place on; both are counted
// in characters, and -1 is none.
func indexed(args ...ref.Val) ref.Val {
	text, part, from := string(args[0].(types.String)), string(args[1].(types.String)), 0
	if len(args) == 3 {
		at, err := bytesTo(text, args[2].(types.Int))
		if err != nil {
			return err
		}
		from = at
	}
	if at := strings.Index(text[from:], part); at >= 0 {
		return types.Int(utf8.RuneCountInString(text[:from+at]))
	}
	return types.Int(-1)
}

// lastIndexed is the last place, which with a third argument is at most that one. A
// place behind the text is none, as in CEL's own.
func lastIndexed(args ...ref.Val) ref.Val {
	text, part := string(args[0].(types.String)), string(args[1].(types.String))
	if len(args) == 3 {
		at, err := bytesTo(text, args[2].(types.Int))
		switch {
		case err != nil:
			return err
		case at == len(text) && part != "":
			return types.Int(-1)
		}
		text = text[:min(at+len(part), len(text))]
	}
	if at := strings.LastIndex(text, part); at >= 0 {
		return types.Int(utf8.RuneCountInString(text[:at]))
	}
	return types.Int(-1)
}

// bytesTo is how many bytes the first characters of a text have, all of it where it has
// fewer.
func bytesTo(text string, runes types.Int) (int, ref.Val) {
	if runes < 0 {
		return 0, types.NewErr("index out of range: %d", runes)
	}
	for at := range text {
		if runes == 0 {
			return at, nil
		}
		runes--
	}
	return len(text), nil
}

// parted is strings.SplitN, bounded.
func parted(args ...ref.Val) ref.Val {
	text, at, most := string(args[0].(types.String)), string(args[1].(types.String)), -1
	if len(args) == 3 {
		most = int(max(min(args[2].(types.Int), maxParts+1), -1))
	}
	parts := strings.Count(text, at) + 1
	if most >= 0 {
		parts = min(parts, most)
	}
	if parts > maxParts {
		return tooLong("split")
	}
	return types.DefaultTypeAdapter.NativeToValue(strings.SplitN(text, at, most))
}

// joined is strings.Join, bounded.
func joined(args ...ref.Val) ref.Val {
	between := ""
	if len(args) == 2 {
		between = string(args[1].(types.String))
	}
	list := args[0].(traits.Lister)
	var parts []string
	size := 0
	for it := list.Iterator(); it.HasNext() == types.True; {
		part, ok := it.Next().(types.String)
		if !ok {
			return types.NewErr("join: the list holds what is no text")
		}
		if size += len(part) + len(between); size > maxMade || len(parts) == maxParts {
			return tooLong("join")
		}
		parts = append(parts, string(part))
	}
	return types.String(strings.Join(parts, between))
}

func tooLong(function string) ref.Val {
	return types.NewErr("%s would make more than %d bytes, or %d parts", function, maxMade, maxParts)
}
