// Package tally counts what happened in simulated worlds, for the last line of a campaign: operations, faults by kind, changes
// of configurations, and what the fast path did. It judges nothing.
package tally
