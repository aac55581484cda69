// Package lab plays one membership change in slow motion: a handful of replicas with clients that write all the time, a fault
// at a chosen stage, and a chart of all messages between members and of the configuration in force at each member.
//
// It is not a search for bugs: package sim is, with whole members and every fault that we can name. Here the replicas of
// consensus/raft are real, and so is what writes the log and lets go what waited for it (logwriter), what asks the state
// machine for the fast path (node), and what an applied change leaves (consensus). Disk, network and state machine are the
// simplest that do, so that a chart shows nothing but the protocol. A Run makes one change from Options. A Story is a script
// that leads to a known disaster, and shows which rule prevents it. All of it builds for WebAssembly.
//
// The laws of the simulator (package sim/check) judge every step of every member: judge.go. Laws of its own, checked in laws.go
// after every step, too, have the words of charts; they name the disaster, the others what led to it:
//  1. One leader a term (Raft paper, figure 3).
//  2. An entry that is committed on one member is the entry of that index on every member, and every later leader holds it.
//  3. One change at a time: a leader logs a configuration only once the one before has committed, except to abort it.
//  4. An acknowledged write is in the final log, and members that may be switched off are not needed any more.
//
// A run is one goroutine in virtual time, and all its draws come from the seed: equal options give equal bytes.
package lab
