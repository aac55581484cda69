// Package trace checks what the core did in a simulation against the specification in spec/: each line of a trace is an
// action of one member, and must be one that the next-state relation allows in the state that the lines before it led to.
//
// The mapping, and what it leaves out, is in spec/README.md. The checker keeps of the specification's state what the lines
// decide: term, vote and log of each member, by term the leader's log and who acknowledged how much, and the committed log.
// Elections, appends, acknowledgements, commits, restarts and decisions of the fast path are mapped for clusters whose voters
// do not change; the first configuration entry ends the check with ErrUnmapped, which is no verdict.
//
// Law: it trusts nothing but the first line, which names the voters. A Checker may not be called concurrently.
package trace
