// Package watch sends clients the changes of keys, from any revision that is not compacted, each change once and in order.
//
// The state machine publishes to a Hub; a client's connection is a Stream, which holds any number of watchers and is read by
// pulling (Stream.Next). Watchers of a stream with the same interest and the same position are a party, which the hub handles
// as one. A party that keeps up is in step: it gets the published events, as Batches that all parties of the same range share,
// with their encoded form. One that starts in the past, or whose stream does not drain its bounded queue, is behind: it reads
// its events from the hub's short history or from the store, in chunks, and only when its own stream asks for more. So a slow
// client costs some disk reads and little memory, no watcher has a goroutine, and Publish never waits for a client. The package
// encodes nothing, cuts nothing into fragments, has no clock and checks no permissions: package rpc does that.
//
// Invariants:
//  1. A watcher gets every event of its range from its start on, once, in the order of revisions, and all events of one
//     revision in one Response; or it is cancelled, with the revision of the compaction that overtook it, or because it wants
//     previous pairs and those of one revision are too large.
//  2. A progress revision is enqueued behind all events up to it that its watchers want.
//  3. A watcher never goes back: after a snapshot replaced the store it resumes at its next revision.
//  4. The events that a watcher got were published before, so a later read sees them.
//  5. Hub.mu, which Publish needs, is held for at most watchersPerHold watchers or parties at once, but for the parties that a
//     publication concerns and for the moment in which a snapshot replaces the store. Publish waits for at most one other
//     holder.
//  6. The responses that wait for a client are bounded in bytes, for a stream and for all streams of the client, but for a few
//     large revisions (overdrafts). Events beyond that are read later; answers to requests are bounded by Accept, which the
//     goroutine that reads the requests calls first.
//
// Hub and Stream are safe for concurrent use, but for Stream.Next, which has one caller at a time.
package watch
