// Package client is Quorate's own Go client. It is etcd's clientv3 with other writes: each write is applied once, and
// gets its answer, although connections break, leaders change and members die meanwhile.
//
// New replaces clientv3.New and takes the same Config. The Client that it returns embeds a *clientv3.Client whose KV
// sends Put, Delete and Txn over a stream of this package; everything else (reads, watches, leases, maintenance) is
// clientv3's. Code that needs a *clientv3.Client, such as clientv3's package concurrency, can use the field Client: its
// writes go the same way.
//
// A write gets a proposal id before it is sent: the client's id, its session, and a sequence number. All members keep
// its result under that id as long as the session is open, so that the client may send it again, to any member, until
// it knows the result. The client opens, replaces and retires sessions as needed.
//
// If the members are far away, a write is offered to all voters at once, and answered once the client has counted that
// it is decided (docs/fast-path.md): voterStreams keeps the streams. Package internal/nativeclient decides, and follows
// each write until it is applied.
//
// Members come and go while a client lives. The follower keeps a nativeclient.Book of where they are, and sends reads and
// watches after them.
//
// Invariants:
//  1. A write that was answered has been applied exactly once, or was rejected and is never applied.
//  2. A write whose context ended may or may not have been applied; it is applied at most once, and not after the client is
//     closed and its sessions are retired.
//  3. A write is sent again under another id only if it is known that the first was not applied.
//  4. Otherwise a write ends in doubt only with an InDoubtError: no member heard the client for a minute.
package client
