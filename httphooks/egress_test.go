package httphooks

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"stopgate/gate"
)

func allowlist(domains ...string) *gate.Network {
	n := &gate.Network{}
	for _, d := range domains {
		n.Allow = append(n.Allow, gate.Destination{Domain: d})
	}
	return n
}

func TestAntigravity15Egress(t *testing.T) {
	w := newWorld(t, says("{}"))
	for _, c := range []struct {
		name, url string
		network   *gate.Network
		says      string // empty: it is asked
	}{
		{"absent: every external host", "https://hooks.example.com/a", nil, ""},
		{"no allowlist: the same", "https://hooks.example.com/a", &gate.Network{}, ""},
		{"disabled", "https://hooks.example.com/a", &gate.Network{Disabled: true}, "is disabled"},
		{"nothing is allowed", "https://hooks.example.com/a", &gate.Network{Disabled: true, Allow: []gate.Destination{}}, "an empty allowlist"},
		{"listed", "https://hooks.example.com/a", allowlist("other.example", "hooks.example.com"), ""},
		{"listed in another case", "https://HOOKS.example.com./a", allowlist("Hooks.Example.COM"), ""},
		{"listed in letters", "https://xn--bcher-kva.example/", allowlist("bücher.example"), ""},
		{"with a port", "https://hooks.example.com:8443/a", allowlist("hooks.example.com"), ""},
		{"not listed", "https://hooks.example.com/a", allowlist("example.com", "hooks.example.org"), "not in the agent's network allowlist"},
		{"a wildcard", "https://hooks.example.com/a", allowlist("*.example.com"), ""},
		{"a wildcard is not the domain itself", "https://example.com/a", allowlist("*.example.com"), "not in the agent's network allowlist"},
		{"nor another that ends alike", "https://evilexample.com/a", allowlist("*.example.com"), "not in the agent's network allowlist"},
		{"nor one that begins alike", "https://hooks.example.com.evil.example/a", allowlist("hooks.example.com", "*.example.com"), "not in the agent's network allowlist"},
		{"everything", "https://hooks.example.com/a", allowlist("*"), ""},
		{"an entry that cannot be read is about nothing", "https://hooks.example.com/a", allowlist("http://hooks.example.com", ""), "not in the agent's network allowlist"},
		{"an external address", "https://" + public.String() + "/", nil, ""},
		{"http", "http://hooks.example.com/a", nil, "by https:// alone"},
		{"http to loopback", "http://localhost/a", nil, "by https:// alone"},

		{"localhost", "https://localhost/", allowlist("*"), "is this machine"},
		{"localhost, listed", "https://localhost/", allowlist("localhost"), "is this machine"},
		{"LOCALHOST.", "https://LOCALHOST.:443/", nil, "is this machine"},
		{"below localhost", "https://a.localhost/", nil, "is this machine"},
		{"127.0.0.1", "https://127.0.0.1/", allowlist("127.0.0.1"), "is this machine"},
		{"127.9.9.9", "https://127.9.9.9/", nil, "is this machine"},
		{"::1", "https://[::1]/", nil, "is this machine"},
		{"mapped", "https://[::ffff:127.0.0.1]/", nil, "is this machine"},
		{"mapped, in hexadecimal", "https://[::ffff:7f00:1]/", nil, "is this machine"},
		{"wide digits", "https://１２７.0.0.1/", nil, "is this machine"},
		{"0.0.0.0", "https://0.0.0.0/", nil, "reserved address"},
		{"::", "https://[::]/", nil, "reserved address"},
		{"NAT64", "https://[64:ff9b::7f00:1]/", nil, "reserved address"},
		{"6to4", "https://[2002:7f00:1::]/", nil, "reserved address"},
		{"decimal", "https://2130706433/", nil, "systems read differently"},
		{"octal", "https://0177.0.0.1/", nil, "systems read differently"},
		{"hexadecimal", "https://0x7f000001/", nil, "systems read differently"},
		{"short", "https://127.1/", nil, "systems read differently"},
		{"metadata", "https://169.254.169.254/latest/meta-data/", allowlist("*"), "metadata"},
		{"a private address", "https://10.0.0.1/", allowlist("*"), "is a private address, which hooks of antigravity do not reach: name 10.0.0.1:443 in http_hooks.allow"},
		{"a private address, listed by the agent", "https://10.0.0.1/", allowlist("10.0.0.1"), "is a private address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := w.dialled.Load()
			in := hook(c.url)
			in.Network = c.network
			v := ask(t, w.caller(t), in)
			if c.says == "" {
				if v.Outcome != gate.Allow {
					t.Errorf("verdict %q %v", v.Outcome, v.Failure)
				}
				return
			}
			wantFailure(t, v, gate.EgressDenied, c.says)
			if w.dialled.Load() != before {
				t.Error("something was dialled")
			}
		})
	}
}

