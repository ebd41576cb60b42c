package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"stopgate/gate"
)

// Models says which models judge. With no provider, prompt hooks have no
// verdict (model_unavailable).
type Models struct {
	Providers map[string]Provider
	Default   string            // the provider of what is not named otherwise; empty: none
	Tiers     map[string]string // tier → "provider/deployment"
	Named     map[string]string // a name of the server's own → "provider/deployment"
	// Fallback lists, for a tier or a name of the server's own, what is asked in
	// its place when it cannot be: as "provider/deployment", in order.
	Fallback map[string][]string
	// Prices of models, by "provider/deployment".
	Prices map[string]gate.Price
	// Probe is where an Ollama may run that serves where no provider is
	// configured; empty: none is looked for.
	Probe string
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

// tier is the tier that a hook's model stands for, or "".
func (m Models) tier(model string) string {
	if _, named := m.Named[model]; named {
		return tierOf(model)
	}
	return cmp.Or(tierOf(model), familyTiers[model])
}

// familyTiers are the tiers that the families of models by which hooks of Claude
// Code name theirs stand for, where the server file has no such name.
var familyTiers = map[string]string{"haiku": "ReasoningFast", "sonnet": "GeneralPurpose", "opus": "Reasoning"}

// Resolve is the provider and the deployment that a hook's model stands for
// (spec/azure.md 50): a tier in any letter case, a name from the server file,
// haiku, sonnet or opus, which stand for a tier, "provider/deployment" with a
// provider of it, or else a deployment of the default provider, as it is. An empty model is the default tier. provider is
// empty when there is none, deployment when a tier stands for nothing.
func (m Models) Resolve(model string) (provider, deployment string) {
	tier := m.tier(model)
	target, ok := m.Tiers[tier]
	if !ok {
		target, ok = m.Named[model]
	}
	if !ok && tier != "" && m.Default != "" {
		return m.Default, ""
	}
	if provider, deployment, _ = strings.Cut(target, "/"); ok {
		return provider, deployment
	}
	if provider, deployment, ok = m.target(model); ok {
		return provider, deployment
	}
	return m.Default, model
}

// Knows reports whether a hook's model is one that the server file or its kind of
// provider has a word for: a tier, a name, a provider's, or what one of these
// stands for. Another is asked of the default provider as it is.
func (m Models) Knows(model string) bool {
	_, named := m.Named[model]
	_, _, target := m.target(model)
	if named || target || m.tier(model) != "" || m.Providers[m.Default].Model == model {
		return true
	}
	for _, targets := range []map[string]string{m.Tiers, m.Named} {
		for _, t := range targets {
			if t == m.Default+"/"+model {
				return true
			}
		}
	}
	return false
}

// target splits "provider/deployment"; false: it is none, or of no provider of m.
func (m Models) target(text string) (provider, deployment string, ok bool) {
	provider, deployment, _ = strings.Cut(text, "/")
	_, known := m.Providers[provider]
	return provider, deployment, known && deployment != ""
}

// wantTarget ends a finding about what is none.
const wantTarget = "want provider/model with a provider of this file or the environment"

// Unlisted reports whether only the default provider itself can say which
// models it has, so that tiers stand for nothing until [Models.Offer].
func (m Models) Unlisted() bool {
	p, ok := m.Providers[m.Default]
	return ok && p.unlisted()
}

// Offer says which models an unlisted default provider has. Tiers that the
// server file does not set then stand for the models that they usually stand
// for, where it has them all or lists none, and else for its first one that can
// judge. m is not changed.
func (m Models) Offer(listed []string) Models {
	tiers := serviceOf(m.Providers[m.Default].Kind).tiers
	for _, deployment := range tiers {
		if len(listed) > 0 && !slices.Contains(listed, deployment) {
			tiers = nil
		}
	}
	judges := slices.DeleteFunc(slices.Clone(listed), func(name string) bool { return strings.Contains(name, "embed") })
	if len(tiers) == 0 && len(judges) > 0 {
		tiers = everyTier(judges[0])
	}
	m.Tiers = maps.Clone(m.Tiers)
	m.fillTiers(tiers)
	return m
}

// Ollama is m with an Ollama at its Probe as the only provider.
func (m Models) Ollama() Models {
	m.Providers = map[string]Provider{"ollama": {Kind: "ollama", BaseURL: m.Probe}}
	m.Default, m.Probe = "ollama", ""
	return m
}

// fillTiers sets those tiers of the default provider that are not set.
func (m *Models) fillTiers(tiers map[string]string) {
	for tier, deployment := range tiers {
		if _, set := m.Tiers[tier]; !set {
			m.Tiers[tier] = m.Default + "/" + deployment
		}
	}
}

func everyTier(deployment string) map[string]string {
	tiers := map[string]string{}
	for _, tier := range tierNames {
		tiers[tier] = deployment
	}
	return tiers
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
	} else {
		m.Providers, m.Probe = r.environmentProviders()
	}
	m.Default = r.defaultProvider(o, m.Providers)
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
	m.readFallback(o)
	m.readPrices(o)
	if p, ok := m.Providers[m.Default]; ok && p.Model != "" {
		m.fillTiers(everyTier(p.Model))
	} else if ok && !p.unlisted() {
		m.fillTiers(serviceOf(p.Kind).tiers)
	}
	return m
}

