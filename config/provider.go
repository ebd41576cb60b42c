package config

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Provider is one service that runs models.
type Provider struct {
	Kind       string // the name of one of the services
	APIKey     Secret
	BaseURL    string // empty: the service's own
	Project    string // vertex
	Location   string // vertex; empty: global
	APIVersion string // azure-openai
	Model      string // what every tier stands for that is not set; empty: the kind's own
	NoTools    bool   // its models take no tools
	NoSchema   bool   // its models take no schema
}

// service is one kind of provider.
type service struct {
	name string
	keys []string // of the server file, beside those that every kind has
	// Environment variables of what the file leaves out; the first that is set.
	keyVars, urlVars []string
	tiers            map[string]string // what the tiers stand for; nil: it has no models of its own
}

// The deployments behind the tiers, where the server file says nothing: what
// the services list in November 2026. gemini-2.5-pro and gemini-2.5-flash end
// on the first of December.
var (
	geminiTiers = map[string]string{
		"Reasoning":      "gemini-3.8-flash",
		"ReasoningFast":  "gemini-3.6-flash",
		"GeneralPurpose": "gemini-3.6-flash",
		"Fast":           "gemini-3.5-flash-lite",
		"LongContext":    "gemini-3.8-flash",
	}
	// gpt-6.1-sol is not among them: it must think, and in Chat Completions no
	// model thinks and calls tools.
	openaiTiers = map[string]string{
		"Reasoning":      "gpt-6-sol",
		"ReasoningFast":  "gpt-6.1-terra",
		"GeneralPurpose": "gpt-6.1-terra",
		"Fast":           "gpt-6-luna",
		"LongContext":    "gpt-6-sol",
	}
	anthropicTiers = map[string]string{
		"Reasoning":      "claude-opus-5-5",
		"ReasoningFast":  "claude-sonnet-5-5",
		"GeneralPurpose": "claude-sonnet-5-5",
		"Fast":           "claude-haiku-5-5",
		"LongContext":    "claude-sonnet-5-5",
	}
)

// services in the order in which the environment is searched for them
// (DESIGN §7).
var services = []service{
	{name: "gemini", keys: []string{"api_key"}, keyVars: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, urlVars: []string{"GOOGLE_GEMINI_BASE_URL"}, tiers: geminiTiers},
	{name: "anthropic", keys: []string{"api_key"}, keyVars: []string{"ANTHROPIC_API_KEY"}, urlVars: []string{"ANTHROPIC_BASE_URL"}, tiers: anthropicTiers},
	{name: "openai", keys: []string{"api_key"}, keyVars: []string{"OPENAI_API_KEY"}, urlVars: []string{"OPENAI_BASE_URL"}, tiers: openaiTiers},
	{name: "azure-openai", keys: []string{"api_key", "api_version"}, keyVars: []string{"AZURE_OPENAI_API_KEY"}, urlVars: []string{"AZURE_OPENAI_ENDPOINT"}},
	{name: "vertex", keys: []string{"project", "location"}, tiers: geminiTiers},
	{name: "ollama", keys: []string{"api_key"}},
}

// KeyVariables are the environment variables that providers' keys come from
// where the server file has none.
func KeyVariables() (names []string) {
	for _, k := range services {
		names = append(names, k.keyVars...)
	}
	return names
}

func serviceNames() (names []string) {
	for _, k := range services {
		names = append(names, k.name)
	}
	return names
}

// serviceOf is the service of a kind; the zero one if there is none.
func serviceOf(name string) service {
	for _, k := range services {
		if k.name == name {
			return k
		}
	}
	return service{}
}

// unlisted: Ollama has what was pulled, and a server that only speaks OpenAI's
// API what it was given.
func (p Provider) unlisted() bool {
	return p.Model == "" && (p.Kind == "ollama" || p.Kind == "openai" && p.BaseURL != "")
}

// environmentProviders is the first provider that the environment knows, or
// else where to look for an Ollama (DESIGN §7).
func (r *serverReader) environmentProviders() (providers map[string]Provider, probe string) {
	for _, k := range services[:3] {
		p := Provider{Kind: k.name, APIKey: Secret(r.first(k.keyVars)), BaseURL: r.first(k.urlVars)}
		if p.APIKey != "" || k.name == "openai" && p.BaseURL != "" {
			return map[string]Provider{k.name: p}, ""
		}
	}
	return map[string]Provider{}, ollamaURL(r.getenv("OLLAMA_HOST"))
}

