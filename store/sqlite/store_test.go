package sqlite_test

import (
	"testing"
	"time"

	"stopgate/gate"
	"stopgate/store/sqlite"
	"stopgate/store/storetest"
)

func TestStore(t *testing.T) {
	for name, lock := range map[string]bool{"locked": true, "shared": false} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t testing.TB) gate.Store { return open(t, sqlite.Options{Dir: t.TempDir(), Lock: lock}) })
		})
	}
}

// open opens a store that is closed at the test's end, with the system's clock
// if none is given.
func open(t testing.TB, opt sqlite.Options) *sqlite.Store {
	t.Helper()
	if opt.Now == nil {
		opt.Now = time.Now
	}
	s, err := sqlite.Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
