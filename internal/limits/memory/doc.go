// Package memory divides the memory of a process among the parts of a member, and keeps the Go heap within it.
//
// Divide is the one place where the bounds of caches, write buffers, the log in memory, answers, watches and proposals are
// decided: a pure function of the limit that --memory sets. A Host says what the machine, or the control group that the
// process runs in, has. Govern lets the heap grow as far as the load needs it, and no further than the limit.
//
// It does not enforce the shares: the parts that get them do, by refusing or spilling what is over. Clients' part of the
// replicated state is the same on all members, so the member with the least memory bounds it: see State.
//
// Invariants:
//  1. The shares of a limit never add up to more than what it leaves beside the program itself.
//  2. A larger limit makes no share smaller.
//  3. A process can start if its leases take no more than Starts of its limit; State.Admits admits less than that.
//
// All functions may be called concurrently; Govern is called once in a process.
package memory
