package install

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files from what the code does now")

// target is what the golden files' entries reach.
var target = Target{Agent: "marker", Server: "http://127.0.0.1:8790", Program: "/opt/stopgate/bin/stopgate"}

// One file per host and case: a host's file as it was, as Add leaves it, and as
// Remove leaves that. `before` is what it was; empty: there was none. Each is
// added to a second time, which changes nothing. Every host has: no file, foreign
// hooks and comments, older entries of ours.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) < 5*3 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			host, ok := Find(name)
			if !ok {
				t.Fatalf("no host %q", name)
			}
			before := archive.Files[0].Data
			added := mustAdd(t, host, before)
			if again := mustAdd(t, host, added); string(again) != string(added) {
				t.Errorf("a second init changes the file:\n%s", cmp.Diff(string(added), string(again)))
			}
			removed, _, err := host.Remove(added)
			if err != nil {
				t.Fatal(err)
			}
			if left, _, err := host.Found(removed); err != nil || len(left) > 0 {
				t.Errorf("after Remove: %v %v", left, err)
			}
			got := txtar.Format(&txtar.Archive{Comment: archive.Comment, Files: []txtar.File{
				{Name: "before", Data: before}, {Name: "added", Data: added}, {Name: "removed", Data: removed}}})
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(got)); diff != "" {
				t.Errorf("(-want +got; go test ./wire/install -update rewrites)\n%s", diff)
			}
		})
	}
}

func mustAdd(t *testing.T, h Host, content []byte) []byte {
	t.Helper()
	added, err := h.Add(content, h.Entries(target))
	if err != nil {
		t.Fatal(err)
	}
	return added
}
