package config

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"stopgate/gate"
)

// http reads a hook that is asked by HTTP (spec/claude-code.md 1, 4). Where it
// may lead is the server file's to say.
func (r *claudeCodeReader) http(o *object, h *gate.Hook) {
	h.URL = o.text("url")
	at, path := o.place("url"), o.child("url")
	u, err := url.Parse(h.URL)
	switch {
	case h.URL == "":
		if wellTyped(o, "url") {
			o.errorf(path, at, "url is missing: a hook of type http needs one")
		}
	case strings.Contains(h.URL, "$"): // fault http-03
		o.errorf(path, at, "url is %q: variables are not expanded in it", cut(h.URL))
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		o.errorf(path, at, "url is %q, want http://host/path or https://host/path", cut(h.URL))
	case u.User != nil:
		r.refuseHook(path, at, "url holds a user or password, which Claude Code shows to its model: put them into a header")
	case u.Scheme == "http" && !thisMachine(u.Hostname()):
		o.warnf(path, at, "url begins with http://, which the gate sends to its own machine alone: the hook has no verdict, and the agent goes on; want https://")
	}
	h.AllowedEnv = o.texts("allowedEnvVars")
	h.Headers = r.headers(o, h.AllowedEnv)
}

// scheme begins a header's value that is a credential.
var scheme = regexp.MustCompile(`^(?i:Bearer|Basic|Token) `)

// headerVariable is a variable in a header's value.
var headerVariable = regexp.MustCompile(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)

func (r *claudeCodeReader) headers(o *object, allowed []string) []gate.Header {
	return o.headers("headers", func(path string, f field) bool {
		if fault := gate.HeaderFault(f.name, f.value.text); fault != "" {
			r.refuseHook(path, f.pos, "header %q %s", cut(f.name), fault)
			return false
		}
		variables := headerVariable.FindAllStringSubmatch(f.value.text, -1)
		if len(variables) == 0 && (credentialName.MatchString(f.name) || scheme.MatchString(f.value.text)) {
			o.warnf(path, f.value.pos, "header %q has a credential written out, which lies in the file and in the server's store: write ${VAR} instead, and VAR in allowedEnvVars", cut(f.name))
		}
		for _, found := range variables {
			if name := found[1] + found[2]; !slices.Contains(allowed, name) {
				o.warnf(path, f.value.pos, "header %q names the variable %s, which allowedEnvVars does not: it is sent empty", cut(f.name), cut(name))
			}
		}
		return true
	})
}
