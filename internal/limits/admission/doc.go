// Package admission bounds the connections, calls, streams and incomplete messages that other processes may have open
// at this one.
//
// It counts and refuses. The caller decides which call counts against which bound, and which error a refused client
// gets. Each bound is a type of its own:
//
//	Ledger         a limit of bytes for all hosts together, of which a host has as much as is free; nothing waits
//	HostBound      a limit for all hosts together and one for each host; nothing waits
//	Queue          a limit of calls that run, and one of calls that wait for their turn
//	Turns          a limit of large work that runs, which leaves one processor free; callers wait
//	Unidentified   a limit of connections whose peer is not identified yet: a new one evicts an older one
//	FirstMessages  a deadline for the first message of a call
//	Abandoned      a limit of requests that the clients of a host leave unanswered by dropping their connections
//
// Invariants:
//  1. A bound on hosts counts an IPv4 address, or the /64 of an IPv6 address, as one host: Host.
//  2. If one host has too many connections, its own are refused or evicted before those of other hosts.
//  3. A place that was given back can be taken again. Where the comment says so, giving it back twice counts once.
//
// All methods may be called concurrently.
package admission
