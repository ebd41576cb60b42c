package wire

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"stopgate/gate"
)

var update = flag.Bool("update", false, "rewrite the golden files from what the code does now")

// wishes are what a gate may want of any event, in the order of the golden
// files' sections.
var wishes = []struct {
	name     string
	decision gate.Decision
}{
	{"no objection", gate.Decision{Outcome: gate.Allow}},
	{"context", gate.Decision{Outcome: gate.Allow, AdditionalContext: "CONTEXT"}},
	{"block", gate.Decision{Outcome: gate.Block, Reason: "REASON"}},
	{"block with context", gate.Decision{Outcome: gate.Block, Reason: "REASON", AdditionalContext: "CONTEXT"}},
	{"ask", gate.Decision{Outcome: gate.Ask, Reason: "REASON"}},
}

// One file per host and event: a captured payload, with members that nobody
// knows added, the event it decodes to, and the answer to each wish. An answer
// of nothing is an empty section.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		host := filepath.Base(filepath.Dir(file))
		t.Run(host+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := golden(t, host, archive)
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(got))); diff != "" {
				t.Errorf("(-want +got; go test ./wire -update rewrites)\n%s", diff)
			}
		})
	}
}

// golden is the archive as it should be: its own `in` and `options`, and what
// the code makes of them.
func golden(t *testing.T, host string, archive *txtar.Archive) *txtar.Archive {
	t.Helper()
	p, ok := Find(host)
	if !ok {
		t.Fatalf("no protocol %q", host)
	}
	var opt Options
	in, options := section(archive, "in"), section(archive, "options")
	if err := json.Unmarshal(options, &opt); err != nil {
		t.Fatal(err)
	}
	body := bytes.Clone(in)
	ev, err := p.Decode(body, opt)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(ev.Payload, in) {
		t.Error("the payload is not kept as it came")
	}
	clear(body) // soon another request's: nothing else of the event is a part of it
	ev.Payload = in
	out := &txtar.Archive{Comment: archive.Comment, Files: []txtar.File{{Name: "in", Data: in}, {Name: "options", Data: options},
		{Name: "event", Data: eventJSON(t, ev)}}}
	if s, ok := AnswerSought(ev); ok {
		out.Files = append(out.Files, txtar.File{Name: "sought", Data: indented(t, s)})
	}
	if host == gate.Native {
		return out
	}
	for _, w := range wishes {
		a := p.Encode(ev, w.decision)
		if a.ContentType != "application/json" {
			t.Errorf("content type %q", a.ContentType)
		}
		body := a.Body
		if len(body) > 0 {
			body = append(bytes.Clone(body), '\n')
		}
		out.Files = append(out.Files, txtar.File{Name: "answer " + w.name, Data: body})
	}
	return out
}

func section(archive *txtar.Archive, name string) []byte {
	for _, f := range archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// eventJSON is the event's fields that say something, the payload left out.
func eventJSON(t *testing.T, ev gate.Event) []byte {
	t.Helper()
	shown := map[string]any{}
	for v, i := reflect.ValueOf(ev), 0; i < v.NumField(); i++ {
		if f := v.Field(i); !f.IsZero() && v.Type().Field(i).Name != "Payload" {
			shown[v.Type().Field(i).Name] = f.Interface()
		}
	}
	return indented(t, shown)
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
