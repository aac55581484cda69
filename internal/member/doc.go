// Package member runs one member: the goroutines of its lanes (package member/lanes), which the simulator runs as events, and
// the member's duties beside the lanes.
//
// It is not the core (package raft decides) and not the API (package rpc speaks etcd).
//
// The main type is Member: member.go puts its parts together, api.go has the methods for other packages, options.go the
// options. Most parts leave decisions to the packages that they run; levels.go, admission.go, change.go, leave.go, leases.go
// and members.go decide some things themselves. The parts are
//
//	run.go          the goroutines of the lanes; host.go: the member as its lanes see it; status.go: the core's state
//	requests.go     goroutines that wait for a request
//	peerhandler.go  messages and calls of other members; peers.go, link.go: the connections to them
//	calls.go        calls between members, and their errors; greeter.go: calls that every process may make
//	levels.go       which commands wait for a feature level, and when the leader raises the level
//	admission.go    which processes may join that no operator has added
//	members.go      Membership: requests about the members; jobs.go: the jobs that are applied here
//	change.go       changes of the configuration; transfer.go: of leadership; view.go: the leader's view of the cluster
//	pilot.go        the goroutines of package autopilot; pilotports.go: its port
//	bind.go         binds members to their data directories
//	told.go         addresses that an operator or other members reported; learner.go: asks for them while no leader is known
//	clients.go      the port of package clients
//	integrity.go    builds package integrity for the member; snapshots.go, epochs.go: snapshots and epoch
//	leases.go       requests about leases, which the leader answers; builds package expiry
//	errors.go       errors; route.go: the route by which a result came; timers.go: timers
//	config.go       the applied configuration; conflict.go: advice about a refused log
//	lifecycle.go    the common end of the goroutines; leave.go: the end of a removed member
//
// All methods of Member, Membership and PeerHandler may be called concurrently.
package member
