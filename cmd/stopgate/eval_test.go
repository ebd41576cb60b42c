package main

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// What eval does not warn about is what the API documents.
func TestEventFieldsAreTheDocumentedOnes(t *testing.T) {
	data, err := os.ReadFile("../../server/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas struct {
				Event struct{ Properties map[string]any } `yaml:"Event"`
			}
		}
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	want := []string{"hook_name", "transcript_path"} // of a hook's context alone
	for name := range doc.Components.Schemas.Event.Properties {
		want = append(want, name)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(eventFields))); diff != "" {
		t.Errorf("fields (-documented +known to eval):\n%s", diff)
	}
}
