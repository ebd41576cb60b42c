package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/klauspost/compress/s2"

	"stopgate/gate"
)

const (
	// chunkBytes is how much of a text is one row: little enough to be held in
	// memory by many uploads at once, and 8,192 rows for the largest text.
	chunkBytes = 256 << 10
	// textTime is how long a whole text may be on its way. Each piece of it has
	// no more time than any other statement.
	textTime = 10 * time.Minute
)

// aside waits for one of the connections that texts may have: half of all, so
// that however many are on their way, commits find one.
func (s *Store) aside(ctx context.Context) (done func(), err error) {
	select {
	case s.long <- struct{}{}:
		return func() { <-s.long }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("store is busy with other texts: %w", ctx.Err())
	case <-s.ending.Done():
		return nil, errClosed
	}
}

// TextState is how far the text is.
func (s *Store) TextState(ctx context.Context, key [32]byte) (state gate.TextState, err error) {
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		state, err = scanState(conn.QueryRow(ctx, selectState, key[:]))
		return err
	})
	return state, err
}

const selectState = `SELECT generation, bytes, form FROM stopgate.texts WHERE key = $1`

func scanState(row pgx.Row) (state gate.TextState, err error) {
	err = row.Scan(&state.Generation, &state.Bytes, (*text)(&state.Form))
	if errors.Is(err, pgx.ErrNoRows) {
		return gate.TextState{}, nil
	}
	return state, err
}

// ReplaceText makes the first n bytes of r the text.
func (s *Store) ReplaceText(ctx context.Context, key [32]byte, seen gate.Erasure, form string, r io.ReaderAt, n int64) (state gate.TextState, err error) {
	done, err := s.aside(ctx)
	if err != nil {
		return state, err
	}
	defer done()
	err = s.writeWithin(ctx, textTime, func(ctx context.Context, tx pgx.Tx) error {
		w := addition{store: s, tx: tx, key: key, id: []byte(rand.Text())}
		if _, err := w.look(ctx); err != nil {
			return err
		}
		if err := w.unerased(ctx, seen); err != nil {
			return err
		}
		if err := w.exec(ctx, `DELETE FROM stopgate.texts WHERE key = $1`, key[:]); err != nil {
			return err
		}
		state, err = w.begin(ctx, form)
		if err != nil {
			return err
		}
		state, err = w.add(ctx, state, form, r, n)
		return err
	})
	return state, err
}

