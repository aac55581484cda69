// Package costly lets the commands that cost much be proposed one after the other.
//
// The members apply commands in the order of the log, and others' writes wait for one that compares, keeps or deletes much.
// What such a command costs is counted as kv.Account counts what is looked at. One that costs more than a little is proposed
// when those before it, of this member, are applied, so that the log has no more from each member than others can wait for; and
// one whose comparisons look at too much is refused. Values that puts keep by ignore_value are written again: so much a second.
//
// The main type is Gate. Walk is an account for whoever looks at much for another reason.
//
// Invariants:
//  1. A turn ends when its command was applied, or failed, whoever waits for that.
//  2. Hosts take turns.
//
// All methods may be called concurrently.
package costly
