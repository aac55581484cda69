// Package h2 is the server's side of HTTP/2 (RFC 9113), as far as gRPC needs it, for many connections with small calls.
//
// One goroutine reads each connection, takes all frames that are there, and hands them on. No goroutine is there to write: one
// that has responses appends them to the buffers of their connections, and then flushes each connection once. So a call costs
// one read and one write, or less if several are under way, and neither a goroutine nor a switch to one. There are no pushes,
// no priorities and no trailers of requests. The package knows nothing of gRPC's messages: package rpc/front does.
//
// The main type is Server. A Handler takes what clients send; a Stream takes what they get.
//
// Invariants:
//  1. The memory that a client can make the server keep is bounded: the fields of a request by Options.MaxHeaderBytes,
//     unpacked; its body by the window of the stream; frames that answer the client's frames by maxBacklog, beyond which it is
//     not read.
//  2. Frames that bring nothing forward (resets, pings, settings, empty ones) are counted against those that do; a connection
//     with too many is closed with ENHANCE_YOUR_CALM.
//  3. No more DATA is written than both windows of the client allow.
//  4. A Receiver is told once that its stream was lost, unless the stream was answered before.
//
// All methods of Server and Stream may be called concurrently. A Handler and its Receivers are called by one goroutine for each
// connection, which reads nothing meanwhile.
package h2
