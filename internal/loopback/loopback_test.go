package loopback_test

import (
	"testing"

	"stopgate/internal/loopback"
)

func TestHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "LOCALHOST": false, "localhost.": false, "localhost.example": false, "127.0.0.1.example": false, "127.1": false,
		"[::1]": false, "127.0.0.1:80": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "::ffff:10.0.0.1": false, "169.254.169.254": false,
	} {
		if got := loopback.Host(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}
