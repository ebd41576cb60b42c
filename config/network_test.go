package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
	"stopgate/internal/contract"
)

func TestAntigravity15Network(t *testing.T) {
	bearer := gate.Header{Name: "Authorization", Value: "Bearer one-two-three"}
	for _, c := range []struct {
		name, body string
		want       gate.Network
		warning    string
	}{
		{"as documented", `{"allowlist":[{"domain":"telemetry.example.com","transform":{"Authorization":"Bearer one-two-three"}},{"domain":"*"}]}`,
			gate.Network{Allow: []gate.Destination{{Domain: "telemetry.example.com", Transform: []gate.Header{bearer}}, {Domain: "*"}}}, ""},
		{"transform as a list of maps", `{"allowlist":[{"domain":"*.example.com","transform":[{"Authorization":"Bearer one-two-three"},{"X-Team":"aaaa","X-Part":"bbbb"}]}]}`,
			gate.Network{Allow: []gate.Destination{{Domain: "*.example.com", Transform: []gate.Header{bearer, {Name: "X-Team", Value: "aaaa"}, {Name: "X-Part", Value: "bbbb"}}}}}, ""},
		{"disabled", `"disabled"`, gate.Network{Disabled: true}, ""},
		{"disabled, in its environment", `{"network":"disabled"}`, gate.Network{Disabled: true}, ""},
		{"an allowlist in its environment", `{"network":{"allowlist":[{"domain":"*"}]}}`, gate.Network{Allow: []gate.Destination{{Domain: "*"}}}, ""},
		{"a schema for editors", `{"$schema":"../schemas/network.json","allowlist":[{"domain":"*"}]}`, gate.Network{Allow: []gate.Destination{{Domain: "*"}}}, ""},
		{"and beside its environment's name", `{"$schema":"x","network":"disabled"}`, gate.Network{Disabled: true}, ""},
		{"no allowlist", `{}`, gate.Network{}, "every external host may be reached"},
		{"an empty allowlist", `{"allowlist":[]}`, gate.Network{Disabled: true, Allow: []gate.Destination{}}, "no host may be reached"},
		{"loopback", `{"allowlist":[{"domain":"LOCALHOST"}]}`, gate.Network{Allow: []gate.Destination{{Domain: "LOCALHOST"}}}, "1:25: warning: allowlist[0].domain: domain is \"LOCALHOST\", which is always refused"},
		{"loopback, in wide letters", `{"allowlist":[{"domain":"ⓛocalhost."}]}`, gate.Network{Allow: []gate.Destination{{Domain: "ⓛocalhost."}}}, "which is always refused"},
		{"a secret that is too short to be hidden", `{"allowlist":[{"domain":"*","transform":{"X-Key":"5ec"}}]}`,
			gate.Network{Allow: []gate.Destination{{Domain: "*", Transform: []gate.Header{{Name: "X-Key", Value: "5ec"}}}}},
			`allowlist[0].transform.X-Key: header "X-Key" has a secret of fewer than 4 bytes`},
		{"a credential that is", `{"allowlist":[{"domain":"*","transform":{"X-Key":"Bearer 5ec"}}]}`,
			gate.Network{Allow: []gate.Destination{{Domain: "*", Transform: []gate.Header{{Name: "X-Key", Value: "Bearer 5ec"}}}}}, "fewer than 4 bytes"},
		{"a name of another script", `{"allowlist":[{"domain":"bücher.example"},{"domain":"EXAMPLE.com."}]}`,
			gate.Network{Allow: []gate.Destination{{Domain: "bücher.example"}, {Domain: "EXAMPLE.com."}}}, ""},
		{"a byte order mark", "\xef\xbb\xbf" + `{"allowlist":[{"domain":"*"}]}`, gate.Network{Allow: []gate.Destination{{Domain: "*"}}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, findings := ReadNetwork("a", []byte(c.body))
			if gate.HasErrors(findings) || !strings.Contains(textOf(findings), c.warning) || (c.warning == "") != (len(findings) == 0) {
				t.Fatalf("findings %s, want %q", textOf(findings), c.warning)
			}
			if d := cmp.Diff(&c.want, spec.Network); d != "" || spec.Kind != gate.NetworkSpec || spec.Name != "a" {
				t.Errorf("%s %q (-want +got):\n%s", spec.Kind, spec.Name, d)
			}
			again, _ := ReadNetwork("a", spec.Document)
			if again == nil || cmp.Diff(spec.Network, again.Network) != "" || spec.Document[0] != '{' {
				t.Errorf("the stored document %s reads otherwise", spec.Document)
			}
		})
	}
}