// The allow-list of claude-code is the server's; loopback is in it by name only.
func TestDesign8ClaudeCodeEgress(t *testing.T) {
	w := newWorld(t, says("{}"))
	for _, c := range []struct {
		name, url string
		allow     []string
		resolves  string
		says      string
	}{
		{"no list", "https://hooks.example.com/", nil, "", "not one of http_hooks.allow"},
		{"not on it", "https://hooks.example.com/", []string{"other.example"}, "", "not one of http_hooks.allow"},
		{"on it", "https://hooks.example.com/", []string{"hooks.example.com"}, "", ""},
		{"a pattern", "https://hooks.example.com/", []string{"*.example.com"}, "", ""},
		{"everything", "https://hooks.example.com/", []string{"*"}, "", ""},
		{"its port", "https://hooks.example.com:8443/", []string{"hooks.example.com:8443"}, "", ""},
		{"the usual port", "https://hooks.example.com/", []string{"hooks.example.com:443"}, "", ""},
		{"another port", "https://hooks.example.com/", []string{"hooks.example.com:8443"}, "", "not one of http_hooks.allow"},
		{"http", "http://hooks.example.com/", []string{"*"}, "", "for localhost alone"},
		{"loopback, not on it", "https://localhost/", []string{"other.example"}, "", "not one of http_hooks.allow"},
		{"loopback, by a pattern", "https://localhost/", []string{"*"}, "", "is this machine: name localhost:443 in http_hooks.allow"},
		{"loopback, on it", "https://localhost/", []string{"localhost"}, "", ""},
		{"loopback, as an address", "https://127.0.0.1/", []string{"127.0.0.1"}, "", ""},
		{"loopback, IPv6", "https://[::1]/", []string{"[::1]:443"}, "", ""},
		{"loopback, another port", "https://127.0.0.1:22/", []string{"127.0.0.1:443"}, "", "not one of http_hooks.allow"},
		{"a name of loopback", "https://hooks.example.com/", []string{"*.example.com"}, "127.0.0.1", "is this machine"},
		{"a name of loopback that is on it", "https://hooks.example.com/", []string{"hooks.example.com"}, "127.0.0.1", ""},
		{"http to a name of loopback", "http://hooks.example.com/", []string{"hooks.example.com"}, "127.0.0.1", "for localhost alone"},
		{"a private address by a pattern", "https://hooks.example.com/", []string{"*"}, "10.1.2.3", "is a private address"},
		{"a private address by name", "https://hooks.example.com/", []string{"*", "hooks.example.com"}, "10.1.2.3", ""},
		{"metadata by name", "https://hooks.example.com/", []string{"hooks.example.com"}, "169.254.169.254", "metadata"},
		{"metadata as an address", "https://169.254.169.254/", []string{"169.254.169.254"}, "", "metadata"},
		{"metadata of IPv6", "https://[fd00:ec2::254]/", []string{"fd00:ec2::254"}, "", "metadata"},
		{"link-local", "https://[fe80::1]/", []string{"fe80::1"}, "", "link-local"},
		{"unspecified", "https://0.0.0.0/", []string{"0.0.0.0"}, "", "reserved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			caller := w.caller(t, func(o *Options) {
				o.Allow = c.allow
				if c.resolves != "" {
					o.Resolve = func(context.Context, string) ([]netip.Addr, error) {
						return []netip.Addr{netip.MustParseAddr(c.resolves)}, nil
					}
				}
			})
			before := w.dialled.Load()
			v := ask(t, caller, hook(c.url, ofClaudeCode))
			if c.says == "" {
				if v.Outcome != gate.Allow {
					t.Errorf("verdict %q %v", v.Outcome, v.Failure)
				}
				return
			}
			wantFailure(t, v, gate.EgressDenied, c.says)
			if w.dialled.Load() != before {
				t.Error("something was dialled")
			}
		})
	}
}

