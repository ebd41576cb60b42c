package main

import (
	"crypto/x509"
	"fmt"
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
	own := secrets(cfg, getenv)
	for _, value := range cfg.Telemetry.Headers {
		own = append(own, strings.Fields(string(value))...) // a scheme and the key
	}
	if proxy := cfg.HTTPHooks.Proxy; proxy != nil && proxy.User != nil {
		password, _ := proxy.User.Password()
		own = append(own, password)
	}
	return func(name string) string {
		value := getenv(name)
		if strings.HasPrefix(name, "STOPGATE_") || slices.Contains(config.KeyVariables(), name) ||
			slices.ContainsFunc(own, func(key string) bool { return holds(value, key) }) {
			return ""
		}
		return value
	}
}

// holds reports whether a value is a key, or has one in it; short ones are words
// that local servers want, and stand in many a value.
func holds(value, key string) bool {
	return key != "" && value == key || len(key) >= 8 && strings.Contains(value, key)
}
