// Package model is a model of the protocol, not of the code: Raft, the fast path, reads and membership changes at the level
// of atomic protocol steps, and the laws they must keep. With package explore it answers a question that the simulator
// cannot: is each rule of the design needed, and do the rules together suffice, in schedules that a running cluster meets
// once in a year.
//
// A State is a plain value, and Model.Step changes it by one Action. Model.Rules says which rules are dropped, by their names
// in package rules. What entries make of a store is in store.go, who is enough to decide in config.go, the laws are in laws.go;
// each part of the protocol has its file.
//
// What it is not: it has no time (but ticks for leader leases), no liveness, and logs of at most 16 entries. Messages are
// kept for ever, so loss, delay, duplication and reordering need no rules of their own. Compaction needs none either:
// what a log has dropped is what was applied, and nothing looks at applied entries but the store.
//
// Nothing here may be called concurrently.
//
// Sources: Ongaro, "Consensus: Bridging Theory and Practice" (2014) for Raft, leases and transfer; Park and Ousterhout,
// "Exploiting Commutativity For Practical Fast Replication" (NSDI 2019) for records and recovery; ADR 0002, 0013 and 0014
// for what Quorate adds.
package model
