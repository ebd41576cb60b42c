package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stopgate/gate"
)

const everyLogin = `
listen: 0.0.0.0:8790
auth:
  keys: true
  oidc:
    issuer: https://login.example.com
    audience: stopgate
    name: email
    rules:
      - {claim: groups, value: platform, scopes: [admin]}
      - {claim: azp, value: "build-*", scopes: [evaluate, read], agents: ["build-*"]}
      - {claim: scope, value: gate, scopes: [evaluate], agents_claim: agent}
  tls:
    cert: server.pem
    key: /etc/keys/server.pem
    client_ca: clients.pem
    clients:
      - {name: "*.ci.example.com", scopes: [evaluate], agents: [deploy]}
`

func TestServerAuth(t *testing.T) {
	path := serverFile(t, everyLogin)
	got, err := LoadServer(path, atHome, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"*"}
	want := Auth{Keys: true,
		OIDC: &OIDC{Issuer: "https://login.example.com", Audience: "stopgate", Name: "email", Rules: []ClaimRule{
			{Claim: "groups", Value: "platform", Grant: Grant{[]gate.Scope{gate.AdminScope}, all}},
			{Claim: "azp", Value: "build-*", Grant: Grant{[]gate.Scope{gate.EvaluateScope, gate.ReadScope}, []string{"build-*"}}},
			{Claim: "scope", Value: "gate", Grant: Grant{[]gate.Scope{gate.EvaluateScope}, nil}, AgentsClaim: "agent"},
		}},
		TLS: &TLS{Cert: filepath.Join(filepath.Dir(path), "server.pem"), Key: "/etc/keys/server.pem", ClientCA: filepath.Join(filepath.Dir(path), "clients.pem"),
			Clients: []Client{{"*.ci.example.com", Grant{[]gate.Scope{gate.EvaluateScope}, []string{"deploy"}}}}}}
	if diff := cmp.Diff(want, got.Auth); diff != "" {
		t.Error(diff)
	}
}

// Each way to log in is enough to listen for other machines; TLS alone is none.
func TestServerListensElsewhereWithALogin(t *testing.T) {
	oidc := "oidc: {issuer: https://l.example, audience: a, rules: [{claim: sub, value: x, scopes: [read]}]}"
	for name, c := range map[string]struct {
		auth string
		ok   bool
	}{
		"keys":         {"{keys: true}", true},
		"oidc":         {"{" + oidc + "}", true},
		"certificates": {"{tls: {cert: c, key: k, client_ca: a, clients: [{name: n, scopes: [read]}]}}", true},
		"TLS alone":    {"{tls: {cert: c, key: k}}", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LoadServer(serverFile(t, "listen: 0.0.0.0:1\nauth: "+c.auth+"\n"), atHome, nil)
			if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "1:9: error: listen") {
				t.Errorf("error is %v", err)
			}
			got, err := LoadServer(serverFile(t, "auth: "+c.auth+"\n"), atHome, nil)
			if err != nil || got.Auth.LoginNeeded() != c.ok {
				t.Errorf("on loopback a login is needed: %v (%v)", got.Auth.LoginNeeded(), err)
			}
		})
	}
}

func TestServerAuthIsStrict(t *testing.T) {
	rule := "rules: [{claim: sub, value: x, scopes: [read]}]"
	for name, c := range map[string]struct{ auth, says string }{
		"unknown key":            {"{key: true}", `did you mean "keys"?`},
		"keys that is no flag":   {"{keys: 1}", "keys is the number 1, want true or false"},
		"oidc that is null":      {"{oidc: }", "auth says nobody"},
		"oidc that is empty":     {"{oidc: {}}", "issuer is missing"},
		"no audience":            {"{oidc: {issuer: https://l.example, " + rule + "}}", "audience is missing"},
		"no rules":               {"{oidc: {issuer: https://l.example, audience: a}}", "rules is missing: who may do what"},
		"empty rules":            {"{oidc: {issuer: https://l.example, audience: a, rules: []}}", "rules is missing"},
		"a rule that is text":    {"{oidc: {issuer: https://l.example, audience: a, rules: [x]}}", "rules[0] is the text"},
		"a rule without value":   {"{oidc: {issuer: https://l.example, audience: a, rules: [{claim: a, scopes: [read]}]}}", "auth.oidc.rules[0].value: value is missing"},
		"a misspelt limit":       {"{oidc: {issuer: https://l.example, audience: a, rules: [{claim: a, value: b, scopes: [read], agent: [x]}]}}", `key "agent" is unknown`},
		"no scopes":              {"{oidc: {issuer: https://l.example, audience: a, rules: [{claim: a, value: b}]}}", "scopes name none"},
		"an unknown scope":       {"{tls: {cert: c, key: k, client_ca: a, clients: [{name: n, scopes: [write]}]}}", `scope "write" is unknown`},
		"agents that are none":   {"{tls: {cert: c, key: k, client_ca: a, clients: [{name: n, scopes: [read], agents: []}]}}", "agents have 0 patterns"},
		"plain http":             {"{oidc: {issuer: http://l.example, audience: a, " + rule + "}}", "want https"},
		"no URL":                 {"{oidc: {issuer: l.example, audience: a, " + rule + "}}", "want its URL"},
		"clients without a CA":   {"{tls: {cert: c, key: k, clients: [{name: n, scopes: [read]}]}}", "clients need client_ca"},
		"a CA without clients":   {"{tls: {cert: c, key: k, client_ca: a}}", "client_ca lets nobody in"},
		"a certificate, no key":  {"{keys: true, tls: {cert: c}}", "key is missing"},
		"a client without name":  {"{tls: {cert: c, key: k, client_ca: a, clients: [{scopes: [read]}]}}", "name is missing"},
		"unknown key of clients": {"{tls: {cert: c, key: k, client_ca: a, clients: [{name: n, scopes: [read], cn: x}]}}", `key "cn" is unknown`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LoadServer(serverFile(t, "auth: "+c.auth+"\n"), atHome, nil)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v, want it to say %q", err, c.says)
			}
		})
	}
}
