// Package member runs one member: goroutines around a Node (package node), which the simulator runs as it is.
//
// One goroutine, the loop, owns the Node; one writes the WAL (everything that waits in one sync); one applies. It is not
// the core (package raft decides) and not the API (package rpc speaks etcd).
//
// The main type is Member: member.go puts its parts together, api.go is what others ask of it, options.go says how it runs. Its
// parts leave decisions to the packages that they run, but for two: levels.go and admission.go. The parts are
//
//	requests.go     what is asked of the loop: that a command is applied, that a state may be read;
//	                request.go: one on its way; waiting.go: goroutines that wait for one
//	loop.go         the goroutine that owns the Node; inbox.go: what waits for it; status.go, leader.go: what it publishes
//	nodeports.go    what the Node puts out, passed on to the goroutines below and to other members
//	logwriter.go    the goroutine that writes the WAL (package logwriter)
//	applying.go     the goroutine that applies (package applier); applied.go: who is told what was applied
//	fastanswers.go  the goroutine that answers proposals of the fast path before they are committed
//	peerhandler.go  what arrives from other members; peers.go: the way to them
//	calls.go        what members ask each other, and its errors; greeter.go: what anybody may ask
//	levels.go       which commands wait for a feature level, and when the leader raises the level
//	admission.go    which processes may join that nobody has added
//	members.go      Membership: requests about the members; jobs.go: jobs as they are applied here
//	change.go       a change of the configuration; transfer.go: of leadership; view.go: the cluster as its leader sees it
//	pilot.go        the goroutines of package autopilot; pilotports.go: what that package sees of the member
//	bind.go         which data directory speaks for which member
//	told.go         addresses that an operator told, or members; learner.go: asks members while no leader is heard
//	clients.go      what package clients sees of the member
//	integrity.go    how package integrity is made for the member; snapshots.go, epochs.go: snapshots and epoch
//	leases.go       requests about leases, which the leader answers; how package expiry is made
//	errors.go       errors; route.go: which way an answer came; timers.go: timers
//	config.go       the configuration that is applied here
//	lifecycle.go    the common end of the goroutines; leave.go: the end of a member that was removed
//
// Invariants:
//  1. A message that promises durability leaves only after the sync that covers it.
//  2. Entries are applied in log order, each once, and only when they are durable here.
//  3. A proposal is repeated under its own id until it is applied, refused for good, or given up by its caller, so
//     it happens at most once.
//  4. A read is served only after everything below its read index has been applied.
//
// All methods of Member, Membership and PeerHandler may be called concurrently.
package member
