package traced_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"stopgate/gate"
	"stopgate/prompthooks"
	"stopgate/prompthooks/traced"
)

const secret = "what the agent said"

// request is one that is full of what is nobody's business.
var request = prompthooks.Request{Model: "m-1", System: secret, MaxOutputTokens: 1024, Messages: []prompthooks.Message{{Role: prompthooks.User, Text: secret}},
	Tools: []prompthooks.Tool{{Name: secret}}}

func TestSpanOfARequest(t *testing.T) {
	usage := gate.Usage{PromptTokens: 900, CachedTokens: 100, OutputTokens: 40}
	calls := prompthooks.Message{Calls: []prompthooks.Call{{Name: secret, Args: []byte(`{}`)}}}
	common := func(more map[attribute.Key]any) map[attribute.Key]any {
		all := map[attribute.Key]any{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "m-1", "gen_ai.request.max_tokens": int64(1024)}
		for k, v := range more {
			all[k] = v
		}
		return all
	}
	spent := func(more map[attribute.Key]any) map[attribute.Key]any {
		more["gen_ai.usage.input_tokens"], more["gen_ai.usage.output_tokens"], more["gen_ai.usage.cache_read.input_tokens"] = int64(900), int64(40), int64(100)
		return common(more)
	}
	for _, c := range []struct {
		name   string
		answer prompthooks.Response
		err    error
		want   map[attribute.Key]any
	}{
		{"a verdict", prompthooks.Response{Message: prompthooks.Message{Text: secret}, Usage: usage}, nil, spent(map[attribute.Key]any{"gen_ai.response.finish_reasons": []string{"stop"}})},
		{"a tool call", prompthooks.Response{Message: calls}, nil, common(map[attribute.Key]any{"gen_ai.response.finish_reasons": []string{"tool_call"}})},
		{"cut off", prompthooks.Response{Finish: prompthooks.Truncated, Detail: secret}, nil, common(map[attribute.Key]any{"gen_ai.response.finish_reasons": []string{"length"}})},
		{"refused", prompthooks.Response{Finish: prompthooks.Refused, Detail: secret}, nil, common(map[attribute.Key]any{"gen_ai.response.finish_reasons": []string{"content_filter"}})},
		{"malformed", prompthooks.Response{Finish: prompthooks.Malformed}, nil, common(map[attribute.Key]any{"gen_ai.response.finish_reasons": []string{"error"}})},
		{"unavailable", prompthooks.Response{Usage: usage}, prompthooks.Errorf(prompthooks.Unavailable, secret), spent(map[attribute.Key]any{"error.type": "unavailable"})},
		{"rate-limited", prompthooks.Response{}, prompthooks.Errorf(prompthooks.RateLimited, secret), common(map[attribute.Key]any{"error.type": "rate_limited"})},
		{"rejected", prompthooks.Response{}, prompthooks.Errorf(prompthooks.Rejected, secret), common(map[attribute.Key]any{"error.type": "rejected"})},
		{"garbled", prompthooks.Response{}, prompthooks.Errorf(prompthooks.Garbled, secret), common(map[attribute.Key]any{"error.type": "garbled"})},
		{"crowded", prompthooks.Response{}, prompthooks.Errorf(prompthooks.Crowded, secret), common(map[attribute.Key]any{"error.type": "crowded"})},
		{"unsupported", prompthooks.Response{}, prompthooks.Errorf(prompthooks.Unsupported, secret), common(map[attribute.Key]any{"error.type": "unsupported"})},
		{"out of time", prompthooks.Response{}, fmt.Errorf("%s: %w", secret, context.DeadlineExceeded), common(map[attribute.Key]any{"error.type": "timeout"})},
		{"given up", prompthooks.Response{}, context.Canceled, common(map[attribute.Key]any{"error.type": "canceled"})},
		{"another error", prompthooks.Response{}, errors.New(secret), common(map[attribute.Key]any{"error.type": "_OTHER"})},
	} {
		t.Run(c.name, func(t *testing.T) {
			spans := tracetest.NewSpanRecorder()
			tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)).Tracer("test")
			m := traced.Model(prompthooks.ModelFunc(func(context.Context, prompthooks.Request) (prompthooks.Response, error) { return c.answer, c.err }), "anthropic", tracer)
			answer, err := m.Generate(t.Context(), request)
			if diff := cmp.Diff(c.answer, answer); diff != "" || !errors.Is(err, c.err) {
				t.Errorf("the answer is another one: %v %s", err, diff)
			}
			ended := spans.Ended()
			if len(ended) != 1 || ended[0].Name() != "chat m-1" {
				t.Fatalf("spans %v", ended)
			}
			got := map[attribute.Key]any{}
			for _, kv := range ended[0].Attributes() {
				got[kv.Key] = kv.Value.AsInterface()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if status := ended[0].Status(); (status.Code == codes.Error) != (c.err != nil) || status.Description != "" {
				t.Errorf("status %v", status)
			}
		})
	}
}

func TestProvidersAsTheConventionsNameThem(t *testing.T) {
	for kind, want := range map[string]string{"gemini": "gcp.gemini", "vertex": "gcp.vertex_ai", "azure-openai": "azure.ai.openai", "openai": "openai", "anthropic": "anthropic", "ollama": "ollama"} {
		spans := tracetest.NewSpanRecorder()
		tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)).Tracer("test")
		m := traced.Model(prompthooks.ModelFunc(func(context.Context, prompthooks.Request) (prompthooks.Response, error) {
			return prompthooks.Response{}, nil
		}), kind, tracer)
		_, _ = m.Generate(t.Context(), request)
		for _, kv := range spans.Ended()[0].Attributes() {
			if kv.Key == "gen_ai.provider.name" && kv.Value.AsString() != want {
				t.Errorf("%s is %q, want %q", kind, kv.Value.AsString(), want)
			}
		}
	}
}

// limited lacks tools.
type limited struct{ prompthooks.ModelFunc }

func (*limited) Lacks() prompthooks.Features { return prompthooks.Tools }

// TestTheJudgeKnowsTheModel: it is told what the model lacks, and takes two of the
// same for one.
func TestTheJudgeKnowsTheModel(t *testing.T) {
	tracer := sdk.NewTracerProvider().Tracer("test")
	m := &limited{}
	if traced.Model(m, "openai", tracer) != traced.Model(m, "openai", tracer) {
		t.Error("two of the same model differ")
	}
	said, ok := traced.Model(m, "openai", tracer).(prompthooks.Limited)
	if !ok || said.Lacks() != prompthooks.Tools {
		t.Error("what the model lacks is lost")
	}
	if said := traced.Model(prompthooks.ModelFunc(nil), "openai", tracer).(prompthooks.Limited); said.Lacks() != 0 {
		t.Error("a model that has said nothing lacks something")
	}
}
