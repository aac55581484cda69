// Package writerapi serves the native Writer service: clients that give their writes ids themselves, so that they may try
// again at any member, and that may offer them to all voters at once (docs/native-client.md, docs/fast-path.md).
//
// It keeps what a stream has under way, and bounds it. Requests in proposals are etcd's, and are checked and answered by
// etcd's KV service, over the port KV; proposals are the member's, over the port Clients.
//
// The main type is Service; each call of Propose is a stream of its own.
//
// Invariants:
//  1. A proposal that has entered a stream is answered once, or given up when the stream ends.
//  2. A client acts under its own sessions only, whatever its messages say.
//  3. The queue of a stream is bounded, in proposals and bytes, also if the client does not read.
//  4. A repeated proposal is admitted again: only the log can give the answer of the first attempt.
//
// All methods may be called concurrently. One goroutine sends on a stream and one receives.
package writerapi
