// Package admission bounds what others may have open or under way here: connections, calls, streams, and messages that
// have not arrived in full.
//
// It counts and refuses, and knows nothing of what is admitted: which call belongs to which bound, and what a client is told
// when there is no room, are the caller's. Each bound is a type of its own:
//
//	HostBound      so many in all, and so many from one host; none waits
//	Queue          a few at once, and some more that wait for their turn
//	Unidentified   connections of which nobody knows yet who they are: the newest gets in, an older one goes
//	FirstMessages  calls whose first message has not arrived: those that take too long end
//
// Invariants:
//  1. A bound on hosts counts an IPv4 address, or the /64 of an IPv6 address, as one host: Host.
//  2. A flood of one host costs that host before it costs another.
//  3. What was given back can be had again, and giving back twice gives back once where the comment says so.
//
// All methods may be called concurrently.
package admission
