// Package transport carries messages, small calls and snapshots between the members of one cluster, over gRPC.
//
// It is not part of the protocol: it may lose messages, it never waits for one, and of a message it reads only sender,
// receiver and kind. The main type is Transport. It dials every peer of Configure and sends on its own streams; a
// peer's messages arrive on the streams that the peer opened. A member has two streams to each peer, each with a
// connection of its own: the ordered stream for everything, and the express stream for heartbeats, votes and other
// small kinds while the ordered stream is full of large entries. Snapshots have a third connection while they are sent.
// Everything is raw bytes in frames of our own (frame.go); no protobuf is involved.
//
// For experiments, Options.Delay adds a delay to connections (delay.go), below everything else.
//
// Invariants:
//  1. Messages to one peer arrive in the order of Send and at most once, except that express kinds may overtake.
//  2. Send never blocks. A message that does not fit into the bounded queue of a peer is dropped and counted.
//  3. A connection carries messages only after both sides agreed on protocol version, cluster and both member ids.
//  4. PeerLost is called at most once each time that a peer was connected, never because of our own Close or Configure.
//  5. A frame whose checksum is wrong breaks its stream; its messages are never handed over.
//
// All methods may be called concurrently. Time is the machine's own: the simulator replaces the whole package.
package transport
