package prompthooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"stopgate/gate"
)

// The tools of spec/azure.md 29.
const (
	readFile   = "ReadFile"
	grepSearch = "GrepSearch"
)

// Bounds of one tool result, in bytes. 32 KiB are some 8,000 tokens; a line of
// more than 2,000 bytes is a file or a log that somebody pasted (fault G19).
const (
	maxResultBytes = 32 << 10
	maxLineBytes   = 2000
)

// toolArgs is what ReadFile and GrepSearch take. Numbers are read in any form
// that models write them in.
type toolArgs struct {
	Offset   looseInt `json:"offset"`
	Limit    looseInt `json:"limit"`
	Pattern  string   `json:"pattern"`
	Context  looseInt `json:"context"`
	FilePath string   `json:"file_path"`
	Path     string   `json:"path"`
}

// callTool runs one call on the transcript. What the model did wrong is a
// failed result, told to it; an error means that the transcript cannot be
// read, or that ctx has ended.
func callTool(ctx context.Context, t gate.Transcript, call Call) (text string, failed bool, err error) {
	if call.Name != readFile && call.Name != grepSearch {
		return fmt.Sprintf("There is no such tool. There are %s, %s and %s.", readFile, grepSearch, submitVerdict), true, nil
	}
	var args toolArgs
	if len(call.Args) > 0 {
		if err := json.Unmarshal(call.Args, &args); err != nil {
			return "The arguments cannot be read: " + gate.Cut(err.Error(), 200), true, nil
		}
	}
	for _, path := range []string{args.FilePath, args.Path} {
		if path != "" && path != t.Path() && path != t.RawPath() {
			return fmt.Sprintf("%s reads this conversation's transcript and no other file, so not %q. Leave the path out.", call.Name, gate.Cut(path, 200)), true, nil
		}
	}
	if call.Name == readFile {
		text, err = t.ReadFile(ctx, int(args.Offset), int(args.Limit))
	} else {
		if args.Pattern == "" {
			return "GrepSearch needs a pattern.", true, nil
		}
		text, err = t.GrepSearch(ctx, gate.Grep{Pattern: args.Pattern, Context: int(args.Context), Limit: int(args.Limit)})
	}
	if bad, ok := errors.AsType[*gate.Failure](err); ok && bad.Code == gate.BadOutput {
		return "The pattern cannot be used: " + gate.Cut(bad.Message, 300), true, nil
	}
	return bounded(text), false, err
}

// bounded is a tool's result with long lines and a long whole cut, each with a
// note.
func bounded(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if b.Len()+min(len(line), maxLineBytes+64) > maxResultBytes {
			b.WriteString("[the rest of the result is left out: it is too long. Ask for fewer lines or a narrower pattern.]\n")
			break
		}
		if body := strings.TrimSuffix(line, "\n"); len(body) > maxLineBytes {
			kept := gate.Cut(body, maxLineBytes)
			fmt.Fprintf(&b, "%s [line cut: %d more bytes]\n", kept, len(body)-len(kept))
			continue
		}
		b.WriteString(line)
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// looseInt reads 3, 3.0, "3" and null.
type looseInt int

// UnmarshalJSON clamps to what fits an int32; a transcript has fewer lines.
func (n *looseInt) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	f, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err != nil || math.IsNaN(f) {
		return fmt.Errorf("%s is not a number", gate.Cut(string(b), 40))
	}
	*n = looseInt(max(min(f, math.MaxInt32), math.MinInt32))
	return nil
}
