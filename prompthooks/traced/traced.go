// Package traced makes a span for each request to a model, by OpenTelemetry's
// semantic conventions for generative AI: which operation of which provider,
// which model, how many tokens, how it finished. Nothing of the request's or the
// answer's text is in it, and no trace context is sent to the provider.
package traced

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"stopgate/gate"
	"stopgate/prompthooks"
)

// Model is m with its requests in spans of the tracer's. kind is the provider's
// in the server file. Two of the same m are equal, so that what the judge has
// learnt of one holds for the other.
func Model(m prompthooks.Model, kind string, tracer trace.Tracer) prompthooks.Model {
	return model{m, kind, tracer}
}

type model struct {
	prompthooks.Model
	kind   string
	tracer trace.Tracer
}

// Lacks implements [prompthooks.Limited] for a model that does.
func (m model) Lacks() prompthooks.Features {
	if limited, ok := m.Model.(prompthooks.Limited); ok {
		return limited.Lacks()
	}
	return 0
}

// Generate implements [prompthooks.Model].
func (m model) Generate(ctx context.Context, req prompthooks.Request) (prompthooks.Response, error) {
	operation, provider := convention(m.kind)
	ctx, span := m.tracer.Start(ctx, operation+" "+gate.Cut(req.Model, 80), trace.WithSpanKind(trace.SpanKindClient))
	defer span.End() // also when it panics
	answer, err := m.Model.Generate(ctx, req)
	if !span.IsRecording() {
		return answer, err
	}
	span.SetAttributes(semconv.GenAIOperationNameKey.String(operation), semconv.GenAIProviderNameKey.String(provider), semconv.GenAIRequestModel(req.Model))
	if req.MaxOutputTokens > 0 {
		span.SetAttributes(semconv.GenAIRequestMaxTokens(req.MaxOutputTokens))
	}
	if u := answer.Usage; u.PromptTokens > 0 || u.OutputTokens > 0 {
		span.SetAttributes(semconv.GenAIUsageInputTokens(u.PromptTokens), semconv.GenAIUsageOutputTokens(u.OutputTokens),
			semconv.GenAIUsageCacheReadInputTokens(u.CachedTokens))
	}
	if err != nil {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(semconv.ErrorTypeKey.String(errorType(err)))
		return answer, err
	}
	span.SetAttributes(semconv.GenAIResponseFinishReasons(finish(answer)))
	return answer, nil
}

// convention is the operation and the provider as the conventions name them; a
// provider that they do not name has its own name.
func convention(kind string) (operation, provider string) {
	switch kind {
	case "gemini":
		return "generate_content", "gcp.gemini"
	case "vertex":
		return "generate_content", "gcp.vertex_ai"
	case "azure-openai":
		return "chat", "azure.ai.openai"
	}
	return "chat", kind
}

// finish is one word for how an answer ended, whoever gave it.
func finish(answer prompthooks.Response) string {
	switch {
	case answer.Finish == prompthooks.Truncated:
		return "length"
	case answer.Finish == prompthooks.Refused:
		return "content_filter"
	case answer.Finish == prompthooks.Malformed:
		return "error"
	case len(answer.Message.Calls) > 0:
		return "tool_call"
	}
	return "stop"
}

// errorType is the kind of an error. Its text may quote the provider's.
func errorType(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	bad, ok := errors.AsType[*prompthooks.Error](err)
	if !ok {
		return "_OTHER"
	}
	switch bad.Kind {
	case prompthooks.Unavailable:
		return "unavailable"
	case prompthooks.RateLimited:
		return "rate_limited"
	case prompthooks.Rejected:
		return "rejected"
	case prompthooks.Garbled:
		return "garbled"
	case prompthooks.Unsupported:
		return "unsupported"
	case prompthooks.Crowded:
		return "crowded"
	}
	return "_OTHER"
}