// first is the first of environment variables that is set.
func (r *serverReader) first(names []string) string {
	for _, name := range names {
		if value := r.getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// defaultAzureVersion is the newest api-version of deployment URLs that is not
// a preview.
const defaultAzureVersion = "2024-10-21"

func (r *serverReader) provider(o *object, name string) Provider {
	defer o.unknown(true)
	p := Provider{Kind: o.oneOf("kind", serviceNames()...), BaseURL: o.text("base_url"), Model: o.text("model"),
		NoTools: o.value("tools") != nil && !o.flag("tools"), NoSchema: o.value("schema") != nil && !o.flag("schema")}
	if p.Kind == "" && slices.Contains(serviceNames(), name) {
		p.Kind = name
	}
	k := serviceOf(p.Kind)
	if p.Kind == "" {
		if o.value("kind") == nil {
			o.errorf(o.child("kind"), o.node.pos, "kind is missing, want one of %s", strings.Join(serviceNames(), ", "))
		}
		// What it may hold is not known.
		for _, k := range services {
			for _, key := range k.keys {
				o.value(key)
			}
		}
		return p
	}
	for _, key := range k.keys {
		switch key {
		case "api_key":
			p.APIKey = Secret(o.text(key))
		case "api_version":
			p.APIVersion = cmp.Or(o.text(key), r.getenv("OPENAI_API_VERSION"), defaultAzureVersion)
		case "project":
			p.Project = cmp.Or(o.text(key), r.getenv("GOOGLE_CLOUD_PROJECT"))
		case "location":
			p.Location = cmp.Or(o.text(key), r.getenv("GOOGLE_CLOUD_LOCATION"))
		}
	}
	// A key of the environment goes to the service that it is for: not to
	// whatever other server the file names as one that speaks OpenAI's API.
	if p.Kind != "openai" || p.BaseURL == "" {
		p.APIKey = cmp.Or(p.APIKey, Secret(r.first(k.keyVars)))
	}
	p.BaseURL = cmp.Or(p.BaseURL, r.first(k.urlVars))
	if p.Kind == "ollama" && p.BaseURL == "" {
		p.BaseURL = ollamaURL(r.getenv("OLLAMA_HOST"))
	}
	if r.unasked && p.needsKey(k) {
		p.APIKey = "none" // clients are made with one, and send nothing
	}
	p.check(o, k)
	return p
}

// needsKey reports whether the service takes a key, and there is none.
func (p Provider) needsKey(k service) bool {
	return k.keyVars != nil && (p.Kind != "openai" || p.BaseURL == "") && p.APIKey == ""
}

// check says what a provider is missing.
func (p Provider) check(o *object, k service) {
	if p.needsKey(k) {
		o.errorf(o.child("api_key"), o.node.pos, "api_key is missing: write ${%s} and set that variable", k.keyVars[0])
	}
	if p.Kind == "azure-openai" && p.BaseURL == "" {
		o.errorf(o.child("base_url"), o.node.pos, "base_url is missing, want the resource's as https://NAME.openai.azure.com")
	}
	if p.Kind == "azure-openai" && p.Model == "" {
		o.errorf(o.child("model"), o.node.pos, "model is missing, want the name of a deployment")
	}
	if p.Kind == "vertex" && p.Project == "" {
		o.errorf(o.child("project"), o.node.pos, "project is missing, want the id of a Google Cloud project")
	}
	if u, err := url.Parse(p.BaseURL); p.BaseURL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		o.errorf(o.child("base_url"), o.place("base_url"), "base_url is not an http or https URL")
	}
}

// ollamaURL is where an Ollama is reached, by the value of OLLAMA_HOST: a host,
// a port, both, or a URL. An address that only a server can listen on stands
// for this machine. What cannot be read is "".
func ollamaURL(host string) string {
	scheme, rest, given := strings.Cut(strings.TrimSpace(host), "://")
	port := "11434"
	switch {
	case !given:
		scheme, rest = "http", scheme
	case scheme == "http":
		port = "80"
	case scheme == "https":
		port = "443"
	default:
		return ""
	}
	rest, path, _ := strings.Cut(rest, "/")
	name := strings.Trim(rest, "[]")
	if h, p, err := net.SplitHostPort(rest); err == nil {
		name, port = h, p
	}
	if ip, err := netip.ParseAddr(name); name == "" || err == nil && ip.IsUnspecified() {
		name = "127.0.0.1"
	}
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(name, port), Path: strings.TrimRight("/"+path, "/")}
	if _, err := url.Parse(u.String()); err != nil {
		return ""
	}
	return u.String()
}
