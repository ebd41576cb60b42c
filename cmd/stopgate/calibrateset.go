package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"stopgate/calibrate"
	"stopgate/gate"
	"stopgate/internal/regular"
	"stopgate/internal/terminal"
)

const (
	// maxRunLine is the longest line of a set: as much as an event may have.
	maxRunLine = maxEvent
	// maxRuns bounds what is kept of a set; each of them asks a model.
	maxRuns = 100_000
	// maxSystem bounds the text before every conversation, which a judge gets to
	// read with it.
	maxSystem = 1 << 20
)

// labelledSet is a file of runs. Only where they stand is kept, so that a set of
// any size can be gone through.
type labelledSet struct {
	file   *os.File
	system string // put before every conversation
	runs   []runPlace
	bad    int // lines left out
	// skipped are the first of them.
	skipped []skippedLine
}

// skippedLine is a line that is no run.
type skippedLine struct {
	Line  int    `json:"line"`
	Error string `json:"error"`
}

// maxSkipped is how many lines that are left out are named.
const maxSkipped = 20

type runPlace struct {
	id     string
	line   int
	offset int64
	size   int
}

// openSet reads a set whole and checks every line, by check too: what is wrong
// with line 500 is said before a model was asked about line 1. Lines that are
// wrong are an error, or with skipBad left out and counted.
func openSet(path, system string, limit int, skipBad bool, check func(calibrate.Run) error) (*labelledSet, error) {
	f, err := regular.Open(path) // it is read twice
	if err != nil {
		return nil, err
	}
	s := &labelledSet{file: f, system: system}
	if err := s.scan(limit, skipBad, check); err != nil {
		_ = f.Close() // only read
		return nil, fmt.Errorf("%s%w", path, err)
	}
	return s, nil
}

func (s *labelledSet) scan(limit int, skipBad bool, check func(calibrate.Run) error) error {
	in := bufio.NewReaderSize(s.file, 64<<10)
	lines := map[string]int{} // of each id
	for at := (runPlace{line: 1}); limit == 0 || len(s.runs) < limit; at.line++ {
		text, size, err := readLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, errLongRun) { // the file cannot be read on
			return fmt.Errorf(":%d: %w", at.line, err)
		}
		if at.size = len(text); err == nil && len(bytes.TrimSpace(text)) > 0 {
			at.id, err = s.checked(text, lines, check)
			if err == nil {
				lines[at.id] = at.line
				s.runs = append(s.runs, at)
			}
		}
		if err != nil && !skipBad {
			return fmt.Errorf(":%d: %w", at.line, err)
		}
		if err != nil {
			if s.bad++; s.bad <= maxSkipped {
				s.skipped = append(s.skipped, skippedLine{at.line, fmt.Sprintf("%.200s", terminal.Visible(err.Error()))})
			}
		}
		at.offset += size
	}
	if len(s.runs) == 0 {
		return errors.New(" holds no run")
	}
	return nil
}

func (s *labelledSet) checked(text []byte, lines map[string]int, check func(calibrate.Run) error) (id string, err error) {
	run, err := calibrate.ReadRun(text, s.system)
	switch {
	case err != nil:
		return "", err
	case lines[run.ID] > 0:
		return "", fmt.Errorf("id %q is that of line %d, too", run.ID, lines[run.ID])
	case len(s.runs) == maxRuns:
		return "", fmt.Errorf("the set has more than %d runs: use --limit", maxRuns)
	}
	return run.ID, check(run)
}

var errLongRun = fmt.Errorf("the line is longer than %d MiB", maxRunLine>>20)

// readLine reads one line without its end. A line that is too long is read to its
// end and is an error; size is what it takes in the file in any case.
func readLine(in *bufio.Reader) (text []byte, size int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += int64(len(part))
		if len(text) <= maxRunLine {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || size == 0):
			return nil, size, err
		case len(text) > maxRunLine:
			return nil, size, errLongRun
		}
		return bytes.TrimSuffix(text, []byte("\n")), size, nil
	}
}

// run reads one run again.
func (s *labelledSet) run(p runPlace) (calibrate.Run, error) {
	text := make([]byte, p.size)
	if _, err := s.file.ReadAt(text, p.offset); err != nil {
		return calibrate.Run{}, fmt.Errorf("%s:%d: %w", s.file.Name(), p.line, err)
	}
	run, err := calibrate.ReadRun(text, s.system)
	if err == nil && run.ID != p.id {
		err = errors.New("the file has changed")
	}
	if err != nil {
		return calibrate.Run{}, fmt.Errorf("%s:%d: %w", s.file.Name(), p.line, err)
	}
	return run, nil
}

// readSystem reads the text that is put before every conversation.
func readSystem(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := regular.Read(path, maxSystem)
	switch {
	case err != nil:
		return "", err
	case !utf8.Valid(text):
		return "", fmt.Errorf("%s is no UTF-8 text", path)
	}
	return string(text), nil
}

// stopOf is the event of a run's end, as POST /v1/dry-run gets it.
func stopOf(run calibrate.Run, agent string) gate.Event {
	return gate.Event{Name: gate.Stop, Protocol: gate.Native, Agent: agent, Dry: true, ToolSucceeded: true,
		FinalOutput: run.FinalOutput, InlineTranscript: run.Messages}
}

// constantPaths hides where a conversation lies. It lies elsewhere each time, and
// a judge that is told so is asked something else each time: a recording would
// not know the request, and repeats would not be the same question.
type constantPaths struct{ gate.Transcripts }

// Attach implements [gate.Transcripts].
func (c constantPaths) Attach(ctx context.Context, ev *gate.Event) (gate.Transcript, error) {
	t, err := c.Transcripts.Attach(ctx, ev)
	if t == nil || err != nil {
		return nil, err
	}
	return constantPath{t}, nil
}

type constantPath struct{ gate.Transcript }

func (constantPath) Path() string    { return "/conversation.txt" }
func (constantPath) RawPath() string { return "" }
