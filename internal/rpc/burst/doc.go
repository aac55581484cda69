// Package burst hands many small messages of a gRPC stream to its transport at once.
//
// An event that a thousand watches of a stream share is a thousand messages. Each call of SendMsg allocates, passes a queue,
// and becomes frames of its own, which costs several times what the message does. But a message is only a prefix of five
// bytes and its content in a stream of bytes (gRPC over HTTP/2, "Length-Prefixed-Message"), so a Writer puts messages one
// behind the other and writes them together. Package rpc/front takes them so. grpc-go has no call for that: its transport's
// streams have a method, Write, whose last parameter is of an internal type, so it is found by reflection, once for each
// stream. Where it is not what is expected (another version, or a stream that is no connection's) messages are sent one by
// one.
//
// The package knows nothing of what the messages say. The main type is Writer.
//
// Invariants:
//  1. Messages are written in the order in which they were sent, each once.
//  2. A Writer holds at most chunkBytes, and what it holds is written by Flush.
//  3. A message waits for what its client has not read, as with SendMsg: the transport's quota bounds what is on the way.
//
// A Writer has one user at a time.
package burst
