// Package operators explores what two operators, and processes that join, can do to a cluster by asking for changes of its
// members: stale plans, two replacements of one member, newcomers that no operator starts, names and addresses that are wrong,
// members that die, move, or come back with an old data directory.
//
// The code is the members' own: a world is the Cluster and the Finder of package autopilot, which accepts and drives the jobs
// that package membership plans, lets processes join and checks peer URLs; package reconfig judges each change. The rest is
// simplified: a change takes effect at once, and the leader knows at once which members are up. The simulator and the tests of
// package reconfig cover changes that are interrupted.
//
// Invariants:
//
//	writes go on     a cluster with a working majority still has one after each change
//	voters           there are no more voters than at the start, plus those that were asked for
//	plan             a job leaves no fewer voters than its plan showed, unless its operator knew of the others
//	queue            no job waits for ever for a newcomer to start, or delays a repair; all jobs can be cancelled
//	names            no two members have one name
//	vote             no process joins in the place of a voter that works
//	addresses        no change of peer URLs makes a majority unreachable, and a member that moved is found
//
// Mutations drop one rule each.
package operators
