// Package costly bounds the total cost of expensive commands that are in the log and not applied yet.
//
// The members apply commands in the order of the log, and others' writes wait for one that compares, keeps or deletes much.
// The cost of such a command is counted as kv.Account counts what is looked at. One that costs more than 64 KiB waits for its
// turn: those of this member that are in the log, and not applied, cost at most 2 MiB together, or are one command. So the log
// has no more from each member than others can wait for. A command whose comparisons look at too much, or that keeps too much,
// is refused. Values that puts keep by ignore_value are written again: the gate bounds how many bytes of them a second.
//
// The main type is Gate. Deletions bounds what the deletions of a command pass over.
//
// Invariants:
//  1. A turn ends when its command was applied, or failed, whether or not a caller waits for that.
//  2. Hosts take turns.
//
// All methods may be called concurrently.
package costly
