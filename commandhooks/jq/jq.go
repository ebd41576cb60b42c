// Package jq is a jq for hosts that have none: scripts of command hooks call it
// all the time.
//
// The language is gojq's. Of the program's options it has those that scripts
// use; an unknown one is refused, never ignored. Two things differ from jq:
// objects come out with their keys sorted, and there is no colour.
package jq

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/itchyny/gojq"
)

// Exit codes of jq's manual.
const (
	exitOK      = 0
	exitFalse   = 1 // -e, and the last output was false or null
	exitUsage   = 2 // also unreadable files
	exitCompile = 3
	exitNothing = 4 // -e, and there was no output
	exitError   = 5
)

// JQ runs jq with the arguments after the program's name, and answers its exit
// code. Files that the arguments name are read; input comes from stdin when
// they name none.
func JQ(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parseArgs(args)
	if err != nil {
		fmt.Fprintf(stderr, "jq: %v\n", err)
		return exitUsage
	}
	if o.help {
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	if o.version {
		fmt.Fprintln(stdout, "jq-1.7 (gojq)")
		return exitOK
	}
	code, err := compile(o)
	if err != nil {
		fmt.Fprintf(stderr, "jq: error: %v\njq: 1 compile error\n", err)
		return exitCompile
	}
	in := newInputs(o, stdin)
	defer in.close()
	return run(o, code(in), in, stdout, stderr)
}

const usage = `Usage: jq [OPTIONS] FILTER [FILES...]

  -n, --null-input        null as the only input
  -R, --raw-input         each line is a string
  -s, --slurp             all inputs in one array, or one string with -R
  -c, --compact-output    one line per output
  -r, --raw-output        strings without quotes
  -j, --join-output       as -r, no newlines
      --raw-output0       as -r, NUL after each output
  -a, --ascii-output      only ASCII, everything else escaped
  -S, --sort-keys         keys sorted (they always are)
      --tab, --indent N   how to indent
  -e, --exit-status       exit 1 for false or null, 4 for nothing
  -f, --from-file FILE    the filter is in a file
      --arg NAME VALUE, --argjson NAME JSON
      --slurpfile NAME FILE, --rawfile NAME FILE
      --args, --jsonargs  what follows are positional arguments
  -h, --help, -V, --version
`

// compile answers a function that binds the inputs, which gojq wants at
// compile time.
func compile(o *options) (func(*inputs) func(any) gojq.Iter, error) {
	query, err := gojq.Parse(o.filter)
	if err != nil {
		return nil, err
	}
	var names []string
	var values []any
	for _, v := range o.variables {
		names, values = append(names, "$"+v.name), append(values, v.value)
	}
	named := map[string]any{}
	for _, v := range o.variables {
		named[v.name] = v.value
	}
	names = append(names, "$ARGS")
	values = append(values, map[string]any{"named": named, "positional": o.positional})
	build := func(in gojq.Iter) (*gojq.Code, error) {
		return gojq.Compile(query, gojq.WithVariables(names), gojq.WithEnvironLoader(os.Environ), gojq.WithInputIter(in))
	}
	if _, err := build(gojq.NewIter[any]()); err != nil {
		return nil, err
	}
	return func(in *inputs) func(any) gojq.Iter {
		code, err := build(in)
		if err != nil { // the same query compiled a line above
			return func(any) gojq.Iter { return gojq.NewIter[any](err) }
		}
		return func(v any) gojq.Iter { return code.Run(v, values...) }
	}, nil
}

// run applies the filter to each input. An error of the filter ends that input
// alone.
func run(o *options, filter func(any) gojq.Iter, in *inputs, stdout, stderr io.Writer) int {
	out := &output{options: o, w: stdout}
	exit := exitOK
	one := func(v any) (halt bool) {
		results := filter(v)
		for {
			result, ok := results.Next()
			if !ok {
				return false
			}
			if err, bad := result.(error); bad {
				if h, ok := errors.AsType[*gojq.HaltError](err); ok {
					exit = halted(h, stderr)
					return true
				}
				fmt.Fprintf(stderr, "jq: error: %v\n", err)
				exit = exitError
				return false
			}
			if err := out.put(result); err != nil {
				fmt.Fprintf(stderr, "jq: error: %v\n", err)
				exit = exitUsage
				return true
			}
		}
	}
	if o.nullInput {
		if one(nil) {
			return exit
		}
	} else {
		for {
			v, ok := in.Next()
			if !ok {
				break
			}
			if err, bad := v.(error); bad {
				fmt.Fprintf(stderr, "jq: error: %v\n", err)
				return exitUsage
			}
			if one(v) {
				return exit
			}
		}
	}
	if exit == exitOK && in.lost {
		exit = exitUsage
	}
	if exit != exitOK || !o.exitStatus {
		return exit
	}
	switch {
	case !out.any:
		return exitNothing
	case out.last == nil || out.last == false:
		return exitFalse
	}
	return exitOK
}

// halted ends as halt and halt_error ask.
func halted(h *gojq.HaltError, stderr io.Writer) int {
	switch v := h.Value().(type) {
	case nil:
	case string:
		_, _ = io.WriteString(stderr, v)
	default:
		if b, err := gojq.Marshal(v); err == nil {
			fmt.Fprintf(stderr, "%s\n", b)
		}
	}
	return h.ExitCode()
}
