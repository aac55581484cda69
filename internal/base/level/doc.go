// Package level defines which replicated formats and commands a build knows, so that members of different builds apply the
// same.
//
// A feature level is a small number: table in level.go says what each one enables. Every member publishes the level of its
// build. The cluster has an active level, which is replicated state (package kv/apply): an entry of the log raises it, only
// when all members have published that level, and it never falls. All members apply from that entry on what the level enables.
//
// The package does not judge entries (kv.Needs returns the level that one needs, kv/apply decides) and proposes none (package
// member).
//
// The main type is Level; HeldError answers a request that needs a level above the active one.
//
// This build has two levels. Package nextlevel makes up the one after them, for tests and the simulator.
//
// Invariants:
//  1. Levels are numbered without gaps; a level's meaning never changes, new meanings get the next level.
//
// All functions may be called concurrently.
package level
