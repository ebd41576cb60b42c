package config

import (
	"fmt"
	"net/netip"
	"net/url"

	"stopgate/gate"
)

// Auth says who may come in, and by what (DESIGN §8). The zero value is nobody's
// login.
type Auth struct {
	Keys bool  // API keys
	OIDC *OIDC // tokens of an issuer; nil: none
	TLS  *TLS  // nil: the service speaks plain HTTP
}

// LoginNeeded reports whether a request must say who sends it.
func (a Auth) LoginNeeded() bool {
	return a.Keys || a.OIDC != nil || a.TLS != nil && len(a.TLS.Clients) > 0
}

// Grant is what somebody may do.
type Grant struct {
	Scopes []gate.Scope
	Agents []string // patterns (see [gate.MatchName]); [gate.EveryAgent] where the file says nothing
}

// OIDC is an identity provider whose tokens are believed.
type OIDC struct {
	Issuer, Audience string
	Name             string // claim that names the caller; empty: sub
	Rules            []ClaimRule
}

// ClaimRule is what the tokens with a claim may do.
type ClaimRule struct {
	Claim, Value string
	Grant
	AgentsClaim string // names more agents; then the file's are none where it says nothing
}

// TLS is the service's side of TLS.
type TLS struct {
	Cert, Key, ClientCA string // files
	Clients             []Client
}

// Client is who comes with a client certificate of a name.
type Client struct {
	Name string // pattern of one of the certificate's names
	Grant
}

const nobody = "auth says nobody may come in: set keys: true, oidc, or tls with clients; without a login, leave auth out"

// auth reads who may come in.
func (r *serverReader) auth(top *object) Auth {
	if top.value("auth") == nil {
		if top.node.has("auth") { // "auth:" alone was meant to be something
			top.errorf("auth", top.place("auth"), "%s", nobody)
		}
		return Auth{}
	}
	o := section(top, "auth")
	defer o.unknown(true)
	a := Auth{Keys: o.flag("keys")}
	if oidc := o.object("oidc"); oidc != nil {
		a.OIDC = readOIDC(oidc)
	}
	if tls := o.object("tls"); tls != nil {
		a.TLS = r.tls(tls)
	}
	if !a.LoginNeeded() && a.TLS == nil && o.value("oidc") == nil && o.value("tls") == nil { // what is wrong there is said there
		o.errorf(o.path, top.place("auth"), "%s", nobody)
	}
	return a
}

func readOIDC(o *object) *OIDC {
	defer o.unknown(true)
	c := &OIDC{Issuer: required(o, "issuer"), Audience: required(o, "audience"), Name: o.text("name")}
	if what := issuerFault(c.Issuer); c.Issuer != "" && what != "" {
		o.errorf(o.child("issuer"), o.place("issuer"), "issuer is %q: %s", cut(c.Issuer), what)
	}
	for _, rule := range objects(o, "rules", "who may do what by their claims") {
		c.Rules = append(c.Rules, ClaimRule{Claim: required(rule, "claim"), Value: required(rule, "value"),
			AgentsClaim: rule.text("agents_claim"), Grant: readGrant(rule, rule.text("agents_claim") != "")})
		rule.unknown(true)
	}
	return c
}

// issuerFault says what is wrong with an issuer; empty: nothing.
func issuerFault(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "want its URL as its tokens have it, as https://login.example.com"
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	if u.Scheme != "https" && !(u.Scheme == "http" && local) {
		return "want https, since whoever answers for it says who may come in"
	}
	return ""
}

func (r *serverReader) tls(o *object) *TLS {
	defer o.unknown(true)
	t := &TLS{Cert: r.path(o, "cert", ""), Key: r.path(o, "key", ""), ClientCA: r.path(o, "client_ca", "")}
	required(o, "cert")
	required(o, "key")
	if o.value("clients") != nil {
		for _, c := range objects(o, "clients", "who comes with which certificate") {
			t.Clients = append(t.Clients, Client{Name: required(c, "name"), Grant: readGrant(c, false)})
			c.unknown(true)
		}
	}
	switch {
	case t.ClientCA == "" && o.value("clients") != nil:
		o.errorf(o.child("clients"), o.place("clients"), "clients need client_ca: the authorities that their certificates are believed from")
	case t.ClientCA != "" && len(t.Clients) == 0:
		o.errorf(o.child("client_ca"), o.place("client_ca"), "client_ca lets nobody in without clients: say who comes with which certificate")
	}
	return t
}

// readGrant reads scopes and agents. Without agents they are all, unless they
// are named elsewhere.
func readGrant(o *object, elsewhere bool) Grant {
	var g Grant
	for _, s := range o.texts("scopes") {
		g.Scopes = append(g.Scopes, gate.Scope(s))
	}
	if err := gate.CheckScopes(g.Scopes); err != nil {
		o.errorf(o.child("scopes"), o.place("scopes"), "%s", err)
	}
	switch {
	case o.value("agents") != nil:
		g.Agents = o.texts("agents")
	case elsewhere:
		return g
	default:
		g.Agents = []string{gate.EveryAgent}
	}
	if err := gate.CheckPatterns(g.Agents); err != nil {
		o.errorf(o.child("agents"), o.place("agents"), "%s", err)
	}
	return g
}

// required is a text that must be there.
func required(o *object, name string) string {
	text := o.text(name)
	if n := o.value(name); text == "" && (n == nil || n.kind == textKind) {
		o.errorf(o.child(name), o.place(name), "%s is missing", name)
	}
	return text
}

// objects is a list of objects, of which there must be one.
func objects(o *object, name, what string) []*object {
	items := o.list(name)
	if n := o.value(name); len(items) == 0 && (n == nil || n.kind == listKind) {
		o.errorf(o.child(name), o.place(name), "%s is missing: %s", name, what)
	}
	var list []*object
	for i, n := range items {
		item := fmt.Sprintf("%s[%d]", name, i)
		if n.kind != objectKind {
			o.errorf(o.child(item), n.pos, "%s is %s, want an object", item, n.describe())
			continue
		}
		list = append(list, &object{findings: o.findings, path: o.child(item), node: n})
	}
	return list
}
