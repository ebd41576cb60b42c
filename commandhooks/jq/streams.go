package jq

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// inputs are the values that come in, for the main loop and for input and
// inputs. They implement gojq.Iter.
type inputs struct {
	o     *options
	files []string // still to be opened
	next  func() (any, bool)
	open  io.Closer
	done  bool
	lost  bool // a file could not be read
	stdin io.Reader
}

func newInputs(o *options, stdin io.Reader) *inputs {
	in := &inputs{o: o, files: o.files, stdin: stdin}
	if len(o.files) == 0 {
		in.next = in.values(stdin, "(stdin)")
	}
	return in
}

func (in *inputs) close() {
	if in.open != nil {
		in.open.Close()
	}
}

// Next is the next input, or an error in its place; after an error there is
// none.
func (in *inputs) Next() (any, bool) {
	if in.done {
		return nil, false
	}
	if in.o.slurp {
		in.done = true
		return in.all(), true
	}
	v, ok := in.one()
	if _, bad := v.(error); bad || !ok {
		in.done = true
	}
	return v, ok
}

// all are the inputs as one.
func (in *inputs) all() any {
	if in.o.rawInput {
		var text strings.Builder
		for {
			v, ok := in.one()
			if !ok {
				return text.String()
			}
			if err, bad := v.(error); bad {
				return err
			}
			text.WriteString(v.(string)) // raw inputs are strings
		}
	}
	list := []any{}
	for {
		v, ok := in.one()
		if !ok {
			return list
		}
		if err, bad := v.(error); bad {
			return err
		}
		list = append(list, v)
	}
}

func (in *inputs) one() (any, bool) {
	for {
		if in.next != nil {
			if v, ok := in.next(); ok {
				return v, true
			}
			in.next = nil
			in.close()
		}
		if len(in.files) == 0 {
			return nil, false
		}
		name := in.files[0]
		in.files = in.files[1:]
		if name == "-" {
			in.next = in.values(in.stdin, "(stdin)")
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			in.lost = true
			return fmt.Errorf("could not open %w", err), true
		}
		in.open, in.next = f, in.values(f, name)
	}
}

// values reads one stream.
func (in *inputs) values(r io.Reader, name string) func() (any, bool) {
	if in.o.rawInput {
		lines := bufio.NewReader(r)
		return func() (any, bool) {
			line, err := lines.ReadString('\n')
			if err != nil && line == "" {
				if err == io.EOF {
					return nil, false
				}
				return fmt.Errorf("%s: %w", name, err), true
			}
			if !in.o.slurp {
				line = strings.TrimSuffix(line, "\n")
			}
			return strings.ToValidUTF8(line, "\uFFFD"), true
		}
	}
	dec := newDecoder(r)
	return func() (any, bool) {
		var v any
		if err := dec.Decode(&v); err == io.EOF {
			return nil, false
		} else if err != nil {
			return fmt.Errorf("(at %s) %w", name, err), true
		}
		return v, true
	}
}

// output writes results.
type output struct {
	*options
	w    io.Writer
	any  bool
	last any
}

func (out *output) put(v any) error {
	out.any, out.last = true, v
	var b []byte
	if s, ok := v.(string); ok && out.raw {
		b = []byte(s)
	} else {
		compact, err := gojq.Marshal(v)
		if err != nil {
			return err
		}
		b = compact
		if out.indent != "" {
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, compact, "", out.indent); err != nil {
				return err
			}
			b = pretty.Bytes()
		}
	}
	if out.ascii {
		b = escapeNonASCII(b)
	}
	switch {
	case out.raw0:
		b = append(b, 0)
	case !out.join:
		b = append(b, '\n')
	}
	_, err := out.w.Write(b)
	return err
}

// escapeNonASCII is b with each rune beyond ASCII as \uXXXX.
func escapeNonASCII(b []byte) []byte {
	var ascii []byte
	for _, r := range string(b) {
		if r < utf8.RuneSelf {
			ascii = append(ascii, byte(r))
		} else if hi, lo := utf16.EncodeRune(r); hi != '\uFFFD' {
			ascii = fmt.Appendf(ascii, "\\u%04x\\u%04x", hi, lo)
		} else {
			ascii = fmt.Appendf(ascii, "\\u%04x", r)
		}
	}
	return ascii
}
