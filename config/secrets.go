package config

import (
	"net/url"
	"slices"
	"strings"
)

// Secrets are all that the file has: keys of models' providers, headers of the
// collector and of sinks, passwords in addresses. Of "Bearer KEY" the key counts.
func (s Server) Secrets() []string {
	all := passwordsOf(string(s.Database))
	for _, p := range s.Models.Providers {
		all = append(append(all, string(p.APIKey)), passwordsOf(p.BaseURL)...)
	}
	if s.HTTPHooks.Proxy != nil {
		password, _ := s.HTTPHooks.Proxy.User.Password()
		all = append(all, password)
	}
	headers := []map[string]Secret{s.Telemetry.Headers}
	for _, sink := range s.Export {
		headers = append(headers, sink.Headers)
	}
	for _, values := range headers {
		for _, value := range values {
			all = append(all, Credentials(string(value)))
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(secret string) bool { return secret == "" })
}

// SecretFiles are the files whose text is a secret: of headers, and the key of TLS.
func (s Server) SecretFiles() []string {
	var all []string
	headers := []map[string]string{s.Telemetry.HeaderFiles}
	for _, sink := range s.Export {
		headers = append(headers, sink.HeaderFiles)
	}
	for _, files := range headers {
		for _, file := range files {
			all = append(all, file)
		}
	}
	if s.Auth.TLS != nil {
		all = append(all, s.Auth.TLS.Key)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(file string) bool { return file == "" })
}

// Credentials are what is secret of a header's value: of "Bearer KEY" the key.
func Credentials(value string) string {
	if _, credentials, schemed := strings.Cut(value, " "); schemed {
		return credentials
	}
	return value
}

// passwordsOf are those in an address, also where a driver takes them in its query.
func passwordsOf(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	password, _ := u.User.Password()
	return []string{password, u.Query().Get("password"), u.Query().Get("sslpassword")}
}
