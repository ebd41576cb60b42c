package telemetry

import (
	"context"
	"errors"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"stopgate/gate"
)

// Evaluation begins the span of one event. The hooks and models that are asked
// with the context it answers are within it. end is called once, with what
// became of the event.
//
// Of the caller's headers traceparent is read, as a parent; one that is wrong
// is passed over. Its tracestate and baggage would be text of the caller's in
// our spans, so they are not read.
func (t *Traces) Evaluation(ctx context.Context, header http.Header, ev *gate.Event) (_ context.Context, end func(*gate.Decision, error)) {
	parent := propagation.MapCarrier{"traceparent": header.Get("Traceparent")}
	ctx = propagation.TraceContext{}.Extract(ctx, parent)
	ctx, span := t.tracer.Start(ctx, "evaluate "+string(ev.Name), trace.WithSpanKind(trace.SpanKindServer))
	if !span.IsRecording() {
		return ctx, func(*gate.Decision, error) { span.End() }
	}
	span.SetAttributes(attribute.String("stopgate.event", string(ev.Name)), attribute.String("stopgate.protocol", ev.Protocol),
		semconv.GenAIAgentName(ev.Agent), attribute.Bool("stopgate.dry_run", ev.Dry))
	if ev.Session != "" {
		span.SetAttributes(semconv.GenAIConversationID(ev.Session))
	}
	if ev.ToolName != "" {
		span.SetAttributes(semconv.GenAIToolName(ev.ToolName))
	}
	return ctx, func(d *gate.Decision, err error) {
		defer span.End()
		if err != nil || d.Outcome == "" {
			failed(span, errorType(err))
			return
		}
		span.SetAttributes(attribute.String("stopgate.evaluation_id", d.EvaluationID), attribute.String("stopgate.decision", string(d.Outcome)),
			attribute.Bool("stopgate.forced", d.Forced), attribute.Bool("stopgate.degraded", d.Degraded),
			attribute.Int("stopgate.hooks", len(d.Hooks)), attribute.Int("stopgate.stop_rejection_count", d.StopRejectionCount))
		if d.GateError != nil {
			failed(span, string(d.GateError.Code))
		}
	}
}

// errorType is the kind of an error that left no decision; nil: the gate
// panicked.
func errorType(err error) string {
	if errors.Is(err, gate.ErrAbandoned) {
		return "abandoned"
	}
	return string(gate.CodeOf(err))
}

// Hooks is an evaluator whose every verdict has a span.
func (t *Traces) Hooks(e gate.Evaluator) gate.Evaluator {
	return gate.EvaluatorFunc(func(ctx context.Context, in gate.Input) (v gate.Verdict) {
		ctx, span := t.tracer.Start(ctx, "hook "+string(in.Hook.Type))
		if !span.IsRecording() {
			defer span.End()
			return e.Evaluate(ctx, in)
		}
		span.SetAttributes(attribute.String("stopgate.hook.name", in.Hook.Name), attribute.String("stopgate.hook.type", string(in.Hook.Type)),
			attribute.String("stopgate.hook.level", string(in.Hook.Level)), attribute.String("stopgate.hook.dialect", string(in.Hook.Dialect)),
			attribute.String("stopgate.hook.fail_mode", string(in.Hook.FailMode)))
		v.Outcome = gate.NoVerdict // also when it panics
		defer func() { concluded(span, &v) }()
		v = e.Evaluate(ctx, in)
		return v
	})
}

// concluded ends a hook's span. "No" is a verdict: only what could not be asked is
// an error.
func concluded(span trace.Span, v *gate.Verdict) {
	defer span.End()
	span.SetAttributes(attribute.String("stopgate.hook.outcome", string(v.Outcome)))
	if e := v.Evidence; e != nil {
		if e.ExitCode != nil {
			span.SetAttributes(semconv.ProcessExitCode(*e.ExitCode))
		}
		if e.Status != 0 {
			span.SetAttributes(semconv.HTTPResponseStatusCode(e.Status))
		}
	}
	switch {
	case v.Failure != nil:
		failed(span, string(v.Failure.Code))
	case v.Outcome == gate.NoVerdict:
		failed(span, string(gate.Internal))
	}
}

// failed says by a code that a span's work failed. The message stays in the
// record: it may quote what a script or a model said.
func failed(span trace.Span, code string) {
	span.SetStatus(codes.Error, "")
	span.SetAttributes(semconv.ErrorTypeKey.String(code))
}
