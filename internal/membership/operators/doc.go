// Package operators explores what two operators, and processes that join, can do to a cluster by asking for changes of its
// members: stale plans, two replacements of one member, newcomers that nobody starts, names and addresses that are wrong,
// members that die, move, or come back with an old data directory.
//
// What decides is the real planner: package membership admits, plans and drives the jobs, and package reconfig judges each
// change, as in a member. What is pretended is the rest: a change takes effect at once, and who is up is known at once. Changes
// that are caught half way are the business of the simulator and of package reconfig's own tests.
//
// Laws:
//
//	writes go on     no change leaves a cluster whose majority works without one
//	voters           there are never more than the first ones and those that were asked for beside them
//	plan             a job leaves no fewer voters than its plan showed, unless its operator knew of the others
//	queue            no job waits for ever for somebody to start a newcomer, or makes what cures wait; all can be cancelled
//	names            no two members have one name
//	vote             nobody joins in the place of a voter that works
//	addresses        no change of peer URLs makes a majority unreachable, and a member that moved is found
//
// Mutations drop one rule each.
package operators
