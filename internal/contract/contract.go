// Package contract finds what tests hold stopgate to and that is not part of
// it: the documentation's examples and captured sessions, which lie beside the
// checkout as ../shared.
package contract

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir is a directory of the contract, as "spec/examples", absolute. Where it is
// not there the test is skipped, since a plain clone lacks it; in CI its
// absence is a failure.
func Dir(t testing.TB, name string) string {
	t.Helper()
	dir, err := find(name)
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("the contract is not beside the checkout: %v", err)
	default:
		t.Skip("the contract (../shared) is not beside this checkout")
	}
	return dir
}

// Find is Dir for who cannot skip: wanted is false in a plain clone alone.
func Find(name string) (dir string, wanted bool) {
	dir, err := find(name)
	return dir, err == nil || os.Getenv("CI") != ""
}

// find looks beside the module's root, which is where go.mod is; tests run in
// their package's directory.
func find(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	dir = filepath.Join(filepath.Dir(dir), "shared", filepath.FromSlash(name))
	_, err = os.Stat(dir)
	return dir, err
}
