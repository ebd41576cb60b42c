package config

import (
	"net/url"
	"slices"
	"strings"
)

// Secrets are all that the file has: keys of models' providers, headers of the
// collector, the database's password. Of "Bearer KEY" the key counts.
func (s Server) Secrets() []string {
	var all []string
	for _, p := range s.Models.Providers {
		all = append(all, string(p.APIKey))
	}
	for _, value := range s.Telemetry.Headers {
		_, credentials, schemed := strings.Cut(string(value), " ")
		if !schemed {
			credentials = string(value)
		}
		all = append(all, credentials)
	}
	if u, err := url.Parse(string(s.Database)); err == nil {
		password, _ := u.User.Password()
		all = append(all, password)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(secret string) bool { return secret == "" })
}
