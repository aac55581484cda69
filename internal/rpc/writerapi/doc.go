// Package writerapi serves the native Writer service: clients that give their writes ids themselves, so that they may try
// again at any member, and that may offer them to all voters at once (docs/native-client.md, docs/fast-path.md).
//
// It drives the streams of package clients/streams, which decides everything: one goroutine receives and waits for what a
// stream needs (room, the turn of a command, the member's budget of offers), and one sends. Requests in proposals are etcd's,
// and are checked and answered by etcd's KV service, over the port KV; proposals are the member's, over the port Clients.
//
// The main type is Service; each call of Propose is a stream of its own.
//
// Invariants:
//  1. It decides nothing about a message: what a stream does the simulator runs, too.
//  2. A goroutine that waits for a stream ends with the call.
//
// All methods may be called concurrently. One goroutine sends on a stream and one receives.
package writerapi
