// Package witness has what a member must know to promise an order: the pool of proposals that it keeps for others until
// their outcome is known (CURP, NSDI 2019, section 3.2.2), and the claims of all commands that it has not applied, on keys and
// leases.
//
// The main types are Pool, Claims and Blame. A Pool is keyed by attempt, a proposal and a revision: two attempts of one
// proposal are two records. Blame says which proposers are refused for a time, because what they offered was never
// proposed. None of them knows terms, logs or disks; package raft decides what enters and what leaves.
//
// Invariants:
//  1. A record leaves a Pool only by Forget; nothing replaces it.
//  2. Records come back in the order in which they were added, and so by ascending revision within one reign.
//  3. Claims that were added and removed as often leave nothing behind.
package witness
