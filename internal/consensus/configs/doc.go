// Package configs derives the configurations of a member from its log: the one in force, those before and after it, which
// of them have committed and which are settled, and who was removed for ever.
//
// The main type is History. It is bookkeeping over log indexes: the owner of the log says what is appended, truncated,
// committed, applied and compacted, and asks Revise afterwards whether another configuration came into force. Which
// configuration may follow which is not decided here: package reconfig. A History belongs to one goroutine.
//
// Invariants:
//  1. The configurations are derived from the log and what it begins after; there is no other store of them that could
//     disagree. Truncation undoes them.
//  2. In force is the last configuration of the log, but for those that wait to be applied (protocol apply), and the second
//     stage of one that activates once it is known to have committed.
//  3. A change is settled once it has committed, is not half of a joint change, and enough members know that it is in
//     force. Only then the members that it removed learn of it.
//  4. A majority is counted in each set of voters of a joint configuration.
//
// Sources: see package reconfig.
package configs
