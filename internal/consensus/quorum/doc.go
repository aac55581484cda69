// Package quorum is the arithmetic of agreement: how many voters suffice, what a quorum has acknowledged, whether a
// vote is decided. It knows numbers and sets of answers, and nothing of messages, terms or members' states.
//
// Invariants:
//  1. Two majorities of the same voters share a voter (Raft paper, section 5.2).
//  2. A superquorum meets every majority in at least a recovery quorum (CURP, appendix B.2, carried to any n): every
//     new leader can tell what a superquorum accepted from what it did not.
//  3. An empty set of voters decides nothing and never agrees, so that a member without a configuration is harmless.
//
// All functions are pure and may be called concurrently.
package quorum
