package main

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stopgate/config"
	"stopgate/export"
	"stopgate/gate"
	"stopgate/store/storetest"
)

// A record that a sink refuses is set aside for it alone, is found by export, and is
// sent again when the sink takes it.
func TestWhatASinkRefusesIsSentAgain(t *testing.T) {
	data := t.TempDir()
	store, err := openStore(t.Context(), config.Server{Data: data, Durability: "process"}, shared, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var refuses atomic.Bool
	refuses.Store(true)
	taken := make(chan string, 16)
	collector := serveOnce(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || refuses.Load() && bytes.Contains(body, []byte(storetest.ID(2))) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		for line := range strings.Lines(string(body)) {
			taken <- line
		}
	})
	exporter, err := export.Start(t.Context(), export.Options{Outbox: store, Holder: "me", Log: slog.New(slog.DiscardHandler),
		Sinks: []export.Named{{Name: "siem", Sink: export.NewHTTP(export.HTTPOptions{URL: collector})}}})
	if err != nil {
		t.Fatal(err)
	}
	defer exporter.Close()
	for n := range 4 {
		if err := store.Commit(t.Context(), gate.Commit{Settle: func(now gate.Counts) (gate.Counts, gate.Record) { return now, storetest.Record(n) }}); err != nil {
			t.Fatal(err)
		}
	}
	takes := func(n ...int) {
		t.Helper()
		for _, i := range n {
			select {
			case line := <-taken:
				if !strings.Contains(line, storetest.ID(i)) {
					t.Errorf("the sink took %s, want %s", line, storetest.ID(i))
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s was not sent", storetest.ID(i))
			}
		}
	}
	takes(0, 1, 3)
	by := func(want int, args ...string) string {
		t.Helper()
		var out, said bytes.Buffer
		if code := run(process{ctx: t.Context(), stdout: &out, stderr: &said, getenv: func(string) string { return "" }}, append([]string{"export", "--data", data}, args...)); code != want {
			t.Errorf("export %q: exit %d, want %d: %s", args, code, want, &said)
		}
		return out.String() + said.String()
	}
	if out := by(exitDone, "--aside", "siem"); strings.Count(out, `{"evaluation_id"`) != 1 || !strings.Contains(out, storetest.ID(2)) {
		t.Errorf("set aside: %s", out)
	}
	by(exitUsage, "--send-again")
	by(exitUsage, "--send-again", "--aside", "siem", "--agent", "builder")
	by(exitUsage, "--send-again", "--aside", "siem", "--output", filepath.Join(t.TempDir(), "f"))
	by(exitInput, "--send-again", "--aside", "nobody")
	refuses.Store(false)
	if out := by(exitDone, "--send-again", "--aside", "siem"); out != "1 records are sent again to siem\n" {
		t.Errorf("said %q", out)
	}
	takes(2)
	if out := by(exitDone, "--aside", "siem"); out != "0 records, complete\n" {
		t.Errorf("still set aside: %s", out)
	}
}
