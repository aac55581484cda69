// Package explore looks for broken laws in the model of the protocol (package model): it chooses the steps, and the model
// performs them. Three searches use it:
//
//   - Walk takes random walks, biased by macros that queue likely runs of steps. A finding is shrunk and replayed.
//   - Search goes breadth first through small bounds, with symmetry reduction, until they are complete or too large.
//   - Mutation drops rules and looks for a broken law. A rule whose absence breaks nothing is marked as redundant with the
//     reason, or the walks are too weak: the table in docs/simulation.md says which.
//
// It does not know any rule of the protocol, and it checks no law. The main types are Finding, WalkOptions and Mutation.
//
// Invariants:
//  1. The seed and the number of a walk decide it.
//  2. A finding replays: its trace breaks the law again, and nothing under the full rules.
//  3. Each rule of the model is dropped by a mutation.
//
// Nothing here may be called concurrently.
package explore
