package calibrate

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "rewrite schemas/run.json from what the code says")

func TestSchemaFileIsCurrent(t *testing.T) {
	const path = "../schemas/run.json"
	if *update {
		if err := os.WriteFile(path, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(Schema()), string(is)); diff != "" {
		t.Errorf("%s is not current: make update (-code +file)\n%s", path, diff)
	}
}

// The schema takes the runs that the reader takes, and refuses what it refuses.
func TestSchemaIsTheReaders(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("run", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("run")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/judging.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```json\n")
	documented, _, _ := strings.Cut(block, "```")
	const messages = `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`
	for _, tt := range []struct {
		name, line string
		good       bool
	}{
		{"as documented", documented, true},
		{"pass", `{"id":"a","label":"pass",` + messages + `}`, true},
		{"other members", `{"id":"a","label":"fail","of":{"x":1},` + messages + `}`, true},
		{"calls and parts", `{"id":"a","label":"fail","messages":[{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","tool_call_id":"1","content":{"a":1}},{"role":"assistant","content":[{"type":"text","text":"b"}]}]}`, true},
		{"no id", `{"label":"pass",` + messages + `}`, false},
		{"an empty id", `{"id":"","label":"pass",` + messages + `}`, false},
		{"a number for an id", `{"id":1,"label":"pass",` + messages + `}`, false},
		{"a long id", `{"id":"` + strings.Repeat("a", maxID+1) + `","label":"pass",` + messages + `}`, false},
		{"an id of two lines", `{"id":"a\nb","label":"pass",` + messages + `}`, false},
		{"no label", `{"id":"a",` + messages + `}`, false},
		{"another label", `{"id":"a","label":"good",` + messages + `}`, false},
		{"no messages", `{"id":"a","label":"pass"}`, false},
		{"no answer", `{"id":"a","label":"pass","messages":[{"role":"user","content":"a"}]}`, false},
		{"a message without its role", `{"id":"a","label":"pass","messages":[{"content":"a"},{"role":"assistant","content":"b"}]}`, false},
		{"a message that is a text", `{"id":"a","label":"pass","messages":["a",{"role":"assistant","content":"b"}]}`, false},
		{"an answer that is a number", `{"id":"a","label":"pass","messages":[{"role":"assistant","content":1}]}`, false},
		{"a list", `[]`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			line, err := jsonschema.UnmarshalJSON(strings.NewReader(tt.line))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(line); (err == nil) != tt.good {
				t.Errorf("the schema says %v", err)
			}
			if _, err := ReadRun([]byte(tt.line), ""); (err == nil) != tt.good {
				t.Errorf("the reader says %v", err)
			}
		})
	}
}
