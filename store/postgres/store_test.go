package postgres_test

import (
	"testing"

	"stopgate/gate"
	"stopgate/store/postgres"
	"stopgate/store/postgres/postgrestest"
	"stopgate/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB) gate.Store { return open(t, postgres.Options{}) })
}

// open opens a store that is closed at the test's end, on an empty database if
// none is given.
func open(t testing.TB, opt postgres.Options) *postgres.Store {
	t.Helper()
	if opt.URL == "" {
		opt.URL = postgrestest.Database(t)
	}
	s, err := postgres.Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
