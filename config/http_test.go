package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestServerHTTP(t *testing.T) {
	got := load(t, `http: {hosts: [gate.example, GATE-2, 10.0.0.1, "::1", "[fe80::1]"], origins: [https://console.example, "http://localhost:3000", "http://[::1]:9"], shutdown_grace: 2m}`, atHome).HTTP
	want := HTTP{Hosts: []string{"gate.example", "GATE-2", "10.0.0.1", "::1", "fe80::1"},
		Origins: []string{"https://console.example", "http://localhost:3000", "http://[::1]:9"}, ShutdownGrace: 2 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct{ file, says string }{
		{`{hosts: ["http://gate.example"]}`, `1:15: error: http.hosts[0]: hosts[0] is "http://gate.example": want a host alone`},
		{`{hosts: [a, "gate.example:80"]}`, "http.hosts[1]: "},
		{`{hosts: ["*"]}`, "patterns are not supported"},
		{`{hosts: [""]}`, "want a host name"},
		{`{hosts: ["a b"]}`, "want a host name"},
		{`{hosts: ["a..b"]}`, "want a host name"},
		{`{hosts: [-]}`, "want a host name"},
		{`{hosts: gate.example}`, "hosts"},
		{`{origins: ["*"]}`, "every web page"},
		{`{origins: ["null"]}`, "every web page"},
		{`{origins: [console.example]}`, "want scheme and host"},
		{`{origins: ["ftp://console.example"]}`, "want scheme and host"},
		{`{origins: ["https://console.example/"]}`, "nothing more"},
		{`{origins: ["https://me@console.example"]}`, "nothing more"},
		{`{origins: ["https://Console.example"]}`, "lower case"},
		{`{origins: ["https://*.example"]}`, "nothing more"},
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