func (r *serverReader) defaultProvider(o *object, providers map[string]Provider) string {
	names := slices.Sorted(maps.Keys(providers))
	n := o.value("default")
	switch {
	case n != nil && len(names) == 0:
		o.errorf(o.child("default"), n.pos, "default is %s, but there is no provider: list one under providers, or set one of GEMINI_API_KEY, ANTHROPIC_API_KEY, OPENAI_API_KEY", n.describe())
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
		if _, _, ok := m.target(target); !ok {
			o.errorf(targets.child(f.name), f.value.pos, "%s is %s, "+wantTarget, f.name, f.value.describe())
		}
		into[stored] = target
	}
}

// InPlaceOf are the models that are asked when another cannot be.
func (m Models) InPlaceOf(model string) []string {
	if tier := m.tier(model); tier != "" {
		model = tier
	}
	return m.Fallback[model]
}

// Price is what a hook's model costs, if the server file says so.
func (m Models) Price(model string) (gate.Price, bool) {
	provider, deployment := m.Resolve(model)
	price, ok := m.Prices[provider+"/"+deployment]
	return price, ok
}

// readFallback reads what takes the place of a tier, or of a name of the
// server's own.
func (m *Models) readFallback(o *object) {
	list := o.object("fallback")
	if list == nil {
		return
	}
	for _, f := range list.node.fields {
		name := f.name
		if tier := tierOf(name); tier != "" && name != "" {
			name = tier
		} else if _, named := m.Named[name]; !named {
			o.errorf(list.child(f.name), f.pos, "fallback %q is neither a tier nor one of models", cut(f.name))
			continue
		}
		for _, target := range list.texts(f.name) {
			if _, _, ok := m.target(target); !ok {
				o.errorf(list.child(f.name), f.value.pos, "%s has %q, "+wantTarget, f.name, cut(target))
				continue
			}
			if m.Fallback == nil {
				m.Fallback = map[string][]string{}
			}
			m.Fallback[name] = append(m.Fallback[name], target)
		}
	}
}

// readPrices reads what models cost.
func (m *Models) readPrices(o *object) {
	list := o.object("prices")
	if list == nil {
		return
	}
	for _, f := range list.node.fields {
		if _, _, ok := m.target(f.name); !ok {
			o.errorf(list.child(f.name), f.pos, "price of %q: "+wantTarget, cut(f.name))
			continue
		}
		p := list.object(f.name)
		if p == nil {
			continue
		}
		if m.Prices == nil {
			m.Prices = map[string]gate.Price{}
		}
		m.Prices[f.name] = gate.Price{In: p.amount("input"), Cached: p.amount("cached"), Out: p.amount("output")}
		p.unknown(true)
	}
}