func TestNetworkErrors(t *testing.T) {
	const secret = "very-secret-value"
	in := func(transform string) string {
		return `{"allowlist":[{"domain":"a.example","transform":` + transform + `}]}`
	}
	for _, c := range []struct{ name, body, want string }{
		{"no JSON", `{"allowlist":`, "1:13: error: text is not JSON"},
		{"another word", `"enabled"`, `1:1: error: network is the text "enabled", want an object with an allowlist, or "disabled"`},
		{"the word without quotes", "disabled\n", `1:1: error: network is the word disabled without quotes, want the JSON text "disabled"`},
		{"a switch", `{"disabled":true}`, `1:1: error: network is an object with disabled, want the JSON text "disabled"`},
		{"a switch in its environment", `{"network":{"disabled":true}}`, `want the JSON text "disabled"`},
		{"null", `null`, "network is null"},
		{"a list", `[]`, "network is a list"},
		{"an unknown key", `{"allow_list":[]}`, `1:2: error: allow_list: key "allow_list" is unknown; did you mean "allowlist"?`},
		{"a key beside network", `{"network":"disabled","type":"remote"}`, `key "type" is unknown`},
		{"null for a list", `{"allowlist":null}`, "allowlist is null"},
		{"an object for a list", `{"allowlist":{}}`, "allowlist is an object"},
		{"a bare host", `{"allowlist":["a.example"]}`, `1:15: error: allowlist[0]: allowlist[0] is the text "a.example", want an object`},
		{"no domain", `{"allowlist":[{}]}`, "domain"},
		{"null for a domain", `{"allowlist":[{"domain":null}]}`, `domain is "": it is no host name`},
		{"an empty domain", `{"allowlist":[{"domain":""}]}`, "domain"},
		{"a domain that is no text", `{"allowlist":[{"domain":1}]}`, "domain is the number 1"},
		{"a url", `{"allowlist":[{"domain":"https://a.example"}]}`, "without http://"},
		{"a port", `{"allowlist":[{"domain":"a.example:443"}]}`, "without its port"},
		{"a number", `{"allowlist":[{"domain":"2130706433"}]}`, `1:25: error: allowlist[0].domain: domain is "2130706433": it is an address in a form`},
		{"an address of two parts", `{"allowlist":[{"domain":"127.1"}]}`, "systems read differently"},
		{"a pattern of numbers", `{"allowlist":[{"domain":"*.1"}]}`, "systems read differently"},
		{"an address with a zone", `{"allowlist":[{"domain":"fe80::1%eth0"}]}`, "has a zone"},
		{"a wildcard inside", `{"allowlist":[{"domain":"a.*.example"}]}`, "want *, *.example.com or a whole host name"},
		{"a wildcard without dot", `{"allowlist":[{"domain":"*example.com"}]}`, "want *, *.example.com or a whole host name"},
		{"two wildcards", `{"allowlist":[{"domain":"*.*.example"}]}`, "want *, *.example.com or a whole host name"},
		{"an unknown key of an entry", `{"allowlist":[{"domain":"a.example","transforms":{}}]}`, `did you mean "transform"?`},
		{"a transform that is text", in(`"` + secret + `"`), "transform is neither an object"},
		{"a list of texts", in(`["` + secret + `"]`), "allowlist[0].transform[0]: transform is neither"},
		{"a number for a value", in(`{"X-Key":123456789}`), `header "X-Key" has a value that is no text`},
		{"a header twice", in(`[{"X-Key":"a"},{"x-key":"b"}]`), `header "x-key" is given twice`},
		{"a mark in the place of a secret", in(`{"X-Key":"[hidden]"}`), `allowlist[0].transform.X-Key: header "X-Key" has the value "[hidden]"`},
		{"a line break", in(`{"X-Key":"` + secret + `\r\nX-Other: 1"}`), "line break"},
		{"Host", in(`{"Host":"` + secret + `"}`), `header "Host" cannot be set`},
		{"a header of the connection", in(`{"Transfer-Encoding":"` + secret + `"}`), "cannot be set"},
		{"a header of a proxy", in(`{"Proxy-Authorization":"` + secret + `"}`), "cannot be set"},
		{"no header's name", in(`{"X Key":"` + secret + `"}`), "is no name of a header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, findings := ReadNetwork("a", []byte(c.body))
			text := textOf(findings)
			if spec != nil || !gate.HasErrors(findings) || !strings.Contains(text, c.want) {
				t.Errorf("spec %v, findings %s, want %q", spec, text, c.want)
			}
			if strings.Contains(text, secret) || strings.Contains(text, "123456789") {
				t.Errorf("a finding quotes a header's value: %s", text)
			}
		})
	}
}

func TestAntigravity16HideSecrets(t *testing.T) {
	for name, c := range map[string]struct{ document, want string }{
		"a map":               {`{"allowlist":[{"domain":"a","transform":{"X":"s"}},{"domain":"*"}]}`, `{"allowlist":[{"domain":"a","transform":{"X":"[hidden]"}},{"domain":"*"}]}`},
		"a list":              {`{"allowlist":[{"domain":"a","transform":[{"X":"s"},{"Y":"s"}]}]}`, `{"allowlist":[{"domain":"a","transform":[{"X":"[hidden]"},{"Y":"[hidden]"}]}]}`},
		"inside network":      {`{"network":{"allowlist":[{"domain":"a","transform":{"X":"s"}}]}}`, `{"network":{"allowlist":[{"domain":"a","transform":{"X":"[hidden]"}}]}}`},
		"of no legal shape":   {`{"transform":["s",1,true,null,{"X":{"Y":"s"}}]}`, `{"transform":["[hidden]","[hidden]","[hidden]","[hidden]",{"X":{"Y":"[hidden]"}}]}`},
		"disabled":            {`{"network":"disabled"}`, `{"network":"disabled"}`},
		"what cannot be read": {`{"transform":{"X":"s"`, `{}`},
	} {
		if got := string(HideSecrets(gate.NetworkSpec, json.RawMessage(c.document))); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// The documentation's own example is taken as it is.
func TestAntigravity15ExampleOfTheDocumentation(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(contract.Dir(t, "spec/examples/antigravity"), "network.json"))
	if err != nil {
		t.Fatal(err)
	}
	spec, findings := ReadNetwork("a", data)
	if len(findings) > 0 || len(spec.Network.Allow) != 2 || len(spec.Network.Allow[0].Transform) != 1 {
		t.Errorf("network %+v, findings %s", spec, textOf(findings))
	}
}
