package tracing

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/sdk/trace"
)

// maxQueued is how many spans wait for the collector, or are being sent. More are dropped.
const maxQueued = 2048

// queue counts the spans that wait for the collector, and drops more than maxQueued: the library drops them too, and tells
// nobody.
type queue struct {
	trace.SpanProcessor // the library's, with as much room
	waiting             atomic.Int64
	dropped             atomic.Uint64
}

func newQueue(to trace.SpanExporter) *queue {
	q := new(queue)
	q.SpanProcessor = trace.NewBatchSpanProcessor(&sender{SpanExporter: to, queue: q}, trace.WithMaxQueueSize(maxQueued))
	return q
}

// OnEnd implements trace.SpanProcessor.
func (q *queue) OnEnd(span trace.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	if q.waiting.Add(1) > maxQueued {
		q.waiting.Add(-1)
		q.dropped.Add(1)
		return
	}
	q.SpanProcessor.OnEnd(span)
}

// sender tells the queue of spans that were sent, or could not be.
type sender struct {
	trace.SpanExporter
	queue *queue
}

// ExportSpans implements trace.SpanExporter.
func (s *sender) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	defer s.queue.waiting.Add(-int64(len(spans)))
	return s.SpanExporter.ExportSpans(ctx, spans)
}
