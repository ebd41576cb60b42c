// Package telemetry traces what the gate does, with OpenTelemetry:
//
//	traces, err := telemetry.Open(ctx, telemetry.Options{Endpoint: "http://127.0.0.1:4318/v1/traces", Sample: 1, Queue: 2048})
//	ctx, end := traces.Evaluation(ctx, header, &event)
//	defer func() { end(&decision, err) }()
//
// There is a span for each evaluation, one for each hook that was asked, and
// one for each request to a model (package prompthooks/traced makes those).
// Spans say who, what kind, how it ended and how long it took; never a text
// that an agent, a model or a script wrote.
//
// Traces help an operator and decide nothing: an event is answered the same
// with a collector that is slow, dead or hostile, and what cannot be kept for
// it is dropped and counted. What was decided is in the records.
package telemetry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
)

// Options of [Open]. Endpoint, Sample and Queue are required.
type Options struct {
	// Endpoint is the URL that spans are posted to, as OTLP over HTTP in
	// protobuf.
	Endpoint string
	// Headers go with every request: keys of the collector's.
	Headers map[string]string
	// RootCAs vouch for the collector; nil: those that the system trusts.
	RootCAs *x509.CertPool
	// Sample is the share of traces that are kept, above 0 and up to 1, of those
	// that begin here. A caller's trace is kept where the caller keeps it.
	Sample float64
	// Queue is how many spans may wait to be sent. Beyond it they are dropped.
	Queue   int
	Version string // of stopgate
	// Dropped is told of spans that the collector will not get; nil: nobody is.
	Dropped func(why Loss, spans int)
}

// Loss says why spans were dropped.
type Loss string

const (
	QueueFull Loss = "queue_full" // more came than could be sent
	NotTaken  Loss = "not_taken"  // the collector did not take all of them, or could not be reached
	Stopped   Loss = "stopped"    // they still waited when time was up at the end
)

// Losses lists every [Loss].
var Losses = []Loss{QueueFull, NotTaken, Stopped}

const (
	// batchSize is how many spans go in one request: half a megabyte, less when
	// compressed.
	batchSize = 512
	// batchEvery is how long a span waits for others.
	batchEvery = 2 * time.Second
	// sendTime is how long one request may take, and all tries of a batch.
	sendTime = 10 * time.Second
	// flushTime is how long [Traces.Close] may take: an orchestrator's own grace is
	// half a minute, and evaluations come first.
	flushTime = 3 * time.Second
	// textLength bounds what a caller may put into a span, in runes: a tool's
	// name, an agent's, a session's.
	textLength = 256
)

// Traces are on their way to a collector. Close ends them.
type Traces struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	queue    *queue
}

// Open makes the traces; it sends nothing yet. An error names the option that
// is wrong.
func Open(ctx context.Context, o Options) (*Traces, error) {
	if !(o.Sample > 0 && o.Sample <= 1) || o.Queue <= 0 {
		return nil, fmt.Errorf("telemetry: Sample is %v, want above 0 and up to 1, and Queue %d, want above 0", o.Sample, o.Queue)
	}
	// Everything is set, also to nothing, lest the library's own environment
	// variables send spans and keys elsewhere.
	exporter, err := otlptrace.New(ctx, otlptracehttp.NewClient(
		otlptracehttp.WithEndpointURL(o.Endpoint), otlptracehttp.WithHeaders(o.Headers), otlptracehttp.WithHTTPClient(client(o.RootCAs)),
		otlptracehttp.WithTimeout(sendTime), otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: sendTime / 2, MaxElapsedTime: sendTime})))
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	q := newQueue(exporter, o.Queue, o.Dropped)
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(q),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.Sample))),
		sdk.WithResource(resource.NewSchemaless(semconv.ServiceName("stopgate"), semconv.ServiceVersion(o.Version))),
		sdk.WithRawSpanLimits(sdk.SpanLimits{AttributeValueLengthLimit: textLength, AttributeCountLimit: 64, EventCountLimit: 16,
			LinkCountLimit: 1, AttributePerEventCountLimit: 8, AttributePerLinkCountLimit: 8}))
	return &Traces{provider: provider, tracer: provider.Tracer("stopgate"), queue: q}, nil
}

// client goes to the one place it was told: no proxy of the environment's, and
// no redirect, which would take the headers along.
func client(roots *x509.CertPool) *http.Client {
	return &http.Client{
		Timeout: sendTime,
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: sendTime / 2}).DialContext,
			TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: sendTime / 2, ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Tracer makes spans of the same traces, for what this package does not know.
func (t *Traces) Tracer() trace.Tracer { return t.tracer }

// Close sends what waits, for three seconds at most, and drops the rest. That
// spans could not be sent is no error: they are counted.
func (t *Traces) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	err := t.provider.Shutdown(ctx)
	t.queue.giveUp(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
