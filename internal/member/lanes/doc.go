// Package lanes is the work of a member, without the goroutines that do it.
//
// A member works in concurrent lanes, each of which does one thing at a time: the loop owns the Node and steps it, one lane
// writes the log, one applies committed entries, and one evaluates answers of the fast path before they are committed. Each
// lane has a queue of its work; Host.Turn asks for a turn of the lane. In production each lane is a goroutine (package member);
// in the simulator a turn is an event at a drawn time (internal/sim/shell). Both run this wiring.
//
// It is not the core (package raft decides), not the management of members, and not the API.
//
// The main type is Lanes. lanes.go puts the parts together, host.go has the port for the member around them:
//
//	inbox.go     the queue of the loop; loop.go: a step of the node, and the state that is published after it
//	ports.go     connects the node's outputs to the other lanes and the host
//	disk.go      the lane that writes the log (package logwriter)
//	apply.go     the lane that applies (package applier), and completes the proposals and reads that wait for it
//	answers.go   the lane of answers before the commit
//	requests.go  proposals and reads; request.go: one of them in flight
//	leader.go    KnownLeader: which member leads, for other goroutines
//
// Invariants:
//  1. A message that promises durability leaves only after the sync that covers it.
//  2. Entries are applied in log order, each once, and only when they are durable here.
//  3. A proposal is repeated under its own id until it is applied, refused for good, or given up by its caller. Repeats are
//     harmless because kv/apply applies an id once; a proposal gets another id only after the log rules out the first.
//  4. A read is served only after everything below its read index has been applied.
//  5. No lane waits for another lane. The disk lane and the apply lane wait for their I/O, and Inbox.PutPaced makes a stream
//     wait that brings more than the loop takes.
//
// Methods of Requests, KnownLeader, Inbox and Queue may be called concurrently; the methods of a lane belong to it.
package lanes
