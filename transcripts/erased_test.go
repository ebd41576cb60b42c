package transcripts

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"stopgate/gate"
)

// TestErasureWins: what was begun before its session was erased is not kept, whoever
// has the texts; nor is what an event brings, which is judged by it all the same.
func TestErasureWins(t *testing.T) {
	ndjson := `{"role":"user","content":"what was to be forgotten"}` + "\n"
	for where, open := range map[string]func(t *testing.T, erased *gate.Erasure) *Store{
		"here": func(t *testing.T, erased *gate.Erasure) *Store {
			return openStore(t, Options{Erasure: func(context.Context, string) (gate.Erasure, error) { return *erased, nil }})
		},
		"shared": func(t *testing.T, erased *gate.Erasure) *Store {
			x := newTexts()
			return openStore(t, Options{Shared: x, Erasure: func(context.Context, string) (gate.Erasure, error) {
				x.erased = *erased
				return *erased, nil
			}})
		},
	} {
		t.Run(where, func(t *testing.T) {
			for name, put := range map[string]func(s *Store, r io.Reader) error{
				"replace": func(s *Store, r io.Reader) error {
					_, err := s.Replace(t.Context(), "s", gate.NeverErased, "application/x-ndjson", r)
					return err
				},
				"append": func(s *Store, r io.Reader) error {
					_, err := s.Append(t.Context(), "s", gate.NeverErased, "application/x-ndjson", r)
					return err
				},
				"append a file": func(s *Store, r io.Reader) error {
					_, err := s.AppendFile(t.Context(), "s", gate.NeverErased, Part{Format: formatClaudeCode}, r)
					return err
				},
			} {
				erased := gate.NeverErased
				s := open(t, &erased)
				erase := func() {
					erased++
					if _, err := s.erasure(t.Context(), "s"); err != nil { // the shared ones know it, too
						t.Fatal(err)
					}
				}
				if err := put(s, strings.NewReader(ndjson)); err != nil {
					t.Errorf("%s: nothing was erased: %v", name, err)
				}
				if err := s.Erase(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
				if err := put(s, io.MultiReader(strings.NewReader(ndjson), &once{erase})); !errors.Is(err, gate.ErrErased) {
					t.Errorf("%s: %v", name, err)
				}
				if has, err := s.Has(t.Context(), "s"); has || err != nil {
					t.Errorf("%s: the text is kept: %v, %v", name, has, err)
				}
			}
			t.Run("in an event", func(t *testing.T) {
				erased := gate.NeverErased + 1
				s := open(t, &erased)
				if _, err := s.erasure(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
				for _, c := range []struct {
					seen gate.Erasure
					kept bool
				}{{gate.NeverErased, false}, {0, false}, {erased, true}} {
					ev := &gate.Event{Name: gate.Stop, Session: "s", Erasure: c.seen, InlineTranscript: json.RawMessage(`"judged"`)}
					talk, err := s.Attach(t.Context(), ev)
					if err != nil || talk == nil {
						t.Fatalf("seen %d: %v", c.seen, err)
					}
					if text, err := talk.ReadFile(t.Context(), 1, 1); err != nil || !strings.Contains(text, "judged") {
						t.Errorf("seen %d: hooks read %q, %v", c.seen, text, err)
					}
					if err := talk.Close(); err != nil {
						t.Error(err)
					}
					if has, err := s.Has(t.Context(), "s"); has != c.kept || err != nil {
						t.Errorf("seen %d: kept is %v, %v", c.seen, has, err)
					}
				}
			})
		})
	}
}

// once does something at the end of an upload.
type once struct{ do func() }

func (o *once) Read([]byte) (int, error) {
	o.do()
	return 0, io.EOF
}
