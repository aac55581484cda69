// Package rates has the rules by which operators bound users and prefixes of keys: which rules a request is subject to, and
// whether it may pass now.
//
// It knows neither the network nor the store, and starts no goroutine. The state machine (kv/apply) keeps the rules and counts
// what quotas bound; package rpc asks a Limiter before it proposes or reads.
//
//	Set      rules that are not changed any more, found by key, range and user
//	Limiter  token buckets for the rates of a Set, and counters of what was refused
//
// Invariants:
//  1. A request passes all rules that it is subject to, or takes nothing from any of them.
//  2. Over any time t a rule lets no more than its rate times t and one second pass, and one request.
//  3. A request that is larger than what a second allows passes when its turn comes, and the next ones wait for its bytes.
//
// A Set may be read from many goroutines. Methods of a Limiter may be called concurrently.
package rates
