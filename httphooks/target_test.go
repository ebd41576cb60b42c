package httphooks

import (
	"strings"
	"testing"

	"stopgate/gate"
)

func TestReadTarget(t *testing.T) {
	for _, c := range []struct{ url, sent, host, port string }{
		{"https://example.com", "https://example.com", "example.com", "443"},
		{"HTTPS://EXAMPLE.com./a?b=c#d", "https://example.com/a?b=c", "example.com", "443"},
		{"https://example.com:8443/a%2fb", "https://example.com:8443/a%2fb", "example.com", "8443"},
		{"http://localhost:9/x", "http://localhost:9/x", "localhost", "9"},
		{"https://bücher.example/", "https://xn--bcher-kva.example/", "xn--bcher-kva.example", "443"},
		{"https://ｅｘａｍｐｌｅ。ｃｏｍ/", "https://example.com/", "example.com", "443"},
		{"https://１２７.０.０.１/", "https://127.0.0.1/", "127.0.0.1", "443"},
		{"https://ⓛocalhost/", "https://localhost/", "localhost", "443"},
		{"https://[::1]:8/", "https://[::1]:8/", "::1", "8"},
		{"https://[::ffff:127.0.0.1]/", "https://127.0.0.1/", "127.0.0.1", "443"},
		{"https://[0:0:0:0:0:0:0:1]/", "https://[::1]/", "::1", "443"},
		{"https://127.0.0.1./", "https://127.0.0.1/", "127.0.0.1", "443"},
		{"https://_dmarc.a-b.example/", "https://_dmarc.a-b.example/", "_dmarc.a-b.example", "443"},
		{"https://%6cocalhost/", "", "", ""}, // net/url takes no escapes of ASCII in a host
	} {
		got, failure := readTarget(c.url)
		if c.sent == "" {
			if failure == nil {
				t.Errorf("%s: read as %s", c.url, got.url)
			}
			continue
		}
		if failure != nil || got.url.String() != c.sent || got.host != c.host || got.port != c.port {
			t.Errorf("%s: %v %q %q (%v), want %q %q %q", c.url, got.url, got.host, got.port, failure, c.sent, c.host, c.port)
		}
	}
}

func TestReadTargetRefuses(t *testing.T) {
	for _, c := range []struct{ url, says string }{
		{"", "cannot be read"},
		{"example.com/a", "cannot be read"},
		{"https:example.com", "cannot be read"},
		{"https://", "cannot be read"},
		{"https:///a", "cannot be read"},
		{"https://:443/", "cannot be read"},
		{"https://example.com\r\nX: 1/", "cannot be read"},
		{"https://example.com/a\r\nX-Injected: 1", "cannot be read"},
		{"https://exa\x00mple.com/", "cannot be read"},
		{"https://exa%00mple.com/", "cannot be read"},
		{"https://[::1%25eth0]/", "zone"},
		{"https://[::1/", "cannot be read"},
		{"https://example.com:port/", "cannot be read"},
		{"file:///etc/passwd", "cannot be read"},
		{"ftp://example.com/", `begins with "ftp"`},
		{"gopher://example.com/", `begins with "gopher"`},
		{"https://user:pass@example.com/", "a user or a password"},
		{"https://example.com@127.0.0.1/", "a user or a password"},
		{"https://2130706433/", "systems read differently"},
		{"https://0x7f000001/", "systems read differently"},
		{"https://0x7f.0.0.1/", "systems read differently"},
		{"https://017700000001/", "systems read differently"},
		{"https://0177.0.0.1/", "systems read differently"},
		{"https://127.1/", "systems read differently"},
		{"https://127.0.1/", "systems read differently"},
		{"https://127.0.0.0x1/", "systems read differently"},
		{"https://127.0.0.1.1/", "systems read differently"},
		{"https://256.256.256.256/", "systems read differently"},
		{"https://0/", "systems read differently"},
		{"https://example.0x/", "systems read differently"},
		{"https://example..com/", "no host name"},
		{"https://.example.com/", "no host name"},
		{"https://example.com../", "no host name"},
		{"https://-a.example/", "no host name"},
		{"https://a b.example/", "cannot be read"},
		{"https://a*.example/", "no host name"},
		{"https://" + strings.Repeat("a", 64) + ".example/", "no host name"},
		{"https://" + strings.Repeat("a.", 130) + "example/", "no host name"},
		{"https://a\u200db\u202e.example/", "no host name"},
		{"https://\xff.example/", "no host name"},
	} {
		got, failure := readTarget(c.url)
		if failure == nil || failure.Code != gate.EgressDenied || !strings.Contains(failure.Message, c.says) {
			t.Errorf("%q: %v, failure %v, want …%s…", c.url, got.url, failure, c.says)
		}
	}
}