// The server file opens private addresses, and only these, to antigravity's
// hooks too.
func TestAntigravity15PrivateHosts(t *testing.T) {
	w := newWorld(t, says("{}"))
	for addr, says := range map[string]string{"10.1.2.3": "", "127.0.0.1": "is this machine", "169.254.169.254": "metadata"} {
		caller := w.caller(t, func(o *Options) {
			o.Allow = []string{"hooks.example.com"}
			o.Resolve = func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr(addr)}, nil
			}
		})
		v := ask(t, caller, hook("https://hooks.example.com/"))
		if says != "" {
			wantFailure(t, v, gate.EgressDenied, says)
		} else if v.Outcome != gate.Allow {
			t.Errorf("%s: %v", addr, v.Failure)
		}
	}
}

// A resolver that says something else each time: what was checked is what is
// dialled, and every address counts.
func TestRebinding(t *testing.T) {
	w := newWorld(t, says("{}"))
	addr := netip.MustParseAddr
	for name, c := range map[string]struct {
		answers [][]netip.Addr
		says    string
	}{
		"external first, then loopback": {[][]netip.Addr{{public}, {addr("127.0.0.1")}, {addr("127.0.0.1")}}, ""},
		"loopback first":                {[][]netip.Addr{{addr("127.0.0.1")}, {public}}, "is this machine"},
		"both at once":                  {[][]netip.Addr{{public, addr("127.0.0.1")}}, "is this machine"},
		"loopback as IPv6":              {[][]netip.Addr{{addr("::ffff:127.0.0.1")}}, "is this machine"},
		"loopback after many":           {[][]netip.Addr{{public, public, public, public, public, public, addr("::1")}}, "is this machine"},
		"metadata":                      {[][]netip.Addr{{addr("169.254.169.254")}}, "metadata"},
		"a zone":                        {[][]netip.Addr{{addr("fe80::1%eth0")}}, "link-local"},
	} {
		t.Run(name, func(t *testing.T) {
			w.asked = nil
			asked := 0
			caller := w.caller(t, func(o *Options) {
				o.Resolve = func(context.Context, string) ([]netip.Addr, error) {
					asked++
					return c.answers[min(asked, len(c.answers))-1], nil
				}
			})
			v := ask(t, caller, hook("https://hooks.example.com/"))
			if c.says == "" {
				if v.Outcome != gate.Allow || asked != 1 || strings.Join(w.asked, " ") != public.String()+":443" {
					t.Errorf("verdict %q %v; resolved %d times, dialled %v", v.Outcome, v.Failure, asked, w.asked)
				}
				return
			}
			wantFailure(t, v, gate.EgressDenied, c.says)
			if len(w.asked) > 0 {
				t.Errorf("dialled %v", w.asked)
			}
		})
	}
}

// A connection that claude-code may have is none for antigravity.
func TestConnectionsAreNotSharedByDialects(t *testing.T) {
	w := newWorld(t, says("{}"))
	caller := w.caller(t, func(o *Options) {
		o.Allow = []string{"hooks.example.com"}
		o.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
	})
	for range 2 {
		if v := ask(t, caller, hook("https://hooks.example.com/", ofClaudeCode)); v.Outcome != gate.Allow {
			t.Fatal(v.Failure)
		}
		wantFailure(t, ask(t, caller, hook("https://hooks.example.com/")), gate.EgressDenied, "is this machine")
	}
	if w.dialled.Load() != 1 {
		t.Errorf("%d connections, want one that is used again", w.dialled.Load())
	}
}

func TestNewRefuses(t *testing.T) {
	for _, allow := range []string{"", "https://a.example", "a.example/x", "127.1", "*.127.0.0.1", "a.*.example", "a b", "[::1]:x:y"} {
		if _, err := New(Options{Allow: []string{"good.example", allow}}); err == nil {
			t.Errorf("allowed host %q is taken", allow)
		}
	}
	if _, err := New(Options{Connections: -1}); err == nil {
		t.Error("-1 connections are taken")
	}
}
