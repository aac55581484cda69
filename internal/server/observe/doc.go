// Package observe remembers what a member counted lately, and makes an observation of that whenever it is asked for one: what
// the native Doctor service answers, and what the metric quorate_doctor_findings is judged by.
//
// It counts nothing itself: log, store, transport and services do. A tally of their counts is taken every few seconds, and kept
// for ten minutes, so that an observation tells of the last minute instead of the whole life of the process.
//
// The main type is Observer.
//
// Invariants:
//  1. An observation asks no other member and scans nothing. It waits for the loop of its own member, for two seconds at most.
//  2. It holds no key, value, user or address of a client.
//
// All methods may be called concurrently; Run belongs to one goroutine.
package observe
