// Package lanes is what a member does, without the goroutines that do it.
//
// A member works in lanes beside each other, each of which does one thing at a time: the loop owns the Node and steps it, one
// lane writes the log, one applies what has committed, and one evaluates answers of the fast path before they are committed.
// What a lane has to do waits in its queue; Host.Turn asks for a turn. In production each lane is a goroutine (package member);
// in the simulator a turn is an event at a drawn time (internal/sim/shell). Both run this wiring.
//
// It is not the core (package raft decides), not the members' management, and not the API.
//
// The main type is Lanes. lanes.go puts the parts together, host.go is what they need of the member around them:
//
//	inbox.go     what waits for the loop; loop.go: a step of the node, and what is published after it
//	ports.go     what the node puts out, passed on to the other lanes and to the host
//	disk.go      the lane that writes the log (package logwriter)
//	apply.go     the lane that applies (package applier), and completes what waits for it
//	answers.go   the lane of answers before the commit
//	requests.go  what is asked of the loop: that a command is applied, that a state may be read; request.go: one on its way
//	leader.go    KnownLeader: which member leads, for other goroutines
//
// Invariants:
//  1. A message that promises durability leaves only after the sync that covers it.
//  2. Entries are applied in log order, each once, and only when they are durable here.
//  3. A proposal is repeated under its own id until it is applied, refused for good, or given up by its caller. Repeats are
//     harmless because kv/apply applies an id once; a proposal gets another id only after the log rules out the first.
//  4. A read is served only after everything below its read index has been applied.
//  5. No lane waits for another lane. The disk lane and the apply lane wait for their I/O, and Inbox.PutPaced lets a stream
//     wait that brings more than the loop takes.
//
// Methods of Requests, KnownLeader, Inbox and Queue may be called concurrently; the methods of a lane belong to it.
package lanes
