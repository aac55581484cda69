// Package lab plays one membership change in slow motion: a handful of replicas with clients that write all the time, a fault
// at a chosen stage, and a chart of all messages between members and of the configuration in force at each member.
//
// It is not a search for bugs: package sim is, with whole members and every fault that we can name. Here the replicas of
// consensus/raft are real; disk, network and state machine are the simplest that do, so that a chart shows nothing but the
// protocol. A Run makes one change from Options. A Story is a script that leads to a known disaster, and shows which rule
// prevents it.
//
// Laws, checked in laws.go after every step of every member:
//  1. One leader a term (Raft paper, figure 3).
//  2. An entry that is committed on one member is the entry of that index on every member, and every later leader holds it.
//  3. One change at a time: a leader logs a configuration only once the one before has committed, except to abort it.
//  4. An acknowledged write is in the final log, and members that may be switched off are not needed any more.
//
// A run is one goroutine in virtual time, and all its draws come from the seed: equal options give equal bytes.
package lab
