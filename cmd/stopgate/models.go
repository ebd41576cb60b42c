package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"go.opentelemetry.io/otel/trace"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/anthropic"
	"stopgate/prompthooks/gemini"
	"stopgate/prompthooks/openai"
	"stopgate/prompthooks/traced"
	"stopgate/server"
)

const (
	// probeTime is how long an Ollama that nobody configured is looked for:
	// this machine answers in a millisecond, or refuses the connection.
	probeTime = 300 * time.Millisecond
	// listTime is how long a configured server has to say what models it has.
	listTime = 3 * time.Second
)

// requestsPerEvaluation to one provider, on average over all that are decided at
// once: it holds back what would break this machine, not what a provider limits.
const requestsPerEvaluation = 2

// models are the configured providers.
type models struct {
	names     config.Models
	providers map[string]prompthooks.Model
	parallel  int // requests to one provider
	// ask looks for an Ollama that nobody configured, or asks the default
	// provider which models it has, if only it knows. It does so once, when
	// names are first needed: what decides without a model does not wait.
	ask      func()
	unlisted error // why the default provider's models are not known
	// tracer, if set, makes a span of each request, waiting for room included.
	tracer trace.Tracer
}

// openModels makes the providers, for so many evaluations at once. It sends
// nothing; what is asked later is asked until ctx ends.
func openModels(ctx context.Context, cfg config.Models, evaluations int) (*models, error) {
	m := &models{names: cfg, providers: map[string]prompthooks.Model{}, parallel: requestsPerEvaluation * evaluations}
	m.ask = sync.OnceFunc(func() {
		if cfg.Probe != "" {
			_ = m.list(ctx, cfg.Ollama(), probeTime) // there may be none
		} else if cfg.Unlisted() {
			m.unlisted = m.list(ctx, cfg, listTime)
		}
	})
	var errs []error
	for name, p := range cfg.Providers {
		provider, err := openModel(ctx, p)
		if err != nil {
			errs = append(errs, fmt.Errorf("models.providers.%s: %w", name, err))
			continue
		}
		m.providers[name] = prompthooks.Guarded(provider, m.parallel)
	}
	return m, errors.Join(errs...)
}

// list asks the default provider of cfg for its models, and if it has one takes
// it as it is.
func (m *models) list(ctx context.Context, cfg config.Models, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	provider, err := openai.New(openaiOptions(cfg.Providers[cfg.Default]))
	if err != nil {
		return err
	}
	listed, err := provider.Models(ctx)
	// A gateway that has no list may have the usual models all the same.
	if bad, ok := errors.AsType[*prompthooks.Error](err); err != nil && !(ok && bad.Kind == prompthooks.Rejected) {
		return err
	}
	cfg = cfg.Offer(listed)
	if cfg.Tiers[gate.DefaultModel] == "" {
		return errors.New("it has no model that judges")
	}
	m.names, m.providers[cfg.Default] = cfg, prompthooks.Guarded(provider, m.parallel)
	return nil
}

func openModel(ctx context.Context, p config.Provider) (prompthooks.Model, error) {
	switch p.Kind {
	case "gemini":
		return gemini.New(ctx, gemini.Options{APIKey: string(p.APIKey), BaseURL: p.BaseURL, Lacks: lacks(p)})
	case "vertex":
		return gemini.NewVertex(ctx, gemini.VertexOptions{Project: p.Project, Location: p.Location, BaseURL: p.BaseURL, Lacks: lacks(p)})
	case "anthropic":
		return anthropic.New(anthropic.Options{APIKey: string(p.APIKey), BaseURL: p.BaseURL, Lacks: lacks(p)})
	case "openai", "azure-openai", "ollama":
		return openai.New(openaiOptions(p))
	}
	return nil, fmt.Errorf("kind %q is unknown", p.Kind)
}

func openaiOptions(p config.Provider) openai.Options {
	o := openai.Options{APIKey: string(p.APIKey), BaseURL: p.BaseURL, AzureVersion: p.APIVersion, Lacks: lacks(p)}
	if base := strings.TrimRight(p.BaseURL, "/"); p.Kind == "ollama" && !strings.HasSuffix(base, "/v1") {
		o.BaseURL = base + "/v1"
	}
	return o
}

func lacks(p config.Provider) (f prompthooks.Features) {
	if p.NoTools {
		f |= prompthooks.Tools
	}
	if p.NoSchema {
		f |= prompthooks.Schemas
	}
	return f
}

const noModel = "no model is configured: set GEMINI_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY, run Ollama, or name a provider in the server file"

// find is the model that a hook names (spec/azure.md 50).
func (m *models) find(name string) (prompthooks.Model, string, error) {
	m.ask()
	provider, deployment := m.names.Resolve(name)
	p := m.providers[provider]
	switch {
	case p == nil:
		return nil, "", errors.New(noModel)
	case deployment == "":
		return nil, "", m.noTier(provider)
	}
	if m.tracer != nil {
		p = traced.Model(p, m.names.Providers[provider].Kind, m.tracer)
	}
	return p, deployment, nil
}

// inPlaceOf are the models that are asked when another cannot be.
func (m *models) inPlaceOf(name string) []string { return m.names.InPlaceOf(name) }

// price is what a hook's model costs, by the tiers as they are when it is asked.
func (m *models) price(name string) (gate.Price, bool) {
	m.ask()
	return m.names.Price(name)
}

// noTier says why a tier stands for nothing.
func (m *models) noTier(provider string) error {
	why := "set its model, or tiers, in the server file"
	if m.unlisted != nil {
		why = "at the start it did not say which models it has (" + withoutPlace(m.unlisted) + "); " + why
	}
	return fmt.Errorf("provider %q has no model: %s", provider, why)
}

// withoutPlace says why a provider did not answer, and not where it is: /readyz says
// it to everybody, and a record to whoever may read that. The last words of an error
// are the system's ("connection refused"); what is more than words may be an address.
func withoutPlace(err error) string {
	text := err.Error()
	last := text[strings.LastIndex(text, ": ")+1:]
	if strings.ContainsFunc(last, func(r rune) bool { return !unicode.IsLetter(r) && r != ' ' }) {
		return "its answer is no list of models"
	}
	return strings.TrimSpace(last)
}

// check says which provider serves.
func (m *models) check() server.Check {
	m.ask()
	provider, deployment := m.names.Resolve(gate.DefaultModel)
	if m.providers[provider] == nil {
		return server.Check{Reason: noModel + "; until then prompt hooks end as model_unavailable"}
	}
	if deployment == "" {
		return server.Check{Reason: m.noTier(provider).Error() + "; until then prompt hooks end as model_unavailable"}
	}
	reason := fmt.Sprintf("provider %s (%s): %s is %s", provider, m.names.Providers[provider].Kind, gate.DefaultModel, deployment)
	if others := len(m.providers) - 1; others > 0 {
		reason += fmt.Sprintf("; %d more", others)
	}
	return server.Check{OK: true, Reason: reason}
}
