package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"stopgate/config"
	"stopgate/gate"
	"stopgate/server"
	"stopgate/telemetry"
)

// trace has everything that the app decides traced, as the server file wants it,
// and answers what begins an evaluation's trace; nil where there are none: then
// nothing stands between the gate and its evaluators.
func (a *app) trace(ctx context.Context, cfg config.Telemetry, metrics *server.Metrics) (func(context.Context, http.Header, *gate.Event) (context.Context, func(*gate.Decision, error)), error) {
	if cfg.Endpoint == "" {
		return nil, nil
	}
	headers, err := readHeaders(cfg.Headers, cfg.HeaderFiles)
	if err != nil {
		return nil, fmt.Errorf("telemetry.%w", err)
	}
	roots, err := certificates(cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("telemetry.ca_file: %w", err)
	}
	for _, why := range telemetry.Losses {
		metrics.SpansDropped(string(why), 0) // seen from the start, as 0
	}
	t, err := telemetry.Open(ctx, telemetry.Options{Endpoint: cfg.Endpoint, Headers: headers, RootCAs: roots, Sample: cfg.Sample, Queue: cfg.Queue,
		Version: version, Dropped: func(why telemetry.Loss, spans int) { metrics.SpansDropped(string(why), spans) }})
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, t.Close)
	for kind, evaluator := range a.gate.Evaluators {
		a.gate.Evaluators[kind] = t.Hooks(evaluator)
	}
	a.models.tracer = t.Tracer()
	return t.Evaluation, nil
}

// readHeaders are the headers of the server file, and those of files.
func readHeaders(values map[string]config.Secret, files map[string]string) (map[string]string, error) {
	headers := map[string]string{}
	for name, value := range values {
		headers[name] = string(value)
	}
	for name, file := range files {
		text, err := readBounded(file)
		if err != nil {
			return nil, fmt.Errorf("header_files.%s: %w", name, err)
		}
		value := strings.TrimSpace(string(text))
		if !config.HeaderValue(value) {
			return nil, fmt.Errorf("header_files.%s: %s is empty, or has characters that a header may not have", name, file)
		}
		headers[name] = value
	}
	return headers, nil
}
