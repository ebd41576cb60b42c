package hookclient

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stopgate/gate"
)

// What hangs beside the server, whatever it is, is given up as well, no later
// than half a second after a server would be.
func TestGivesUpWhateverHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan struct{})
		c := call{Flags: Flags{Protocol: "codex", Server: "http://127.0.0.1:1", Deadline: 1}, began: time.Now(),
			event: gate.Event{Name: gate.Stop}, Process: Process{Getenv: func(string) string { <-hung; return "" }}}
		answer, err := c.inTime(t.Context())
		if err == nil || answer != nil {
			t.Errorf("%q, %v", answer, err)
		}
		if took := time.Since(c.began); took != 3500*time.Millisecond {
			t.Errorf("took %s", took)
		}
		close(hung)
	})
}

func TestReadsAHostThatKeepsThePipeOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		go func() {
			_, _ = w.Write([]byte(`{"hook_event_name":`))
			time.Sleep(time.Second)
			_, _ = w.Write([]byte(`"Stop"}`)) // and no end
		}()
		payload, err := readPayload(r)
		if err != nil || string(payload) != `{"hook_event_name":"Stop"}` {
			t.Errorf("%q %v", payload, err)
		}
		w.Close()
	})
}

func TestRefusesAPayloadThatIsTooLarge(t *testing.T) {
	if _, err := readPayload(io.LimitReader(zeros{}, MaxPayload+1)); err == nil {
		t.Error("no error")
	}
	if b, err := readPayload(io.LimitReader(zeros{}, MaxPayload)); err != nil || len(b) != MaxPayload {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := readPayload(io.MultiReader(strings.NewReader("{"), broken{})); err == nil {
		t.Error("a read error is lost")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }
