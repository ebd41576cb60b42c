package telemetry

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/log"
	logs "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	collector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"

	"stopgate/gate"
)

// LogOptions of [OpenLogs]. Endpoint is required.
type LogOptions struct {
	Endpoint string            // the URL that logs are posted to, as OTLP over HTTP in protobuf
	Headers  map[string]string // go with every request
	RootCAs  *x509.CertPool    // vouch for the collector; nil: those that the system trusts
	Version  string            // of stopgate
}

// Logs sends records to a collector as logs: the whole record is the body, what
// people filter by are attributes.
type Logs struct {
	provider *logs.LoggerProvider
	logger   log.Logger
	exporter *otlploghttp.Exporter
	kept     *kept
}

// OpenLogs makes them; it sends nothing yet.
func OpenLogs(ctx context.Context, o LogOptions) (*Logs, error) {
	c := client(o.RootCAs)
	c.Transport = whole{c.Transport}
	// Everything is set, as in Open. There is no retry here: whoever sends does.
	exporter, err := otlploghttp.New(ctx, otlploghttp.WithEndpointURL(o.Endpoint), otlploghttp.WithHeaders(o.Headers), otlploghttp.WithHTTPClient(c),
		otlploghttp.WithTimeout(sendTime), otlploghttp.WithCompression(otlploghttp.GzipCompression), otlploghttp.WithRetry(otlploghttp.RetryConfig{}))
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	l := &Logs{exporter: exporter, kept: &kept{}}
	l.provider = logs.NewLoggerProvider(logs.WithProcessor(l.kept), logs.WithAttributeCountLimit(-1), logs.WithAttributeValueLengthLimit(-1),
		logs.WithResource(resource.NewSchemaless(semconv.ServiceName("stopgate"), semconv.ServiceVersion(o.Version))))
	l.logger = l.provider.Logger("stopgate")
	return l, nil
}

// Send sends records, with their JSON in lines, as one request. nil: the
// collector has taken all of them. It is not for concurrent use.
func (l *Logs) Send(ctx context.Context, records []gate.Record, lines [][]byte) error {
	l.kept.records = nil
	for i := range records {
		l.logger.Emit(ctx, logOf(&records[i], lines[i]))
	}
	return l.exporter.Export(ctx, l.kept.records)
}

// Close ends what waits for a next request.
func (l *Logs) Close() error {
	ctx := context.Background()
	return errors.Join(l.provider.Shutdown(ctx), l.exporter.Shutdown(ctx))
}

// logOf is a record as a log. A decision is no error, whatever it is.
func logOf(r *gate.Record, line []byte) (out log.Record) {
	out.SetEventName("stopgate.evaluation")
	out.SetTimestamp(r.Time)
	out.SetSeverity(log.SeverityInfo)
	out.SetSeverityText("INFO")
	if r.Degraded || r.GateError != nil {
		out.SetSeverity(log.SeverityWarn)
		out.SetSeverityText("WARN")
	}
	out.SetBody(attribute.StringValue(string(bytes.TrimSuffix(line, []byte("\n")))))
	text := func(key attribute.Key, value string) {
		if value != "" {
			out.AddAttributes(key.String(gate.Cut(value, textLength)))
		}
	}
	text("stopgate.evaluation_id", r.EvaluationID)
	text("stopgate.decision", string(r.Outcome))
	text("stopgate.event", string(r.Event))
	text("stopgate.protocol", r.Protocol)
	text(semconv.GenAIAgentNameKey, r.Agent)
	text(semconv.GenAIConversationIDKey, r.Session)
	text(semconv.GenAIToolNameKey, r.Tool)
	out.AddAttributes(attribute.Bool("stopgate.dry_run", r.DryRun), attribute.Bool("stopgate.forced", r.Forced), attribute.Bool("stopgate.degraded", r.Degraded))
	return out
}

// kept is a processor that hands over nothing by itself: what is emitted is sent
// by who emits it, and confirmed to it.
type kept struct{ records []logs.Record }

// OnEmit implements [logs.Processor].
func (k *kept) OnEmit(_ context.Context, r *logs.Record) error {
	k.records = append(k.records, r.Clone())
	return nil
}

// Enabled implements [logs.Processor].
func (*kept) Enabled(context.Context, logs.EnabledParameters) bool { return true }

// Shutdown implements [logs.Processor].
func (*kept) Shutdown(context.Context) error { return nil }

// ForceFlush implements [logs.Processor].
func (*kept) ForceFlush(context.Context) error { return nil }

// whole makes a request fail of which the collector took only a part, and one of
// which it took all succeed, whatever else it says: the exporter takes a warning
// for a failure.
type whole struct{ http.RoundTripper }

// answerLimit is more than a collector has to say, in bytes.
const answerLimit = 64 << 10

// RoundTrip implements [http.RoundTripper].
func (w whole) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusRequestEntityTooLarge || resp.StatusCode == http.StatusUnprocessableEntity:
		_ = resp.Body.Close()
		return nil, recordsRefused(fmt.Sprintf("the collector answered with status %d", resp.StatusCode))
	case resp.StatusCode/100 != 2:
		return resp, nil
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	var said collector.ExportLogsServiceResponse
	if proto.Unmarshal(answer, &said) == nil && said.GetPartialSuccess().GetRejectedLogRecords() != 0 {
		return nil, recordsRefused(fmt.Sprintf("the collector did not take %d of the records: %.200q", said.GetPartialSuccess().GetRejectedLogRecords(), said.GetPartialSuccess().GetErrorMessage()))
	}
	resp.Body = http.NoBody
	return resp, nil
}

// recordsRefused says why the collector would refuse the same records again.
type recordsRefused string

func (why recordsRefused) Error() string { return string(why) }

// RecordsAtFault tells it from errors that are about the collector, or the way to it.
func (recordsRefused) RecordsAtFault() bool { return true }
