package jq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// options are the command line, read.
type options struct {
	filter     string
	files      []string
	variables  []variable
	positional []any

	nullInput, rawInput, slurp  bool
	raw, join, raw0, ascii      bool
	exitStatus, help, version   bool
	fromFile, filterGiven, done bool
	indent                      string // empty: compact
	restAre                     func(string) (any, error)
}

type variable struct {
	name  string
	value any
}

func parseArgs(args []string) (*options, error) {
	o := &options{indent: "  ", positional: []any{}}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		var err error
		switch {
		case o.done || arg == "-" || !strings.HasPrefix(arg, "-"):
			err = o.positionalArg(arg)
		case arg == "--":
			o.done = true
		case strings.HasPrefix(arg, "--"):
			args, err = o.long(arg, args)
		default:
			args, err = o.short(arg, args)
		}
		if err != nil {
			return nil, err
		}
	}
	if o.help || o.version {
		return o, nil
	}
	if !o.filterGiven {
		return nil, errors.New("a filter is missing; try jq --help")
	}
	if o.fromFile {
		b, err := os.ReadFile(o.filter)
		if err != nil {
			return nil, err
		}
		o.filter = string(b)
	}
	return o, nil
}

func (o *options) positionalArg(arg string) error {
	switch {
	case !o.filterGiven:
		o.filter, o.filterGiven = arg, true
	case o.restAre != nil:
		v, err := o.restAre(arg)
		if err != nil {
			return err
		}
		o.positional = append(o.positional, v)
	default:
		o.files = append(o.files, arg)
	}
	return nil
}

func (o *options) short(arg string, args []string) ([]string, error) {
	for _, letter := range arg[1:] {
		name, ok := map[rune]string{'n': "--null-input", 'R': "--raw-input", 's': "--slurp", 'c': "--compact-output",
			'r': "--raw-output", 'j': "--join-output", 'a': "--ascii-output", 'S': "--sort-keys", 'e': "--exit-status",
			'f': "--from-file", 'h': "--help", 'V': "--version", 'M': "--monochrome-output", 'C': "--color-output"}[letter]
		if !ok {
			return nil, fmt.Errorf("unknown option -%c in %q; try jq --help", letter, arg)
		}
		var err error
		if args, err = o.long(name, args); err != nil {
			return nil, err
		}
	}
	return args, nil
}

func (o *options) long(arg string, args []string) ([]string, error) {
	switch arg {
	case "--null-input":
		o.nullInput = true
	case "--raw-input":
		o.rawInput = true
	case "--slurp":
		o.slurp = true
	case "--compact-output":
		o.indent = ""
	case "--raw-output":
		o.raw = true
	case "--join-output":
		o.raw, o.join = true, true
	case "--raw-output0":
		o.raw, o.raw0 = true, true
	case "--ascii-output":
		o.ascii = true
	case "--tab":
		o.indent = "\t"
	case "--exit-status":
		o.exitStatus = true
	case "--from-file":
		o.fromFile = true
	case "--args":
		o.restAre = func(s string) (any, error) { return s, nil }
	case "--jsonargs":
		o.restAre = func(s string) (any, error) { return decodeOne("positional argument", []byte(s)) }
	case "--help":
		o.help = true
	case "--version":
		o.version = true
	case "--sort-keys", "--monochrome-output", "--color-output", "--unbuffered":
	case "--indent":
		if len(args) < 1 {
			return nil, errors.New("--indent takes a number")
		}
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 0 || n > 7 {
			return nil, fmt.Errorf("--indent takes a number from 0 to 7, not %q", args[0])
		}
		o.indent = strings.Repeat(" ", n)
		return args[1:], nil
	case "--arg", "--argjson", "--slurpfile", "--rawfile":
		if len(args) < 2 {
			return nil, fmt.Errorf("%s takes a name and a value", arg)
		}
		value, err := variableValue(arg, args[0], args[1])
		if err != nil {
			return nil, err
		}
		o.variables = append(o.variables, variable{args[0], value})
		return args[2:], nil
	default:
		return nil, fmt.Errorf("unknown option %s; try jq --help", arg)
	}
	return args, nil
}

func variableValue(option, name, value string) (any, error) {
	switch option {
	case "--argjson":
		return decodeOne("--argjson "+name, []byte(value))
	case "--arg":
		return value, nil
	}
	b, err := os.ReadFile(value)
	if err != nil {
		return nil, err
	}
	if option == "--rawfile" {
		return string(b), nil
	}
	dec := newDecoder(bytes.NewReader(b))
	all := []any{}
	for {
		var v any
		if err := dec.Decode(&v); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", value, err)
		}
		all = append(all, v)
	}
}

func decodeOne(what string, b []byte) (any, error) {
	dec := newDecoder(bytes.NewReader(b))
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("%s is no JSON: %q", what, b)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("%s is more than one JSON value: %q", what, b)
	}
	return v, nil
}

// newDecoder keeps numbers as they are written.
func newDecoder(r io.Reader) *json.Decoder {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	return dec
}
