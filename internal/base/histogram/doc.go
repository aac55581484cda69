// Package histogram is a histogram with buckets that double, in atomics: an observation costs next to nothing.
//
// It knows nothing of Prometheus, so that packages below the services can have histograms; internal/rpc/metrics shows them.
// The main type is Histogram.
//
// Invariants:
//  1. Each bound is twice the one before; what is larger than the last counts in the total only.
//  2. One exemplar is kept for each bucket at most; without any there is no memory for them.
//  3. An observation counts once, in the first bound that is not less.
//
// All methods may be called concurrently. A reader may miss observations that are made meanwhile.
package histogram
