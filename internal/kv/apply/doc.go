// Package apply is the replicated state machine: it applies the entries of the log, in their order, to the store.
//
// A Machine is the same function of the log on every member: it has no clock, draws no random numbers and depends on no map
// order. The changes of one call of Apply are one engine batch: versions of keys, leases, alarms, sessions, results, jobs,
// configuration, and the position of the last entry applied. So after a crash all of them agree, and the log is applied again
// from there. Consensus waits for commitment and durability of entries; Apply does not sync the engine, unless it raises the
// feature level.
//
// Each table is a type with its own state, lock and rows: configTable, memberTable, alarmTable, jobTable, sessionTable
// (sessions and the results of their proposals), chain and position. An executor executes commands, one after the other, in the
// batch. Machine calls them in the order of apply.go, and answers readers from them.
//
// There are three ways to fail. A rejection (a lease that does not exist) is a Result, the same on every member. An operating
// error (the disk) is returned by Apply: the member stops, for its state may now differ from that of the others. A broken
// invariant panics.
//
// Invariants:
//  1. Applied position, data, results and all other tables change in one batch (docs/fast-path.md, "Applying").
//  2. A revision is used at most once and revisions grow along the log; an entry with an exact revision gets that one,
//     or is skipped and leaves nothing, not even a result.
//  3. The first entry of a proposal that is applied, which may be an abort, decides its result; a later one returns it and
//     changes nothing. The result is kept until an entry retires its session, and a retired session never opens again.
//  4. A transaction is checked as a whole before it writes, and takes one revision, if it changes anything.
//  5. A result of Evaluate is the one that Apply will give; otherwise Evaluate returns none.
//  6. The chain, a hash over all applied entries and their effects, is equal at equal index on all members, and is in the
//     same batch as the applied position.
//  7. Events reach the watch hub after their revision was published, in order, each once.
//
// Apply is called by one goroutine at a time; the other methods may be called concurrently with it.
package apply