// AppendText adds the first n bytes of r to the text as it is in state.
func (s *Store) AppendText(ctx context.Context, key [32]byte, seen gate.Erasure, state gate.TextState, form string, r io.ReaderAt, n int64) (next gate.TextState, err error) {
	done, err := s.aside(ctx)
	if err != nil {
		return next, err
	}
	defer done()
	id := []byte(rand.Text())
	do := func(ctx context.Context, tx pgx.Tx) error {
		w := addition{store: s, tx: tx, key: key, id: id}
		now, err := w.look(ctx)
		if err != nil {
			return err
		}
		if err := w.unerased(ctx, seen); err != nil {
			return err
		}
		if now.Generation != state.Generation || now.Bytes != state.Bytes {
			return gate.ErrTextChanged
		}
		if now.Generation == 0 {
			if now, err = w.begin(ctx, form); err != nil {
				return err
			}
		}
		next, err = w.add(ctx, now, form, r, n)
		return err
	}
	err = s.writeWithin(ctx, textTime, do)
	if _, ok := errors.AsType[*unknownError](err); !ok {
		return next, err
	}
	// The same again would be refused where it came about, and where another
	// was quicker: the piece tells which.
	var mine bool
	again := s.write(context.WithoutCancel(ctx), func(ctx context.Context, tx pgx.Tx) error {
		w := addition{store: s, tx: tx, key: key}
		if _, err := w.look(ctx); err != nil { // after whoever is still at it
			return err
		}
		return tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM stopgate.text_chunks WHERE key = $1 AND start = $2 AND addition = $3)`,
			key[:], state.Bytes, id).Scan(&mine)
	})
	switch {
	case again != nil:
		return gate.TextState{}, err
	case mine:
		return next, nil
	}
	err = s.writeWithin(ctx, textTime, do)
	return next, err
}

// addition is a text on its way into the database.
type addition struct {
	store *Store
	tx    pgx.Tx
	key   [32]byte
	id    []byte // tells it from all others
}

// look takes the text's lock and reads how far it is.
func (w *addition) look(ctx context.Context) (state gate.TextState, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.store.patience)
	defer cancel()
	var batch pgx.Batch
	lock(&batch, lockOf("text", string(w.key[:])))
	batch.Queue(selectState, w.key[:]).QueryRow(func(row pgx.Row) (err error) {
		state, err = scanState(row)
		return err
	})
	err = w.tx.SendBatch(ctx, &batch).Close()
	return state, err
}

// unerased is [gate.ErrErased] if the session that the text is of was erased since
// seen. An erasure is told of before the text is removed, for which it waits for the
// text's lock; so the one that is not seen here removes what is added here.
func (w *addition) unerased(ctx context.Context, seen gate.Erasure) error {
	if seen == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.store.patience)
	defer cancel()
	last, err := scanErasure(w.tx.QueryRow(ctx, `SELECT seq FROM stopgate.erasures WHERE session = $1`, w.key[:]))
	if err == nil && last > seen {
		return gate.ErrErased
	}
	return err
}

// begin makes an empty text.
func (w *addition) begin(ctx context.Context, form string) (state gate.TextState, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.store.patience)
	defer cancel()
	err = w.tx.QueryRow(ctx, `INSERT INTO stopgate.texts (key, generation, bytes, form)
		VALUES ($1, nextval('stopgate.text_generations'), 0, $2) RETURNING generation`, w.key[:], bytesOf(form)).Scan(&state.Generation)
	return state, err
}

// add writes r's first n bytes behind the text, piece by piece.
func (w *addition) add(ctx context.Context, state gate.TextState, form string, r io.ReaderAt, n int64) (gate.TextState, error) {
	piece := make([]byte, min(n, chunkBytes))
	var packed []byte
	for done := int64(0); done < n; done += int64(len(piece)) {
		piece = piece[:min(n-done, chunkBytes)]
		if _, err := r.ReadAt(piece, done); err != nil && !errors.Is(err, io.EOF) {
			return state, fmt.Errorf("text cannot be read: %w", err)
		}
		packed = s2.Encode(packed[:cap(packed)], piece)
		err := w.exec(ctx, `INSERT INTO stopgate.text_chunks (key, start, addition, content) VALUES ($1, $2, $3, $4)`,
			w.key[:], state.Bytes+done, w.id, packed)
		if err != nil {
			return state, err
		}
	}
	state.Bytes, state.Form = state.Bytes+n, form
	return state, w.exec(ctx, `UPDATE stopgate.texts SET bytes = $2, form = $3, touched = `+nowMillis+` WHERE key = $1`, w.key[:], state.Bytes, bytesOf(form))
}

// exec runs one statement within the time of one.
func (w *addition) exec(ctx context.Context, text string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, w.store.patience)
	defer cancel()
	_, err := w.tx.Exec(ctx, text, args...)
	return err
}

// ReadText writes the text from state.Bytes on. It is of one moment: a
// replacement meanwhile changes nothing of it.
func (s *Store) ReadText(ctx context.Context, key [32]byte, state gate.TextState, w io.Writer) (gate.TextState, error) {
	done, err := s.aside(ctx)
	if err != nil {
		return state, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, textTime)
	defer cancel()
	stalled := time.AfterFunc(s.patience, cancel)
	defer stalled.Stop()
	rows, err := s.pool.Query(ctx, `SELECT t.generation, t.bytes, t.form, c.start, c.content FROM stopgate.texts AS t
		LEFT JOIN stopgate.text_chunks AS c ON c.key = t.key AND c.start >= $2 WHERE t.key = $1 ORDER BY c.start`, key[:], state.Bytes)
	if err != nil {
		return state, explain(err)
	}
	var now gate.TextState
	var start *int64 // nil: there is nothing more
	var packed []byte
	var piece []byte
	var writing error
	_, err = pgx.ForEachRow(rows, []any{&now.Generation, &now.Bytes, (*text)(&now.Form), &start, &packed}, func() error {
		stalled.Reset(s.patience)
		if now.Generation != state.Generation {
			return gate.ErrTextChanged
		}
		if start == nil {
			return nil
		}
		if *start != state.Bytes {
			return fmt.Errorf("store text is damaged: a piece is missing at byte %d", state.Bytes)
		}
		if piece, err = s2.Decode(piece[:cap(piece)], packed); err != nil {
			return fmt.Errorf("store text is damaged: %w", err)
		}
		state.Bytes += int64(len(piece))
		_, writing = w.Write(piece)
		return writing
	})
	switch {
	case writing != nil: // not the store's
		return state, writing
	case err != nil:
		return state, explain(err)
	case now.Generation == 0: // no row
		return state, gate.ErrTextChanged
	case now.Bytes != state.Bytes:
		return state, fmt.Errorf("store text is damaged: it has %d of %d bytes", state.Bytes, now.Bytes)
	}
	return now, nil
}

// EraseText removes the text. The server's vacuum then overwrites the bytes, in
// its own time.
func (s *Store) EraseText(ctx context.Context, key [32]byte) error {
	return s.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		w := addition{store: s, tx: tx, key: key}
		if _, err := w.look(ctx); err != nil {
			return err
		}
		return w.exec(ctx, `DELETE FROM stopgate.texts WHERE key = $1`, key[:])
	})
}

// KnownTexts is those of the keys that there is a text of.
func (s *Store) KnownTexts(ctx context.Context, keys [][32]byte) (known map[[32]byte]bool, err error) {
	asked := make([][]byte, len(keys))
	for i := range keys {
		asked[i] = keys[i][:]
	}
	err = s.read(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		known = map[[32]byte]bool{}
		rows, err := conn.Query(ctx, `SELECT key FROM stopgate.texts WHERE key = ANY($1)`, asked)
		if err != nil {
			return err
		}
		var key []byte
		_, err = pgx.ForEachRow(rows, []any{&key}, func() error {
			known[[32]byte(key)] = true
			return nil
		})
		return err
	})
	return known, err
}
