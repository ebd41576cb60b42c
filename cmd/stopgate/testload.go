package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/wire"
)

// suite is one test file with all that it names, ready to be run.
type suite struct {
	file     config.TestFile
	specs    []*gate.Spec
	cases    []*testCase
	findings []gate.Finding
}

// testCase is one case, and what came of it.
type testCase struct {
	config.TestCase
	events []gate.Event
	result caseResult
}

// loadSuites reads test files. Whatever is wrong with any of them is printed, and
// then nothing is run.
func loadSuites(p process, paths []string) ([]*suite, error) {
	var suites []*suite
	bad := 0
	for _, path := range paths {
		s, err := loadSuite(path)
		if err != nil {
			return nil, exit{exitInput, err}
		}
		printFindings(p.stderr, []specFile{{path: path, findings: s.findings}})
		if gate.HasErrors(s.findings) {
			bad++
		}
		suites = append(suites, s)
	}
	if bad > 0 {
		return nil, exit{exitInput, fmt.Errorf("%s cannot be used; nothing was run", plural(bad, "test file"))}
	}
	return suites, nil
}

func loadSuite(path string) (*suite, error) {
	data, err := readNamed(path)
	if err != nil {
		return nil, err
	}
	return readSuite(path, data), nil
}

// readSuite reads a test file's text and the files that it names.
func readSuite(path string, data []byte) *suite {
	s := &suite{}
	if s.file, s.findings = config.ReadTestFile(path, data); gate.HasErrors(s.findings) {
		return s
	}
	s.loadSpecs()
	if gate.HasErrors(s.findings) {
		return s
	}
	for _, c := range s.file.Cases {
		loaded := &testCase{TestCase: c}
		for _, e := range c.Events {
			loaded.events = append(loaded.events, s.loadEvent(c, e))
		}
		s.cases = append(s.cases, loaded)
	}
	return s
}

func (s *suite) errorf(at config.Place, format string, args ...any) {
	s.findings = append(s.findings, gate.Finding{Severity: gate.SeverityError, Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...)})
}

// beside is a path that the test file names.
func (s *suite) beside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(s.file.Path), name)
}

// loadSpecs reads the hooks. Those of other systems belong to the file's agent.
func (s *suite) loadSpecs() {
	named := s.file.Specs
	if len(named) == 0 {
		named = []config.Named{{Place: config.Place{Line: 1, Column: 1}, Name: s.specOfSameName()}}
	}
	for _, n := range named {
		path := s.beside(n.Name)
		data, err := readNamed(path)
		if err != nil {
			s.errorf(n.Place, "spec %s", err)
			continue
		}
		specs, findings := config.ReadHooks("", path, data)
		for _, f := range findings {
			if f.Severity == gate.SeverityError {
				s.errorf(n.Place, "spec %s:%s", path, f)
			}
		}
		if len(specs) == 0 && !gate.HasErrors(findings) { // an event, a network object, tests
			s.errorf(n.Place, "spec %s holds no hooks", path)
		}
		for _, spec := range specs {
			if spec.Kind != gate.AgentSpec && spec.Kind != gate.HookSpec {
				spec.Name = cmp.Or(s.file.Agent, gate.DefaultAgent)
			}
		}
		s.specs = append(s.specs, specs...)
	}
}

// specOfSameName is the spec that a test file is about where it names none:
// marker.yaml of marker.test.yaml.
func (s *suite) specOfSameName() string {
	base := filepath.Base(s.file.Path)
	base = strings.TrimSuffix(strings.TrimSuffix(base, filepath.Ext(base)), ".test")
	for _, extension := range []string{".yaml", ".yml", ".json"} {
		if _, err := os.Stat(s.beside(base + extension)); err == nil {
			return base + extension
		}
	}
	return base + ".yaml"
}

// seriesSession is the session of a series whose events name none.
const seriesSession = "test"

// loadEvent decodes an event as its host's protocol has it.
func (s *suite) loadEvent(c config.TestCase, e config.TestEvent) gate.Event {
	ev, err := s.decode(e)
	if err != nil {
		at := e.Place
		if e.EventFile.Name != "" {
			at = e.EventFile.Place
		}
		s.errorf(at, "event of case %q: %s", c.Name, whole(err))
		return ev
	}
	if ev.Session == "" && c.Series {
		ev.Session = seriesSession
	}
	if e.Transcript != nil {
		ev.InlineTranscript, ev.TranscriptPath = e.Transcript, ""
	}
	if e.TranscriptFile.Name != "" {
		path := s.beside(e.TranscriptFile.Name)
		if _, err := readNamed(path); err != nil {
			s.errorf(e.TranscriptFile.Place, "transcript_file %s", err)
		}
		ev.TranscriptPath, ev.InlineTranscript = absolute(path), nil
	}
	return ev
}

