// Package client is Quorate's own Go client. It is etcd's clientv3 with other writes: each of them happens once, and gets
// its answer, although connections break, leaders change and members die while it is on its way.
//
// New takes the place of clientv3.New and takes the same Config. What it returns holds a *clientv3.Client whose KV sends
// Put, Delete and Txn over a stream of this package; everything else (reads, watches, leases, maintenance) is clientv3's.
// Whoever wants a *clientv3.Client, as its concurrency package does, is given the field Client and writes the same way.
//
// A write is named before it leaves: by the client, its session, and a sequence in it. All members remember by that name what
// it gave, for as long as the session lives, so that the client may ask again, any member, until it knows. Sessions are
// opened, replaced and retired in passing.
//
// If the members are far away, a write is offered to all voters at once, and answered once the client has counted that it is
// decided (docs/fast-path.md): fleet keeps the streams, race counts, table follows each write to its end in the log.
//
// Invariants:
//  1. A write that was answered happened exactly once, or was rejected and never happens.
//  2. A write whose context ended may or may not have happened; it happens at most once, and not after the client is closed
//     and its sessions are retired.
//  3. A write is never repeated under another name, unless it is known that nothing came of the first.
//  4. An InDoubtError is the only other way in which a write's fate stays open: nobody heard the client for a minute.
package client
