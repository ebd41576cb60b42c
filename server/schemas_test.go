package server

import (
	"strings"
	"testing"
)

func TestSchemas(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Schemas = map[string][]byte{"spec": []byte(`{"title":"x"}`)} })
	rec := w.must(t, 200, "GET", "/schemas/spec.json", "")
	if got := rec.Body.String(); got != `{"title":"x"}` || rec.Header().Get("Content-Type") != "application/schema+json" {
		t.Errorf("schema is %s, %v", got, rec.Header())
	}
	if got := w.must(t, 200, "GET", "/schemas/", "").Body.String(); strings.TrimSpace(got) != `{"value":["/schemas/spec.json"]}` {
		t.Errorf("the index is %s", got)
	}
	for _, path := range []string{"/schemas/spec", "/schemas/other.json", "/schemas/.json", "/schemas/..%2Fspec.json"} {
		w.must(t, 404, "GET", path, "")
	}
}
