package gate

import (
	"context"
	"io"
)

// SharedTexts keeps long texts where every replica has them: conversations,
// whose files on each machine are then copies. A text is named by a hash.
type SharedTexts interface {
	// TextState is how far the text is; the zero value if there is none.
	TextState(ctx context.Context, key [32]byte) (TextState, error)
	// ReplaceText makes the first n bytes of r the text, in place of what was
	// there, under a new generation. seen is the last erasure of the session whose
	// hash is key, from before anything of the text was taken in; 0: it was not
	// looked up. [ErrErased]: there was a later one, and nothing was stored.
	ReplaceText(ctx context.Context, key [32]byte, seen Erasure, form string, r io.ReaderAt, n int64) (TextState, error)
	// AppendText adds the first n bytes of r to the text as it is in state, or
	// begins it if that is zero. [ErrTextChanged]: it is not so any more, and
	// nothing was added. seen and [ErrErased] as in ReplaceText.
	AppendText(ctx context.Context, key [32]byte, seen Erasure, state TextState, form string, r io.ReaderAt, n int64) (TextState, error)
	// ReadText writes the text from the byte state.Bytes on, and answers the
	// state it has written up to. [ErrTextChanged]: it is of another generation.
	// After an error a part may have been written.
	ReadText(ctx context.Context, key [32]byte, state TextState, w io.Writer) (TextState, error)
	// EraseText removes the text; it is no error if there is none.
	EraseText(ctx context.Context, key [32]byte) error
	// KnownTexts is those of the keys that there is a text of.
	KnownTexts(ctx context.Context, keys [][32]byte) (map[[32]byte]bool, error)
}

// TextState says which bytes a text has: within a generation it only grows.
type TextState struct {
	Generation int64  // 0: there is no text; never used again after a text was replaced or erased
	Bytes      int64  // how long it is
	Form       string // what its owner wrote of it, with its last change
}

// ErrTextChanged is a text that another has changed meanwhile.
var ErrTextChanged = &Error{Code: CodeConflict, Message: "the text was changed meanwhile"}
