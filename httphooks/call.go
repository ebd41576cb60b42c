package httphooks

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"stopgate/gate"
)

// call is one request to one hook.
type call struct {
	target
	dialect gate.Dialect
	header  http.Header
	secrets []string // values that came from elsewhere than the hook
}

// plan makes of a hook what is sent, or says why nothing is.
func (c *Caller) plan(in gate.Input) (call, *gate.Failure) {
	h := in.Hook
	if c.direct[h.Dialect] == nil {
		return call{}, failf(gate.Internal, "hooks of %s are not asked over HTTP", h.Dialect)
	}
	p := call{dialect: h.Dialect, header: http.Header{}, secrets: c.proxySecrets()}
	var failure *gate.Failure
	if p.target, failure = readTarget(h.URL); failure != nil {
		return p, failure
	}
	if failure := c.permit(p.dialect, p.target, in.Network); failure != nil {
		return p, failure
	}
	p.header.Set("Content-Type", "application/json")
	p.header.Set("Accept", "application/json")
	p.header.Set("User-Agent", "stopgate")
	for _, field := range h.Headers {
		value := field.Value
		if h.Dialect == gate.ClaudeCode {
			value = c.expand(value, h.AllowedEnv, &p)
		}
		if failure := p.set(field.Name, strings.TrimSpace(value)); failure != nil {
			return p, failure
		}
	}
	if failure := p.transform(in.Network); failure != nil {
		return p, failure
	}
	p.header.Set(gate.FromHook, "1") // last: neither the hook nor the network takes it away
	return p, nil
}

// set refuses what would end up as another header, or reach another place.
func (p *call) set(name, value string) *gate.Failure {
	if fault := gate.HeaderFault(name, value); fault != "" {
		return failf(gate.EgressDenied, "header %.80q %s", name, fault)
	}
	p.header.Set(name, value)
	return nil
}

// transform puts the headers of the agent's network on the request, replacing
// those of the same name (spec/antigravity.md 15). Of several entries that are
// about the host the first one's header counts.
func (p *call) transform(network *gate.Network) *gate.Failure {
	if p.dialect != gate.Antigravity {
		return nil
	}
	for _, d := range slices.Backward(destinations(p.target, network)) {
		for _, field := range d.Transform {
			p.hide(field.Value)
			if failure := p.set(field.Name, field.Value); failure != nil {
				return failure
			}
		}
	}
	return nil
}

var variable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Za-z_][A-Za-z0-9_]*`)

// expand replaces $VAR and ${VAR}: by the variable, if the hook is allowed it,
// else by nothing (spec/claude-code.md 1).
func (c *Caller) expand(text string, allowed []string, p *call) string {
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.Trim(found, "${}")
		if c.opt.Getenv == nil || !slices.Contains(allowed, name) {
			return ""
		}
		value := c.opt.Getenv(name)
		p.hide(value)
		return value
	})
}

// hide keeps a header's value out of everything that is said of the call: whole,
// and each part that may be a secret by itself.
func (p *call) hide(value string) {
	value = strings.TrimSpace(value)
	p.secrets = append(p.secrets, value)
	if scheme, credentials, found := strings.Cut(value, " "); found {
		credentials = strings.TrimSpace(credentials)
		p.secrets = append(p.secrets, credentials)
		if decoded, err := base64.StdEncoding.DecodeString(credentials); err == nil && strings.EqualFold(scheme, "Basic") {
			p.secrets = append(p.secrets, string(decoded))
			p.hideParts(string(decoded))
		}
	}
	p.hideParts(value)
}

// hideParts hides what stands between blanks, commas and semicolons: the words
// after the first, which is a scheme; of "name=value" the value, of "name:password"
// the password. What a cookie or a form has in a URL's escapes is hidden without
// them too.
func (p *call) hideParts(value string) {
	for i, word := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t,;", r) }) {
		_, part, named := strings.Cut(word, "=")
		if named {
			word = part
		}
		if named || i > 0 {
			p.hidePart(word)
		}
		if _, password, found := strings.Cut(word, ":"); found {
			p.hidePart(password)
		}
	}
}

func (p *call) hidePart(text string) {
	text = strings.Trim(text, "\"'{}[]()<>")
	p.secrets = append(p.secrets, text)
	if plain, err := url.QueryUnescape(text); err == nil && plain != text {
		p.secrets = append(p.secrets, plain)
	}
}

func (c *Caller) proxySecrets() []string {
	if c.opt.Proxy == nil || c.opt.Proxy.User == nil {
		return nil
	}
	password, _ := c.opt.Proxy.User.Password()
	return []string{password}
}

// clean is a text of the server's without the call's secrets, which it may have
// echoed: they reach no record, no log and no agent (spec/antigravity.md 16).
func (p *call) clean(text string) string {
	return strings.ToValidUTF8(string(gate.Blot([]byte(text), p.secrets, gate.ShortestSecret)), "\uFFFD")
}
