// Package apply is the replicated state machine: it applies the entries of the log, in their order, to the store.
//
// A Machine is the same function of the log on every member: it has no clock, draws no numbers and lets no map
// order show. What it changes by one call of Apply is one engine batch: versions of keys, leases, alarms, sessions,
// results, jobs, configuration, and the position of the last entry applied. So after a crash all of them agree, and the log
// repeats what the engine had not flushed. Waiting for commitment and durability of entries is consensus's; fsync
// is nobody's here.
//
// Each table is a type with its own state, lock and rows: configTable, memberTable, alarmTable, jobTable, sessionTable
// (sessions and the results of their proposals), chain and position. An executor does commands, one after the other, in the
// batch. Machine calls them in the order of apply.go, and answers readers from them.
//
// There are three ways to fail. A rejection (a lease that does not exist) is a Result, the same everywhere. An
// operating error (the disk) is returned by Apply: the member stops, for it cannot know what the others know. A
// broken invariant panics.
//
// Invariants:
//  1. Applied position, data, results and all other tables change in one batch (docs/fast-path.md, "Applying").
//  2. A revision is used at most once and revisions grow along the log; an entry with an exact revision gets that one,
//     or is skipped and leaves nothing, not even a result.
//  3. The first entry of a proposal that is applied, which may be an abort, decides its result; a later one returns it and
//     changes nothing. The result is kept until an entry retires its session, and a retired session never comes back.
//  4. A transaction is checked as a whole before it writes, and takes one revision, if it changes anything.
//  5. What Evaluate says of an entry is what Apply will give, or it says nothing.
//  6. The chain, a hash over all entries applied and what they did, is equal at equal index on all members, and is in the
//     same batch as the applied position.
//  7. Events reach the watch hub after their revision was published, in order, each once.
//
// Apply is called by one goroutine at a time; the other methods may be called beside it.
package apply
