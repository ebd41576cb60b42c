package regular_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"stopgate/internal/regular"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{os.WriteFile(at("file"), []byte("content"), 0o600), os.Symlink("file", at("link")), syscall.Mkfifo(at("pipe"), 0o600),
		os.Symlink("/dev/zero", at("device")), os.Symlink("self", at("self"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name  string
		limit int64
		fails string
	}{
		{"file", 7, ""}, {"link", 1 << 20, ""}, {"file", 6, "file is larger than 6 bytes"},
		{"pipe", 7, "pipe is not a regular file"}, {"device", 7, "device is not a regular file"}, {"", 7, "is not a regular file"},
		{"self", 7, "too many"}, {"none", 7, "no such file"},
	} {
		data, err := regular.Read(at(tt.name), tt.limit)
		if tt.fails == "" && (err != nil || string(data) != "content") || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
			t.Errorf("%q, %d bytes: %q, %v, want %q", tt.name, tt.limit, data, err, tt.fails)
		}
	}
}
