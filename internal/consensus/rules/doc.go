// Package rules is the table of the safety rules that a test can drop: what each demands, where that is stated, and which law
// of the simulator notices that it is dropped. Each sentence stands here and nowhere else: the tables of docs/simulation.md,
// the help of quoratesim and the stories of the laboratory (package lab) are made of it.
//
// The main types are Rule, a name, and Set, the rules that a test goes without. The core (Options.Dropped of package raft), the
// model beside it (package model), the harness that runs the core in tests, and the checks of identity (package identity) keep
// a rule where it belongs, and ask a Set whether it is dropped. It is no list of all that the protocol demands: what no test
// drops is not here.
//
// Invariants:
//  1. A rule has one name, which says what members do without it: RecoverByID is recover-by-id for stories, walks, --break of
//     quoratesim, and the model.
//  2. Only tests and simulations make a Set that is not zero.
//  3. A rule is read in each of the parts that its row names, and in no other.
package rules
