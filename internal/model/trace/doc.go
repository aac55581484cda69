// Package trace checks a trace of the core's actions in a simulation against the specification in spec/: each line of a trace
// is an action of one member, and must be one that the next-state relation allows in the state after the lines before it.
//
// spec/README.md describes the mapping, and the parts that it leaves out. Of the specification's state, the checker keeps the
// parts that the lines decide: term, vote and log of each member, for each term the leader's log and the acknowledgements of
// it, and the committed log. Elections, appends, acknowledgements, commits, restarts and decisions of the fast path are mapped
// for clusters whose voters do not change; the first configuration entry ends the check with ErrUnmapped, which is no verdict.
//
// Law: it trusts only the first line, which names the voters. A Checker must not be called concurrently.
package trace
