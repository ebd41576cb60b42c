package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

// exportOf asks a real server, since trailers and cut connections are net/http's,
// and answers the ids.
func exportOf(t *testing.T, base, query string, headers ...string) (ids []string, trailer http.Header, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/v1/evaluations/export"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil { // cut before the first bytes were on their way
		return nil, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != typeNDJSON {
		t.Fatalf("%d, %v", resp.StatusCode, resp.Header)
	}
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return ids, resp.Trailer, nil
		}
		if err != nil {
			return ids, resp.Trailer, err
		}
		_, rest, _ := strings.Cut(line, `"evaluation_id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		ids = append(ids, id)
	}
}

func TestExport(t *testing.T) {
	w := newGuardedWorld(t)
	s := httptest.NewServer(w.Handler())
	defer s.Close()
	for _, c := range []struct {
		name, query, who string
		want             []string
		state, next      string
	}{
		{"everything, newest first", "", "read", []string{"ev-0002", "ev-0001"}, "complete", ""},
		{"of the caller's agents", "", "mine", []string{"ev-0001"}, "complete", ""},
		{"nothing", "?agent=nobody", "read", nil, "complete", ""},
		{"a part", "?limit=1", "read", []string{"ev-0002"}, "more", "2"},
		{"filtered", "?session=s-mine", "read", []string{"ev-0001"}, "complete", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ids, trailer, err := exportOf(t, s.URL, c.query, as(c.who))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, ids); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
			if trailer.Get(trailerState) != c.state || trailer.Get(trailerNext) != c.next {
				t.Errorf("trailer %v, want %s %s", trailer, c.state, c.next)
			}
		})
	}
	t.Run("a line is the record", func(t *testing.T) {
		one := strings.TrimSpace(w.must(t, 200, "GET", "/v1/evaluations/ev-0001", "", as("read")).Body.String())
		if line := strings.TrimSuffix(w.must(t, 200, "GET", "/v1/evaluations/export?session=s-mine", "", as("read")).Body.String(), "\n"); line != one {
			t.Errorf("line %s\nrecord %s", line, one)
		}
	})
	w.must(t, 400, "GET", "/v1/evaluations/export?limit=0", "", as("read"))
	w.must(t, 400, "GET", "/v1/evaluations/export?agnt=a", "", as("read"))
}

// breaking is a store whose second record cannot be read.
type breaking struct{ gate.Store }

func (b breaking) Record(ctx context.Context, id string) (gate.Record, error) {
	if id == "ev-0001" {
		return gate.Record{}, errors.New("disk is gone")
	}
	return b.Store.Record(ctx, id)
}

// TestExportThatBreaksOff cannot be taken for a whole one.
func TestExportThatBreaksOff(t *testing.T) {
	w := newGuardedWorld(t, func(o *Options) { o.Store = breaking{o.Store} })
	s := httptest.NewServer(w.Handler())
	defer s.Close()
	ids, trailer, err := exportOf(t, s.URL, "", as("read"))
	if err == nil || trailer.Get(trailerState) != "" {
		t.Errorf("%v, %v, %v: want an error", ids, trailer, err)
	}
	// What breaks before the first line is an answer like any other.
	w.must(t, 500, "GET", "/v1/evaluations/export?session=s-mine", "", as("read"))
}

// TestExportMetrics: what alerts look for is there from the start.
func TestExportMetrics(t *testing.T) {
	w := newWorld(t)
	w.metrics.Export(func() []SinkState {
		return []SinkState{{SinkState: gate.SinkState{Name: "siem", Pending: 4, Dropped: 0}, Delivered: 9, Failures: 2}}
	})
	text := w.must(t, 200, "GET", "/metrics", "").Body.String()
	for _, want := range []string{`stopgate_export_delivered_total{sink="siem"} 9`, `stopgate_export_failures_total{sink="siem"} 2`, `stopgate_export_dropped_total{sink="siem"} 0`,
		`stopgate_export_pending{sink="siem"} 4`, `stopgate_export_oldest_seconds{sink="siem"} 0`} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
}
