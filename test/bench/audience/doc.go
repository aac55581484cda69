// Package audience is very many watchers of one key, which check that each of them is told of each write once, in order, and
// measure how long that took.
//
// It speaks to servers by gRPC and reads no more of their messages than it needs, so that most of the processor is left to
// them. The main type is Audience.
//
// Invariants:
//  1. A write that some watcher was not told of, or was told of twice or out of order, is an error of Tell or Close.
//
// An Audience belongs to one goroutine.
package audience
