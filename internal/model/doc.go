// Package model is a model of the protocol, not of the code: Raft, the fast path, reads and membership changes at the level of
// atomic protocol steps, and the laws they must keep. With package explore it answers a question that the simulator cannot: is
// each rule of the design needed, and do the rules together suffice, in schedules that a running cluster meets once in a year.
//
// A State is a plain value, and Model.Step changes it by one Action. Model.Rules are the dropped rules, by their names in
// package rules. store.go applies entries to a store, config.go counts quorums, laws.go has the laws; each part of the protocol
// has its file.
//
// The model has no time (except ticks for leader leases), no liveness, and logs of at most 16 entries. Messages are kept for
// ever, so loss, delay, duplication and reordering need no rules of their own. Compaction needs none either: a compacted log
// has dropped applied entries, and only the store looks at those.
//
// Nothing here may be called concurrently.
//
// Sources: Ongaro, "Consensus: Bridging Theory and Practice" (2014) for Raft, leases and transfer; Park and Ousterhout,
// "Exploiting Commutativity For Practical Fast Replication" (NSDI 2019) for records and recovery; ADR 0002, 0013 and 0014
// for what Quorate adds.
package model
