// Package metrics turns counters into Prometheus metrics when they are asked for.
//
// The parts of a server count in atomics of their own and know their metrics' names; a Collector lets each of them write
// with an Emitter. Nothing is registered in advance, which Prometheus calls unchecked: the names in the code of each part
// are the description.
//
// The main type is Emitter.
//
// Invariants:
//  1. Counting costs an atomic addition; formatting costs the scrape.
//
// A Collector may be used concurrently, an Emitter belongs to one scrape.
package metrics
