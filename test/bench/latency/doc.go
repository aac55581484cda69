// Package latency counts durations in buckets whose width grows with the duration, so that a quantile is at most 1/64 too
// high and a histogram takes 18 KiB whatever it counts. It has no clock and keeps no order of what it counted.
//
// Invariants:
//  1. A duration lies in one bucket, whose upper edge exceeds it by at most 1/64.
//  2. The histogram of a sum is the sum of the histograms: quantiles of several clients are quantiles of all they did.
//
// A Histogram belongs to one goroutine at a time.
package latency
