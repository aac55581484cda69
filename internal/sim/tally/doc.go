// Package tally counts the events of simulated worlds, for the last line of a campaign: operations, faults by kind, changes of
// configurations, and outcomes of the fast path. It judges nothing.
package tally
