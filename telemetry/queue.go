package telemetry

import (
	"context"
	"sync/atomic"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// queue is a batch processor that knows what it loses. The SDK's own drops
// silently when it is full, so it is never let become that: spans that wait or
// are being sent are counted here, and it has room for as many.
type queue struct {
	sdk.SpanProcessor // the SDK's batches
	exporter          sdk.SpanExporter
	room              int64
	waiting           atomic.Int64
	closed            atomic.Bool
	dropped           func(Loss, int)
}

func newQueue(exporter sdk.SpanExporter, room int, dropped func(Loss, int)) *queue {
	if dropped == nil {
		dropped = func(Loss, int) {}
	}
	q := &queue{exporter: exporter, room: int64(room), dropped: dropped}
	q.SpanProcessor = sdk.NewBatchSpanProcessor(counted{q}, sdk.WithMaxQueueSize(room), sdk.WithMaxExportBatchSize(min(batchSize, room)),
		sdk.WithBatchTimeout(batchEvery), sdk.WithExportTimeout(sendTime))
	return q
}

// OnEnd takes a span that has ended, if there is room. It never waits.
func (q *queue) OnEnd(span sdk.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	switch {
	case q.closed.Load():
		q.dropped(Stopped, 1)
	case q.waiting.Add(1) > q.room:
		q.waiting.Add(-1)
		q.dropped(QueueFull, 1)
	default:
		q.SpanProcessor.OnEnd(span)
	}
}

// Shutdown sends what waits until ctx ends.
func (q *queue) Shutdown(ctx context.Context) error {
	q.closed.Store(true)
	return q.SpanProcessor.Shutdown(ctx)
}

// giveUp ends what is still being sent, and counts what waits as lost. It is
// called after Shutdown.
func (q *queue) giveUp(ctx context.Context) {
	_ = q.exporter.Shutdown(ctx) // has no error but ctx's
	if left := q.waiting.Swap(0); left > 0 {
		q.dropped(Stopped, int(left))
	}
}

// counted is the exporter behind a queue. Errors end here: they are counted and
// never printed, as the SDK does with what the collector answers.
type counted struct{ *queue }

// ExportSpans implements [sdk.SpanExporter].
func (c counted) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := c.exporter.ExportSpans(ctx, spans)
	// Below zero they were given up, and counted, while they were being sent.
	if c.waiting.Add(-int64(len(spans))) >= 0 && err != nil {
		c.dropped(NotTaken, len(spans))
	}
	return nil
}

// Shutdown implements [sdk.SpanExporter].
func (c counted) Shutdown(ctx context.Context) error { return c.exporter.Shutdown(ctx) }
