package hostname

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// What is accepted is in its one spelling: read again it is the same, and what
// the C library would take for an address is one here too.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"example.com", "LOCALHOST.", "127.1", "[::1]", "bücher.example", "1。2", "0x7f.1", "::ffff:1.2.3.4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		host, addr, fault := Read(text)
		if fault != "" {
			return
		}
		again, addr2, fault := Read(host)
		if fault != "" || again != host || addr2 != addr {
			t.Fatalf("%q is %q, which is %q (%s)", text, host, again, fault)
		}
		if parsed, err := netip.ParseAddr(host); (err == nil) != addr.IsValid() || err == nil && parsed.Unmap() != addr {
			t.Fatalf("%q is %q with the address %v", text, host, addr)
		}
		if strings.ContainsAny(host, " /@?#%\r\n\x00") || host != strings.ToLower(host) {
			t.Fatalf("%q is %q", text, host)
		}
		bracketed := host
		if addr.Is6() {
			bracketed = "[" + host + "]"
		}
		if u, err := url.Parse("https://" + bracketed + "/"); err != nil || u.Hostname() != host {
			t.Fatalf("%q is %q, which no URL can hold: %v", text, host, err)
		}
	})
}
