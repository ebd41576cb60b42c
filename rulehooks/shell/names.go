package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// tables are the arrays by which shells know commands by other names: those of bash, and of
// zsh, which are everyday words and count only where a member is set.
var tables = map[string]bool{"BASH_CMDS": true, "BASH_ALIASES": true,
	"aliases": false, "dis_aliases": false, "galiases": false, "saliases": false, "functions": false, "dis_functions": false, "commands": false, "builtins": false}

// runs reports whether to set a variable is to say what is run.
func runs(name string) bool {
	return runsValue[name] || loadsValue[name] || tables[name] || strings.HasPrefix(name, "BASH_FUNC_")
}

// renames reports whether an assignment, or one of a member, makes a name a command's.
func renames(a *syntax.Assign) bool {
	if a.Name == nil {
		return false
	}
	_, table := tables[a.Name.Value]
	return table && (tables[a.Name.Value] || a.Index != nil || a.Array != nil)
}

// setsUnseen reports whether a builtin sets a variable by a name that is not known, or
// one that says what is run. Where the name stands unquoted, [reader.assigned]
// has the value too.
func setsUnseen(name string, args []Word) bool {
	var names []Word
	switch name {
	case "declare", "typeset", "export", "readonly", "local", "integer", "float":
		names = args
	case "read":
		names, _ = operands(args, "adinNptu", nil)
		names = append(names, valuesOf(args, "a")...)
	case "mapfile", "readarray":
		names, _ = operands(args, "dnOsuCc", nil)
	case "printf":
		names = valuesOf(args[:min(2, len(args))], "v")
	case "getopts":
		names = args[min(1, len(args)):min(2, len(args))]
	case "wait":
		names = valuesOf(args, "p")
	}
	return slices.ContainsFunc(names, unseen)
}

// unseen reports whether an argument sets such a variable.
func unseen(w Word) bool {
	name, value, _ := strings.Cut(w.Text, "=")
	if !w.Literal && strings.ContainsAny(name, "$`") {
		return true
	}
	name = strings.TrimSuffix(name, "+")
	name, _, member := strings.Cut(name, "[")
	_, table := tables[name]
	value, _, _ = strings.Cut(value, "[") // declare -n x=BASH_CMDS
	return runs(name) || table && member || runs(value)
}

// valuesOf are the values of an option, be it the last of some letters.
func valuesOf(args []Word, option string) (all []Word) {
	for i, w := range args {
		before, value, is := strings.Cut(w.Text, option)
		switch {
		case !is || !strings.HasPrefix(before, "-") || strings.HasPrefix(before, "--"):
		case value != "":
			all = append(all, Word{value, w.Literal})
		case i+1 < len(args):
			all = append(all, args[i+1])
		}
	}
	return all
}

// rereads are the names of a shell's options with which it reads a text otherwise: ! is another
// text, A=b a variable wherever it stands, {a,b} one word.
var rereads = map[string]bool{"histexpand": true, "history": true, "keyword": true, "braceexpand": true}

// redefines reports whether a builtin gives commands other names, or has those of the
// past run again.
func redefines(name string, args []Word) bool {
	has := func(matches func(text string) bool) bool {
		return slices.ContainsFunc(args, func(w Word) bool { return matches(w.Text) })
	}
	switch name {
	case "alias":
		return has(func(text string) bool { return strings.Contains(text, "=") })
	case "hash":
		return has(func(text string) bool { return strings.HasPrefix(text, "-p") || strings.Contains(text, "=") })
	case "enable":
		return has(func(text string) bool { return strings.HasPrefix(text, "-") && strings.Contains(text, "f") })
	case "history":
		return has(func(text string) bool { return strings.HasPrefix(text, "-") && strings.ContainsAny(text, "anprsw") })
	case "fc":
		return !has(func(text string) bool { return strings.HasPrefix(text, "-") && strings.ContainsAny(text, "l") })
	case "r", "zmodload", "autoload":
		return true
	case "set":
		return has(func(text string) bool {
			return rereads[text] || strings.HasPrefix(text, "-") && strings.ContainsAny(text, "Hk") || strings.HasPrefix(text, "+") && strings.Contains(text, "B")
		})
	}
	return false
}
