// Package level says which replicated formats and commands a build knows, so that members of different builds apply the same.
//
// A feature level is a small number: table in level.go says what each one enables. Every member publishes the level of its
// build. The cluster has an active level, which is replicated state (package kv/apply): it rises by an entry of the log, only
// when all members have published that level, and never falls. What a level enables is applied from that entry on, by all.
//
// It is not the place where an entry is judged (kv.Needs says what one needs, kv/apply decides) and it proposes nothing
// (package member).
//
// The main type is Level; HeldError is what a caller is told whose request needs more than the cluster has.
//
// This build has one level. Package nextlevel makes up the next one, for tests and the simulator.
//
// Invariants:
//  1. Levels are numbered without gaps; what one enables is never changed, only added by the next one.
//
// All functions may be called concurrently.
package level
