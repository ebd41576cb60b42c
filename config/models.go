package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
)

// Models says which models judge. With no provider, prompt hooks have no
// verdict (model_unavailable).
type Models struct {
	Providers map[string]Provider
	Default   string            // the provider of what is not named otherwise; empty: none
	Tiers     map[string]string // tier → "provider/deployment"
	Named     map[string]string // a name of the server's own → "provider/deployment"
}

// Provider is one service that runs models.
type Provider struct {
	Kind    string // "gemini"
	APIKey  Secret
	BaseURL string // empty: the service's own
}

// Secret is a text that does not show itself in logs or JSON. string(s) is the
// text.
type Secret string

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[secret]"
}

// GoString keeps %#v from showing the text.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// LogValue keeps slog from showing the text.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps encoders from showing the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// tierNames are what a spec may give in place of a model (spec/azure.md
// 50).
var tierNames = []string{"Reasoning", "ReasoningFast", "GeneralPurpose", "Fast", "LongContext"}

// geminiTiers are the deployments behind the tiers of a Gemini provider, where
// the server file says nothing.
var geminiTiers = map[string]string{
	"Reasoning":      "gemini-2.5-pro",
	"ReasoningFast":  "gemini-2.5-flash",
	"GeneralPurpose": "gemini-2.5-flash",
	"Fast":           "gemini-2.5-flash-lite",
	"LongContext":    "gemini-2.5-pro",
}

// tierOf is the tier that a word names, in any letter case, or "".
func tierOf(word string) string {
	switch word = strings.ToLower(strings.TrimSpace(word)); word {
	case "", "reasoning fast", "fast reasoning":
		return "ReasoningFast"
	}
	for _, tier := range tierNames {
		if word == strings.ToLower(tier) {
			return tier
		}
	}
	return ""
}

// Resolve is the provider and the deployment that a hook's model stands for
// (spec/azure.md 50): a tier in any letter case, a name from the server file,
// or else a deployment of the default provider, as it is. An empty model is the
// default tier. provider is empty when there is none.
func (m Models) Resolve(model string) (provider, deployment string) {
	target, ok := m.Tiers[tierOf(model)]
	if !ok {
		target, ok = m.Named[model]
	}
	if ok {
		provider, deployment, _ = strings.Cut(target, "/")
		return provider, deployment
	}
	return m.Default, model
}

// models reads the section; without providers in it they come from the
// environment.
func (r *serverReader) models(o *object) Models {
	defer o.unknown(true)
	m := Models{Providers: map[string]Provider{}, Tiers: map[string]string{}, Named: map[string]string{}}
	if providers := o.object("providers"); providers != nil {
		for _, f := range providers.node.fields {
			if p := providers.object(f.name); p != nil {
				m.Providers[f.name] = r.provider(p, f.name)
			}
			if problem := nameProblem(f.name); problem != "" {
				o.errorf(providers.child(f.name), f.pos, "provider name %q %s", cut(f.name), problem)
			}
		}
	} else if key := r.geminiKey(); key != "" {
		m.Providers["gemini"] = Provider{Kind: "gemini", APIKey: key, BaseURL: r.getenv("GOOGLE_GEMINI_BASE_URL")}
	}
	m.Default = r.defaultProvider(o, m.Providers)
	if m.Providers[m.Default].Kind == "gemini" {
		for tier, deployment := range geminiTiers {
			m.Tiers[tier] = m.Default + "/" + deployment
		}
	}
	readTargets(o, "tiers", m, func(name string) (string, string) {
		if tier := tierOf(name); tier != "" && name != "" {
			return tier, ""
		}
		return "", fmt.Sprintf("tier %q is unknown, want one of %s", cut(name), strings.Join(tierNames, ", "))
	}, m.Tiers)
	readTargets(o, "models", m, func(name string) (string, string) {
		if tierOf(name) != "" {
			return "", fmt.Sprintf("model name %q is a tier: set it under tiers", cut(name))
		}
		return name, ""
	}, m.Named)
	return m
}

func (r *serverReader) geminiKey() Secret {
	return Secret(cmp.Or(r.getenv("GEMINI_API_KEY"), r.getenv("GOOGLE_API_KEY")))
}

func (r *serverReader) provider(o *object, name string) Provider {
	defer o.unknown(true)
	p := Provider{Kind: o.oneOf("kind", "gemini"), APIKey: Secret(o.text("api_key")), BaseURL: o.text("base_url")}
	if p.Kind == "" && name == "gemini" {
		p.Kind = name
	}
	if p.Kind == "" {
		if o.value("kind") == nil {
			o.errorf(o.child("kind"), o.node.pos, "kind is missing, want gemini")
		}
		return p
	}
	p.APIKey = cmp.Or(p.APIKey, r.geminiKey())
	p.BaseURL = cmp.Or(p.BaseURL, r.getenv("GOOGLE_GEMINI_BASE_URL"))
	if p.APIKey == "" {
		o.errorf(o.child("api_key"), o.node.pos, "api_key is missing: write ${GEMINI_API_KEY} and set that variable")
	}
	if u, err := url.Parse(p.BaseURL); p.BaseURL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		o.errorf(o.child("base_url"), o.place("base_url"), "base_url is not an http or https URL")
	}
	return p
}

func (r *serverReader) defaultProvider(o *object, providers map[string]Provider) string {
	var names []string
	for name := range providers {
		names = append(names, name)
	}
	slices.Sort(names)
	n := o.value("default")
	switch {
	case n != nil && len(names) == 0:
		o.errorf(o.child("default"), n.pos, "default is %s, but there is no provider: list one under providers, or set GEMINI_API_KEY", n.describe())
		return ""
	case n != nil:
		return o.oneOf("default", names...)
	case len(names) > 1:
		o.errorf(o.child("default"), o.node.pos, "default is missing, want one of %s", strings.Join(names, ", "))
		return ""
	}
	return strings.Join(names, "") // the only one, or none
}

// readTargets reads a map of names to "provider/deployment". key turns a name
// into the one to store, or says why it cannot.
func readTargets(o *object, name string, m Models, key func(string) (string, string), into map[string]string) {
	targets := o.object(name)
	if targets == nil {
		return
	}
	for _, f := range targets.node.fields {
		stored, problem := key(f.name)
		if problem != "" {
			o.errorf(targets.child(f.name), f.pos, "%s", problem)
			continue
		}
		target := targets.text(f.name)
		provider, deployment, _ := strings.Cut(target, "/")
		if _, known := m.Providers[provider]; !known || deployment == "" {
			o.errorf(targets.child(f.name), f.value.pos, "%s is %s, want provider/model with a provider of this file or the environment", f.name, f.value.describe())
		}
		into[stored] = target
	}
}
