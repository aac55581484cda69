// Package dev runs a whole cluster on one machine: members as child processes, watched, restarted when they die, and
// stopped together.
//
// It is for development, not for production: all members share one machine, and end with it. It knows its members only
// by their command line and by the API they serve, like any operator would. The entry is Run; a crew is the running
// cluster, a plan is what it looks like.
//
//	plan ──ports free? data fits?──> start ──all have a leader──> ready ──context ends──> stop
//	                                   └─ a member dies ──pause──> start again, until it died too often ─┘
//
// Invariants:
//  1. No member outlives this process, however it ends.
//  2. One directory has one running cluster, held by a lock.
//  3. The directory remembers how many members it has and where; data of another shape is refused, never changed.
//
// Run owns all its goroutines and may be called several times, for different directories.
package dev
