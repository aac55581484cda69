// Package rules is the table of the safety rules that a test can drop: what each demands, where that is stated, and which law
// of the simulator notices that it is dropped. Each sentence stands here and nowhere else: docs/rules.md, the help of
// quoratesim and the stories of the laboratory (package lab) are made from it.
//
// The main types are Rule, a name, and Set, the rules that a test drops. The core (Options.Dropped of package raft), the model
// beside it (package model), the harness that runs the core in tests, and the checks of identity (package identity) enforce a
// rule where it belongs, and ask a Set whether it is dropped. The table does not list all that the protocol demands: a rule
// that no test drops is not in it.
//
// Invariants:
//  1. A rule has one name, which says what members do without it: RecoverByID is recover-by-id for stories, walks, --break of
//     quoratesim, and the model.
//  2. Only tests and simulations make a Set that is not zero.
//  3. A rule is read in each of the parts that its row names, and in no other.
package rules
