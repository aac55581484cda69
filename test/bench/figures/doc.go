// Package figures is what a measurement gives, a Row of numbers for each workload, server and round, and the report of medians
// and of ratios between servers. It measures nothing.
//
// Invariants:
//  1. A value that was not measured is not a number, and is neither in a median nor in a ratio.
//  2. A ratio compares figures of one round only.
package figures