// whole is an error with its details.
func whole(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*gate.Error](err); ok {
		for _, f := range e.Details {
			if !strings.Contains(text, f.Message) {
				text += "; " + f.String()
			}
		}
	}
	return text
}

func (s *suite) decode(e config.TestEvent) (gate.Event, error) {
	body := []byte(e.Event)
	if e.EventFile.Name != "" {
		data, err := readNamed(s.beside(e.EventFile.Name))
		if err != nil {
			return gate.Event{}, err
		}
		if fields := members(data); fields["evaluation_id"] != nil {
			return s.decodeRecord(data)
		}
		body = data
	}
	if e.Protocol != "" && e.Protocol != gate.Native {
		return s.decodeHost(e.Protocol, body, wire.Options{})
	}
	named, err := s.withAgent(body)
	if err != nil {
		return gate.Event{}, err
	}
	ev, err := wire.DecodeNative(named)
	if err == nil && e.Event != nil {
		if warnings := eventWarnings(body, ev); len(warnings) > 0 {
			err = errors.New(strings.Join(warnings, "; "))
		}
	}
	return ev, err
}

// withAgent names the file's agent in an event that names none.
func (s *suite) withAgent(body []byte) ([]byte, error) {
	fields := members(body)
	if fields == nil || fields["agent_name"] != nil || s.file.Agent == "" {
		return withAgent(body, s.specs)
	}
	fields["agent_name"], _ = json.Marshal(s.file.Agent) // a string always has a JSON form
	return json.Marshal(fields)
}

func (s *suite) decodeHost(name string, body []byte, opt wire.Options) (gate.Event, error) {
	protocol, known := wire.Find(name)
	if !known {
		return gate.Event{}, fmt.Errorf("protocol is %q, want one of %s%s", name, strings.Join(wire.Names(), ", "), config.DidYouMean(name, wire.Names()))
	}
	agents := agentNames(s.specs)
	if opt.Agent = s.file.Agent; opt.Agent == "" && len(agents) == 1 {
		opt.Agent = agents[0]
	}
	ev, err := protocol.Decode(body, opt)
	if err == nil && ev.Name == "" {
		err = errors.New("no hook is ever about it")
	}
	return ev, err
}

// placesOfThen are the members of a payload that name a place on the machine of then.
var placesOfThen = []string{"execution_summary", "transcript_path", "agent_transcript_path", "cwd"}

// decodeRecord is the event of a recorded evaluation, as it was asked, by the
// agent under test. What only the machine of then has, it does not name: where its
// conversation lay, and in which directory the agent worked.
func (s *suite) decodeRecord(data []byte) (gate.Event, error) {
	var r gate.Record
	if err := json.Unmarshal(data, &r); err != nil {
		return gate.Event{}, fmt.Errorf("recorded evaluation cannot be read: %w", err)
	}
	fields := members(r.Payload)
	if fields == nil {
		return gate.Event{}, errors.New("recorded evaluation has no payload that is a JSON object")
	}
	native := r.Protocol == "" || r.Protocol == gate.Native
	if native && !slices.Contains(agentNames(s.specs), r.Agent) {
		delete(fields, "agent_name")
	}
	for _, name := range placesOfThen { // hooks of claude-code get what its payload has
		delete(fields, name)
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return gate.Event{}, err
	}
	var ev gate.Event
	if !native {
		ev, err = s.decodeHost(r.Protocol, body, wire.Options{Event: hostEvent(r), Tool: r.Tool, Session: r.Session})
	} else if body, err = s.withAgent(body); err == nil {
		ev, err = wire.DecodeNative(body)
	}
	ev.TranscriptPath, ev.Cwd = "", "" // of hosts that call them otherwise
	return ev, err
}

// readNamed reads a file that a test file names, of at most maxSpecFile bytes.
// Only a regular one is read: a pipe is not waited for.
func readNamed(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if about, err := f.Stat(); err != nil || !about.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSpecFile+1))
	if err == nil && len(data) > maxSpecFile {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxSpecFile>>20)
	}
	return data, err
}

// pick leaves the cases whose names match, and the suites that have any.
func pick(suites []*suite, only *regexp.Regexp) []*suite {
	return slices.DeleteFunc(suites, func(s *suite) bool {
		s.cases = slices.DeleteFunc(s.cases, func(c *testCase) bool { return !only.MatchString(c.Name) })
		return len(s.cases) == 0
	})
}
