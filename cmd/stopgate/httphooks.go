package main

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"stopgate/config"
	"stopgate/httphooks"
)

// newCaller is the evaluator of http hooks, as the server file wants it.
func newCaller(cfg config.Server, getenv func(string) string) (*httphooks.Caller, error) {
	roots, err := certificates(cfg.HTTPHooks.CAFile)
	if err != nil {
		return nil, fmt.Errorf("http_hooks.ca_file: %w", err)
	}
	return httphooks.New(httphooks.Options{Allow: cfg.HTTPHooks.Allow, Proxy: cfg.HTTPHooks.Proxy, RootCAs: roots,
		Connections: cfg.HTTPHooks.Connections, Getenv: withoutOwnKeys(cfg, getenv)})
}

// certificates are the system's certificates and those of a file; nil: the system's
// alone.
func certificates(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := readBounded(file)
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // a machine may have none
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return roots, nil
}

// withoutOwnKeys is the environment as hooks may name it: stopgate's own keys
// are not in it, whatever they are called (DESIGN §9).
func withoutOwnKeys(cfg config.Server, getenv func(string) string) func(string) string {
	own := ownKeys(cfg, getenv)
	return func(name string) string {
		if value := getenv(name); !own.in(name, value) {
			return value
		}
		return ""
	}
}

// hostEnvironment is the environment, as [os.Environ] has it, as hooks may be
// given it: without the same keys.
func hostEnvironment(cfg config.Server, getenv func(string) string, environ []string) []string {
	own := ownKeys(cfg, getenv)
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, value, _ := strings.Cut(variable, "=")
		return own.in(name, value)
	})
}

// secretTexts are stopgate's own secrets.
type secretTexts []string

func ownKeys(cfg config.Server, getenv func(string) string) secretTexts {
	own := secrets(cfg, getenv)
	for _, value := range cfg.Telemetry.Headers {
		own = append(own, strings.Fields(string(value))...) // a scheme and the key
	}
	if proxy := cfg.HTTPHooks.Proxy; proxy != nil && proxy.User != nil {
		password, _ := proxy.User.Password()
		own = append(own, password)
	}
	if cfg.Database != "" {
		own = append(own, string(cfg.Database), getenv("PGPASSWORD"))
		if u, err := url.Parse(string(cfg.Database)); err == nil {
			password, _ := u.User.Password()
			own = append(own, password, u.Query().Get("password"))
		}
	}
	return own
}

// in reports whether a variable is or has one of them.
func (k secretTexts) in(name, value string) bool {
	return strings.HasPrefix(name, "STOPGATE_") || slices.Contains(config.KeyVariables(), name) ||
		slices.ContainsFunc(k, func(key string) bool { return holds(value, key) })
}

// holds reports whether a value is a key, or has one in it; short ones are words
// that local servers want, and stand in many a value.
func holds(value, key string) bool {
	return key != "" && value == key || len(key) >= 8 && strings.Contains(value, key)
}
