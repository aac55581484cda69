// Package member runs one member: the goroutines of its lanes (package member/lanes), which the simulator runs as events, and
// what else a member does beside them.
//
// It is not the core (package raft decides) and not the API (package rpc speaks etcd).
//
// The main type is Member: member.go puts its parts together, api.go is what others ask of it, options.go says how it runs.
// Most parts leave decisions to the packages that they run; levels.go, admission.go, change.go, leave.go, leases.go and
// members.go decide some things themselves. The parts are
//
//	run.go          the goroutines of the lanes; host.go: the member as its lanes see it; status.go: the core's state
//	requests.go     goroutines that wait for a request
//	peerhandler.go  what arrives from other members; peers.go, link.go: the way to them
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
//	config.go       the configuration that is applied here; conflict.go: what to do about a log that is refused
//	lifecycle.go    the common end of the goroutines; leave.go: the end of a member that was removed
//
// All methods of Member, Membership and PeerHandler may be called concurrently.
package member
