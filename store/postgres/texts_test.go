package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/postgres/postgrestest"
)

// textOf is the whole text, read from a byte of it on.
func textOf(t *testing.T, s *Store, key [32]byte, from int64) (string, gate.TextState) {
	t.Helper()
	state, err := s.TextState(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	read, err := s.ReadText(t.Context(), key, gate.TextState{Generation: state.Generation, Bytes: from}, &b)
	if err != nil {
		t.Fatal(err)
	}
	if read != state {
		t.Errorf("read up to %+v, want %+v", read, state)
	}
	return b.String(), state
}

func TestTexts(t *testing.T) {
	all := replicas(t, 2)
	key, other := [32]byte{1}, [32]byte{2}
	ctx := t.Context()
	if state, err := all[0].TextState(ctx, key); err != nil || state != (gate.TextState{}) {
		t.Errorf("no text is %+v (%v)", state, err)
	}
	var none strings.Builder
	if _, err := all[0].ReadText(ctx, key, gate.TextState{}, &none); !errors.Is(err, gate.ErrTextChanged) {
		t.Errorf("reading none: %v", err)
	}
	long := make([]byte, 3*chunkBytes+17) // NUL bytes and all
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(long)
	first, err := all[0].ReplaceText(ctx, key, 0, "f1", bytes.NewReader(long), int64(len(long)))
	if err != nil || first.Generation == 0 || first.Bytes != int64(len(long)) || first.Form != "f1" {
		t.Fatalf("replace: %+v, %v", first, err)
	}
	if text, state := textOf(t, all[1], key, 0); text != string(long) || state != first {
		t.Errorf("the other replica reads %d bytes as %+v", len(text), state)
	}
	second, err := all[1].AppendText(ctx, key, 0, first, "f2", strings.NewReader("and more, which is not asked for"), 8)
	if err != nil || second != (gate.TextState{Generation: first.Generation, Bytes: first.Bytes + 8, Form: "f2"}) {
		t.Fatalf("append: %+v, %v", second, err)
	}
	if text, _ := textOf(t, all[0], key, first.Bytes); text != "and more" {
		t.Errorf("what was added reads %q", text)
	}
	if _, err := all[0].AppendText(ctx, key, 0, first, "f3", strings.NewReader("x"), 1); !errors.Is(err, gate.ErrTextChanged) {
		t.Errorf("append to what is not there any more: %v", err)
	}
	if _, err := all[0].AppendText(ctx, key, 0, gate.TextState{}, "f3", strings.NewReader("x"), 1); !errors.Is(err, gate.ErrTextChanged) {
		t.Errorf("beginning what is there: %v", err)
	}
	third, err := all[0].ReplaceText(ctx, key, 0, "f4", strings.NewReader(""), 0)
	if err != nil || third.Generation <= first.Generation {
		t.Fatalf("replace: %+v, %v", third, err)
	}
	if text, _ := textOf(t, all[1], key, 0); text != "" {
		t.Errorf("an empty text reads %q", text)
	}
	if _, err := all[1].ReadText(ctx, key, second, &none); !errors.Is(err, gate.ErrTextChanged) || none.Len() != 0 {
		t.Errorf("reading an old generation: %v, %q", err, none.String())
	}
	if _, err := all[1].AppendText(ctx, other, 0, gate.TextState{}, "f", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	known, err := all[0].KnownTexts(ctx, [][32]byte{key, other, {3}})
	if err != nil || len(known) != 2 || !known[key] || !known[other] {
		t.Errorf("known are %v (%v)", known, err)
	}
	for range 2 {
		if err := all[0].EraseText(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	if state, err := all[1].TextState(ctx, key); err != nil || state != (gate.TextState{}) {
		t.Errorf("an erased text is %+v (%v)", state, err)
	}
	var left int
	if err := all[0].pool.QueryRow(ctx, `SELECT count(*) FROM stopgate.text_chunks WHERE key = $1`, key[:]).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d pieces are left (%v)", left, err)
	}
	again, err := all[0].AppendText(ctx, key, 0, gate.TextState{}, "f", strings.NewReader("x"), 1)
	if err != nil || again.Generation <= third.Generation {
		t.Errorf("begun anew it is %+v (%v)", again, err)
	}
}

// TestTextsOneBegins: of many replicas that begin one text, one does.
func TestTextsOneBegins(t *testing.T) {
	all := replicas(t, 2)
	key := [32]byte{1}
	results := make([]error, 10)
	var running sync.WaitGroup
	for i := range results {
		running.Go(func() {
			_, results[i] = all[i%2].AppendText(t.Context(), key, 0, gate.TextState{}, "", strings.NewReader("x"), 1)
		})
	}
	running.Wait()
	begun := 0
	for _, err := range results {
		if err == nil {
			begun++
		} else if !errors.Is(err, gate.ErrTextChanged) {
			t.Errorf("append: %v", err)
		}
	}
	if text, _ := textOf(t, all[0], key, 0); begun != 1 || text != "x" {
		t.Errorf("%d began it; it reads %q", begun, text)
	}
}

// TestTextsLostAnswer: what is added while the connection breaks is there once,
// and the caller hears of it.
func TestTextsLostAnswer(t *testing.T) {
	for name, what := range map[string]fate{"before the commit": cutBefore, "after the commit": cutAnswer} {
		t.Run(name, func(t *testing.T) {
			database := postgrestest.Database(t)
			p, url := through(t, database)
			s, direct := openForTest(t, url), openForTest(t, database)
			key := [32]byte{1}
			state := gate.TextState{}
			for n := range 3 {
				if n > 0 {
					p.set(func(p *proxy) { p.watch = once("commit\x00", what) })
				}
				next, err := s.AppendText(t.Context(), key, 0, state, "f", strings.NewReader("line\n"), 5)
				if err != nil || next.Bytes != state.Bytes+5 {
					t.Fatalf("append %d: %+v, %v", n, next, err)
				}
				state = next
			}
			if text, now := textOf(t, direct, key, 0); text != "line\nline\nline\n" || now != state {
				t.Errorf("it reads %q as %+v", text, now)
			}
		})
	}
}

// TestTextsLeaveRoom: however many texts are on their way, and however slowly
// they are read, commits go on.
func TestTextsLeaveRoom(t *testing.T) {
	url := postgrestest.Database(t)
	s := openForTest(t, url+"&pool_max_conns=4")
	key := [32]byte{1}
	state, err := s.AppendText(t.Context(), key, 0, gate.TextState{}, "", strings.NewReader("x"), 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	defer reading.Wait()
	for range 8 {
		r, w := io.Pipe()
		reading.Go(func() {
			_, _ = s.ReadText(ctx, key, gate.TextState{Generation: state.Generation}, w)
		})
		defer r.Close() // until then its writer stands still
	}
	defer cancel()
	for len(s.long) < cap(s.long) {
		time.Sleep(time.Millisecond)
	}
	for n := range 3 {
		if err := s.Commit(t.Context(), rejecting(gate.LedgerKey{}, gate.Counts{}, n+1)); err != nil {
			t.Errorf("commit: %v", err)
		}
	}
}

// TestTextsWriter: the reader's own error is its own.
func TestTextsWriter(t *testing.T) {
	s := openForTest(t, postgrestest.Database(t))
	key := [32]byte{1}
	state, err := s.AppendText(t.Context(), key, 0, gate.TextState{}, "", strings.NewReader("x"), 1)
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	r.Close()
	if _, err := s.ReadText(t.Context(), key, gate.TextState{Generation: state.Generation}, w); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("read: %v", err)
	}
	if _, err := s.TextState(t.Context(), key); err != nil {
		t.Errorf("the store does not go on: %v", err)
	}
}

// TestTextsDamaged: a piece that is missing, or is none, is said.
func TestTextsDamaged(t *testing.T) {
	for name, harm := range map[string]string{
		"a piece is missing":   `DELETE FROM stopgate.text_chunks WHERE start > 0 AND start < 600000`,
		"the last is missing":  `DELETE FROM stopgate.text_chunks WHERE start > 600000`,
		"a piece is no S2":     `UPDATE stopgate.text_chunks SET content = 'x'`,
		"the length is wrong":  `UPDATE stopgate.texts SET bytes = bytes + 1`,
		"all pieces are gone ": `DELETE FROM stopgate.text_chunks`,
	} {
		t.Run(name, func(t *testing.T) {
			url := postgrestest.Database(t)
			s := openForTest(t, url)
			key := [32]byte{1}
			state, err := s.ReplaceText(t.Context(), key, 0, "", bytes.NewReader(make([]byte, 4*chunkBytes)), 4*chunkBytes)
			if err != nil {
				t.Fatal(err)
			}
			postgrestest.Exec(t, url, harm)
			var b strings.Builder
			if _, err := s.ReadText(t.Context(), key, gate.TextState{Generation: state.Generation}, &b); err == nil || !strings.Contains(err.Error(), "damaged") {
				t.Errorf("read: %v", err)
			}
		})
	}
}

// TestTextsOfAnErasedSession: a replica that began to take a text in before its session
// was erased, on whichever replica, does not bring it back.
func TestTextsOfAnErasedSession(t *testing.T) {
	all := replicas(t, 2)
	ctx, key := t.Context(), sha256.Sum256([]byte("s"))
	seen, err := all[0].Erasure(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	first, err := all[0].ReplaceText(ctx, key, seen, "", strings.NewReader("before"), 6)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(all[1].EraseSession(ctx, "s"), all[1].EraseText(ctx, key)); err != nil {
		t.Fatal(err)
	}
	if _, err := all[0].ReplaceText(ctx, key, seen, "", strings.NewReader("late"), 4); !errors.Is(err, gate.ErrErased) {
		t.Errorf("replace: %v", err)
	}
	for _, state := range []gate.TextState{{}, first} {
		if _, err := all[0].AppendText(ctx, key, seen, state, "", strings.NewReader("late"), 4); !errors.Is(err, gate.ErrErased) {
			t.Errorf("append to %+v: %v", state, err)
		}
	}
	if state, err := all[0].TextState(ctx, key); err != nil || state != (gate.TextState{}) {
		t.Errorf("the text is back: %+v, %v", state, err)
	}
	if seen, err = all[0].Erasure(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := all[0].AppendText(ctx, key, seen, gate.TextState{}, "", strings.NewReader("later"), 5); err != nil {
		t.Errorf("what began after the erasure: %v", err)
	}
}
