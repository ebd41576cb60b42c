package server

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"stopgate/gate"
	"stopgate/internal/loopback"
)

const typeJSON = "application/json"

// checkOrigin refuses what another web page made a browser send (DESIGN §8):
// a Host that is not ours (DNS rebinding), an Origin that is not ours, and a
// fetch that the browser itself calls foreign.
func (s *Server) checkOrigin(r *http.Request) error {
	if !s.ourHost(r.Host) {
		return gate.Errorf(gate.CodeBadOrigin, "host %q is not a name of this server", r.Host)
	}
	origins := r.Header["Origin"]
	for _, o := range origins {
		if !s.ourOrigin(o, r.Host) {
			return gate.Errorf(gate.CodeBadOrigin, "origin %q may not call this server", o)
		}
	}
	// "same-site" is foreign too: another port of localhost is the same site.
	if site := r.Header.Get("Sec-Fetch-Site"); len(origins) == 0 && (site == "cross-site" || site == "same-site") {
		return gate.Errorf(gate.CodeBadOrigin, "a page of another origin may not call this server")
	}
	return nil
}

func (s *Server) ourHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if slices.ContainsFunc(s.opt.Hosts, func(name string) bool { return strings.EqualFold(name, host) }) {
		return true
	}
	switch {
	case s.opt.Loopback:
		return loopback.Host(host)
	case len(s.opt.Hosts) > 0:
		_, err := netip.ParseAddr(host)
		return host == "localhost" || err == nil // rebinding needs a name
	}
	return true
}

// ourOrigin reports whether a page of that origin may call: one this server
// itself served, or a listed one.
func (s *Server) ourOrigin(origin, host string) bool {
	if slices.Contains(s.opt.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.EqualFold(u.Host, host)
}

// checkContentType keeps out HTML forms, which can send no JSON type, and
// bodies in an encoding that would be misread.
func checkContentType(r *http.Request, accepts []string) error {
	given := r.Header.Get("Content-Type")
	if given != typeJSON || accepts[0] != typeJSON { // the usual case needs no parsing
		media, params, err := mime.ParseMediaType(given)
		if err != nil || !slices.Contains(accepts, media) {
			return gate.Errorf(gate.CodeUnsupportedMediaType, "content type %q is not accepted here: use %s", given, strings.Join(accepts, ", "))
		}
		if cs := strings.ToLower(params["charset"]); cs != "" && cs != "utf-8" && cs != "utf8" && cs != "us-ascii" {
			return gate.Errorf(gate.CodeUnsupportedMediaType, "charset %q is not accepted: send UTF-8", params["charset"])
		}
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return gate.Errorf(gate.CodeUnsupportedMediaType, "content encoding %q is not accepted: send the body as it is", enc)
	}
	return nil
}

// mediaType is the body's type without parameters, after checkContentType.
func mediaType(r *http.Request) string {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return media
}
