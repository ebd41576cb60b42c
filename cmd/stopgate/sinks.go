package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"stopgate/config"
	"stopgate/export"
	"stopgate/server"
	"stopgate/telemetry"
)

// send has every record sent to the sinks of the server file, until the app is
// closed. Without sinks the outbox is still told, so that what another server
// file once named is forgotten in time.
func (a *app) send(ctx context.Context, sinks []config.Sink, metrics *server.Metrics, log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	opt := export.Options{Outbox: a.store, Holder: rand.Text(), Log: log}
	for _, cfg := range sinks {
		sink, err := openSink(ctx, cfg)
		if err != nil {
			for _, s := range opt.Sinks {
				err = errors.Join(err, s.Sink.Close())
			}
			return exit{exitInput, fmt.Errorf("export.sinks.%s: %w", cfg.Name, err)}
		}
		opt.Sinks = append(opt.Sinks, export.Named{Name: cfg.Name, Sink: sink})
	}
	exporter, err := export.Start(ctx, opt)
	if err != nil {
		return err
	}
	a.closers = append(a.closers, exporter.Close)
	metrics.Export(func() (states []server.SinkState) {
		for _, s := range exporter.States() {
			states = append(states, server.SinkState(s))
		}
		return states
	})
	return nil
}

func openSink(ctx context.Context, cfg config.Sink) (export.Sink, error) {
	if cfg.Kind == config.FileSink {
		return export.NewFile(export.FileOptions{Path: cfg.Path, MaxBytes: cfg.MaxSize, Keep: cfg.Keep})
	}
	headers, err := readHeaders(cfg.Headers, cfg.HeaderFiles)
	if err != nil {
		return nil, err
	}
	roots, err := certificates(cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	if cfg.Kind == config.HTTPSink {
		return export.NewHTTP(export.HTTPOptions{URL: cfg.URL, Headers: headers, RootCAs: roots}), nil
	}
	return telemetry.OpenLogs(ctx, telemetry.LogOptions{Endpoint: cfg.URL, Headers: headers, RootCAs: roots, Version: version})
}
