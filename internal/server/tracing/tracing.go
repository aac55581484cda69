package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/stats"

	"github.com/quorate/quorate/internal/base/monotime"
)

// Million is of how many calls Options.PerMillion says how many are recorded.
const Million = 1_000_000

// maxValueBytes bounds one attribute of a span: method and addresses, which fit, and what a client may lengthen.
const maxValueBytes = 1024

// scope is what the collector shows as the maker of spans inside of calls.
const scope = "github.com/quorate/quorate"

// complainEvery is how often the log says that the collector does not answer.
const complainEvery = time.Minute

// Options say where spans go, and whose they are.
type Options struct {
	Address    string // of the collector, host and port
	Service    string // by which the collector knows all members
	Instance   string // by which it knows this one; empty: it does not
	PerMillion int    // calls recorded of a million whose client says nothing about it
	Logger     *slog.Logger
}

// Exporter sends spans.
type Exporter struct {
	provider   *trace.TracerProvider
	tracer     oteltrace.Tracer // of spans inside of calls
	queue      *queue
	complaints *complaints
}

// Start makes an Exporter. It does not wait for the collector.
func Start(ctx context.Context, options Options) (*Exporter, error) {
	to, err := otlptracegrpc.New(ctx, otlptracegrpc.WithInsecure(), otlptracegrpc.WithEndpoint(options.Address))
	if err != nil {
		return nil, fmt.Errorf("--distributed-tracing-address %s: %w", options.Address, err)
	}
	said := &complaints{logger: options.Logger, address: options.Address}
	otel.SetErrorHandler(said)
	names := []attribute.KeyValue{attribute.String("service.name", options.Service)}
	if options.Instance != "" {
		names = append(names, attribute.String("service.instance.id", options.Instance))
	}
	limits := trace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxValueBytes
	waiting := newQueue(to)
	provider := trace.NewTracerProvider(
		trace.WithSpanProcessor(waiting),
		trace.WithResource(resource.NewSchemaless(names...)),
		trace.WithRawSpanLimits(limits),
		trace.WithSampler(trace.ParentBased(sampler(options.PerMillion))),
	)
	return &Exporter{complaints: said, provider: provider, tracer: provider.Tracer(scope), queue: waiting}, nil
}

func sampler(perMillion int) trace.Sampler {
	if perMillion <= 0 {
		return trace.NeverSample()
	}
	return trace.TraceIDRatioBased(float64(perMillion) / Million)
}

// Calls records the calls of a server that tells it of them.
func (e *Exporter) Calls() stats.Handler {
	return otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(e.provider),
		otelgrpc.WithPropagators(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})),
	)
}

// Span is a part of a call that has ended. Its attributes must not be texts of clients.
type Span struct {
	Name         string
	Begun, Ended time.Time
	Attributes   []Attribute
	Inside       []Span
}

// Say adds an attribute.
func (s *Span) Say(key, value string) { s.Attributes = append(s.Attributes, Attribute{key, value}) }

// Attribute says something about a Span.
type Attribute struct{ Key, Value string }

// TraceOf returns the id of the trace of a call that is recorded, in hexadecimal; nothing if it is not.
func (e *Exporter) TraceOf(ctx context.Context) string {
	of := oteltrace.SpanContextFromContext(ctx)
	if !of.IsSampled() {
		return ""
	}
	return of.TraceID().String()
}

// Inside adds spans to the one of a call that is recorded. The call has not ended. The client's tracestate, which may fill the
// head of its call, is with the span of the call alone.
func (e *Exporter) Inside(ctx context.Context, spans []Span) {
	if len(spans) == 0 {
		return
	}
	if of := oteltrace.SpanContextFromContext(ctx); of.TraceState().Len() > 0 {
		ctx = oteltrace.ContextWithSpanContext(ctx, of.WithTraceState(oteltrace.TraceState{}))
	}
	for i := range spans {
		s := &spans[i]
		inside, span := e.tracer.Start(ctx, s.Name, oteltrace.WithTimestamp(s.Begun))
		for _, a := range s.Attributes {
			span.SetAttributes(attribute.String(a.Key, a.Value))
		}
		e.Inside(inside, s.Inside)
		span.End(oteltrace.WithTimestamp(s.Ended))
	}
}

// Dropped tells how many spans were dropped because maxQueued waited.
func (e *Exporter) Dropped() uint64 { return e.queue.dropped.Load() }

// Failed tells how often spans could not be sent: up to 512 were dropped each time.
func (e *Exporter) Failed() uint64 { return e.complaints.count.Load() }

// Close sends what waits, until ctx ends.
func (e *Exporter) Close(ctx context.Context) error { return e.provider.Shutdown(ctx) }

// complaints logs what the library says of a collector, now and then. The library has one handler of errors for a process.
type complaints struct {
	logger  *slog.Logger
	address string
	count   atomic.Uint64
	last    monotime.Atomic // when a line was logged
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	c.count.Add(1)
	if !c.last.Advance(time.Now(), complainEvery) {
		return
	}
	c.logger.Warn("could not send spans; they are dropped", "collector", c.address, "err", err)
}
