// Package shell is a simulated process: the goroutines of package member as events in virtual time.
//
// A Process is one life of a member: its lanes (package member/lanes, which ships), its data directory, the leases, and the
// upkeep of log and store. A Process is the host of its lanes: it gives each lane its turns in events, whose times are drawn.
// Faults, the network and the machine are not here: a Life has the ports to them.
//
// Invariants:
//  1. A process acts only in the events that it schedules with Life.After, which end with its life.
//  2. A process reports its writes, applied entries and acknowledgements to the checkers at the time of each.
//  3. All random draws come from Life.Rng.
//
// A Process belongs to the goroutine of its simulated world.
package shell
