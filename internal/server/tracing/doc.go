// Package tracing sends spans of the calls that clients make to a collector, as etcd does with --enable-distributed-tracing:
// by OpenTelemetry's library, over OTLP and gRPC, without TLS.
//
// A call belongs to the trace that its client names in its metadata (W3C Trace Context), and is recorded if the client says
// so; the others are sampled at the configured rate per million. A call has a span with its method, its outcome and its time,
// and those that the services add inside of it (Inside). They are no log of what the members do: a span has no key and no
// value.
//
// The main type is Exporter:
//
//	Start -> Calls -> Close
//
// Invariants:
//  1. A collector that is slow, or away, harms no call: spans are dropped.
//  2. Memory is bounded by the spans that wait or are being sent, maxQueued, and the bounds of what a client may send in the
//     head of a call.
//  3. Without an Exporter nothing of this runs: a call is counted, and allocates, as if the package were not there.
//
// An Exporter may be used by any number of goroutines.
package tracing
