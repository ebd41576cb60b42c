package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestServerHTTP(t *testing.T) {
	got := load(t, `http: {hosts: [gate.example, GATE-2, 10.0.0.1, "::1", "[fe80::1]", "Bücher.example."], origins: [https://console.example, "http://localhost:3000", "http://[::1]:9"], shutdown_grace: 2m}`, atHome).HTTP
	want := HTTP{Hosts: []string{"gate.example", "gate-2", "10.0.0.1", "::1", "fe80::1", "xn--bcher-kva.example"},
		Origins: []string{"https://console.example", "http://localhost:3000", "http://[::1]:9"}, ShutdownGrace: 2 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct{ file, says string }{
		{`{hosts: ["http://gate.example"]}`, `1:16: error: http.hosts[0]: hosts[0] is "http://gate.example": want a host alone`},
		{`{hosts: [a, "gate.example:80"]}`, "http.hosts[1]: "},
		{`{hosts: ["*"]}`, "patterns are not supported"},
		{`{hosts: [""]}`, "no host name"},
		{`{hosts: ["a b"]}`, "no host name"},
		{`{hosts: ["a..b"]}`, "no host name"},
		{`{hosts: [-]}`, "no host name"},
		{`{hosts: [a, "127.1"]}`, "1:19: error: http.hosts[1]: hosts[1] is \"127.1\": it is an address in a form that systems read differently"},
		{`{hosts: ["fe80::1%eth0"]}`, "want a host without"},
		{`{hosts: gate.example}`, "hosts"},
		{`{origins: ["*"]}`, "every web page"},
		{`{origins: ["null"]}`, "every web page"},
		{`{origins: [console.example]}`, "want scheme and host"},
		{`{origins: ["ftp://console.example"]}`, "want scheme and host"},
		{`{origins: ["https://console.example/"]}`, "nothing more"},
		{`{origins: ["https://me@console.example"]}`, "nothing more"},
		{`{origins: ["https://Console.example"]}`, "lower case"},
		{`{origins: ["https://*.example"]}`, "nothing more"},
		{`{origins: ["https://bücher.example"]}`, "nothing more"},
		{`{origins: ["https://console.example:443"]}`, "the usual port"},
		{`{shutdown_grace: 0}`, "less than one second"},
		{`{shutdown_grace: soon}`, "want a duration"},
	} {
		_, err := LoadServer(serverFile(t, "http: "+c.file), atHome, nil)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want it to say %q", c.file, err, c.says)
		}
	}
}

func TestServerHTTPHooks(t *testing.T) {
	got := load(t, `http_hooks: {allow: [hooks.example.com, "*.example.com", "*", "localhost:8080", "[::1]:9", "::1", "*:8443", bücher.example, EXAMPLE.com.], proxy: "http://me:${SECRET}@proxy.example:3128/", ca_file: ca.pem, connections: 3}`,
		environment(map[string]string{"HOME": "/home/dev", "SECRET": "s3cr3t"})).HTTPHooks
	if !strings.HasSuffix(got.CAFile, "/ca.pem") || !filepath.IsAbs(got.CAFile) {
		t.Errorf("ca_file is %q, want a path from the file's directory", got.CAFile)
	}
	if password, _ := got.Proxy.User.Password(); password != "s3cr3t" || got.Proxy.Host != "proxy.example:3128" {
		t.Errorf("proxy is %v", got.Proxy)
	}
	got.Proxy, got.CAFile = nil, ""
	want := HTTPHooks{Allow: []string{"hooks.example.com", "*.example.com", "*", "localhost:8080", "[::1]:9", "::1", "*:8443", "bücher.example", "EXAMPLE.com."}, Connections: 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct{ file, says string }{
		{`{allow: ["https://hooks.example.com"]}`, `1:22: error: http_hooks.allow[0]: allow[0] is "https://hooks.example.com": it is a URL: want a host alone, without http://`},
		{`{allow: ["hooks.example.com/x"]}`, "no host name"},
		{`{allow: [""]}`, "no host name"},
		{`{allow: ["a:0"]}`, "want a port"},
		{`{allow: ["a:b"]}`, "want a port"},
		{`{allow: ["*a.example"]}`, "want *, *.example.com or a whole host name"},
		{`{allow: ["a", "127.1"]}`, `1:27: error: http_hooks.allow[1]: allow[1] is "127.1": it is an address in a form`},
		{`{allow: ["2130706433"]}`, "systems read differently"},
		{`{allow: ["0x7f.1:8080"]}`, "systems read differently"},
		{`{allow: ["*.1"]}`, "systems read differently"},
		{`{allow: ["*.127.0.0.1"]}`, "* before an address"},
		{`{allow: ["fe80::1%eth0"]}`, "has a zone"},
		{`{allow: "a"}`, "want a list"},
		{`{proxy: "socks5://proxy.example"}`, "proxy is not http:// or https://"},
		{`{proxy: "proxy.example:3128"}`, "proxy is not http:// or https://"},
		{`{proxy: "http://proxy.example/path"}`, "proxy is not http:// or https://"},
		{`{proxy: "http://me:pa ss@proxy example"}`, "proxy is not http:// or https://"},
		{`{connections: 0}`, "connections is 0"},
		{`{allowed: []}`, `did you mean "allow"?`},
	} {
		_, err := LoadServer(serverFile(t, "http_hooks: "+c.file), atHome, nil)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "pa ss") {
			t.Errorf("%s: error %v, want it to say %q", c.file, err, c.says)
		}
	}
}
