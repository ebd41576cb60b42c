//go:build unix

package commandhooks

import (
	"bytes"
	"os"
	"testing"
	"time"
)

// TestAttend: one that waits for the end takes what is written meanwhile, however much,
// and ends with the word of it, whoever still holds the outputs.
func TestAttend(t *testing.T) {
	for _, held := range []bool{false, true} {
		s := &streams{}
		if err := s.open(); err != nil {
			t.Fatal(err)
		}
		defer s.close()
		s.feed(nil)
		end, tell, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer end.Close()
		defer tell.Close()
		said := bytes.Repeat([]byte("0123456789abcdef"), keepBytes/16) // more than a pipe holds
		go func() {
			for _, out := range s.child[1:] {
				if _, err := out.Write(said); err != nil {
					t.Error(err)
				}
				if !held {
					out.Close()
				}
			}
			_, _ = tell.WriteString("\n")
		}()
		attended := make(chan struct{})
		go func() {
			s.attend(end)
			close(attended)
		}()
		select {
		case <-attended:
		case <-time.After(20 * time.Second):
			t.Fatalf("outputs held: %v: it goes on", held)
		}
		stdout, stderr := s.finish()
		if !bytes.Equal(stdout.kept, said) || !bytes.Equal(stderr.kept, said) {
			t.Errorf("outputs held: %v: %d and %d bytes of %d", held, len(stdout.kept), len(stderr.kept), len(said))
		}
	}
}
