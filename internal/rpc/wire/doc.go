// Package wire reads and writes the messages of etcd's API that matter most, without protobuf messages between: requests
// are read straight into kv's words, results are written straight into buffers.
//
// It knows bytes and kv's words. It checks nothing about a request but that it is protobuf, and decides nothing. Every
// other message goes through the generated types, which Codec hands to the protobuf library.
//
// Pairs of a range are written into chunks while the store's cursor finds them (Pairs), and gRPC gets these chunks.
//
// The main type is Codec, the gRPC codec of our servers. A request is a Decoder (PutCall, DeleteCall, RangeCall, TxnCall),
// a response an Encoder (PutResponse, RangeResponse, ...). Each is hand-written only because that pays: its comment has the
// time and the allocations, and those of the generated code with the conversion that it needs, from
//
//	go test ./internal/rpc/wire -run - -bench Codec -benchtime 2000x -count 15    (the least counts)
//
// Invariants, checked against the protobuf library by tests and a fuzzer:
//  1. A message that is read here means exactly what the protobuf library reads from the same bytes, errors included.
//  2. A message that is written here is byte for byte what the protobuf library writes.
//  3. A request may alias the bytes that it was read from; no goroutine writes to them or uses them again.
//
// A Codec may be used concurrently; a request or response belongs to one goroutine.
package wire
