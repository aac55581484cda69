// Package logwriter makes durable what a node wants written, and releases what may leave only after that.
//
// A Writer takes the requests of a node (node.Persist) in their order. All that wait are written by one sync of the log. It has
// no goroutine, clock or lock: the disk lane (package lanes) drives it, which the simulator runs by events, between which time
// passes.
//
// Invariants:
//  1. A message, an evaluation or raft.Persisted leaves after the write of its request, and of all before it, is on disk.
//  2. The core is told what is on disk before anything leaves (ADR 0035).
//  3. The log forgets entries (Base) only after the writes of the same requests.
//  4. After an error nothing more leaves; the member ends, because it is not known what the disk holds.
//
// All methods belong to one goroutine.
package logwriter
