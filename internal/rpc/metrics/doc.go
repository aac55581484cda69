// Package metrics turns counters into Prometheus metrics when they are asked for.
//
// The parts of a server count in atomics of their own. Services write their metrics themselves, with an Emitter that a
// Collector gives them; internal/server writes those of the member, the log, the store and the transport. Nothing
// is registered in advance, which Prometheus calls unchecked: the names in the code are the description.
//
// The main type is Emitter.
//
// Invariants:
//  1. Counting costs an atomic addition; formatting costs the scrape.
//
// A Collector may be used concurrently, an Emitter belongs to one scrape.
package metrics
