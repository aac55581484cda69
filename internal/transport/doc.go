// Package transport carries messages, small calls and snapshots between the members of one cluster, over gRPC.
//
// It is not part of the protocol: it may lose messages, it never waits for one, and it does not read what it carries
// beyond the two member ids. A Transport is the main type. It dials every peer of Configure and sends on its own
// streams; what a peer sends arrives on the streams that the peer opened. A peer has two streams ("lanes"), each with
// a connection of its own: the ordered lane for everything, and the express lane, which only heartbeats, votes and
// their like take while the ordered lane is full of bulky entries. Snapshots have a third connection while they run.
// Everything is raw bytes in frames of our own (frame.go); no protobuf is involved.
//
// For trying out, Options.Delay makes other members far away (delay.go): nothing above the connections notices how.
//
// Invariants:
//  1. Messages to one peer arrive in the order of Send and at most once, except that express kinds may overtake.
//  2. Send never blocks. What does not fit into the bounded queue of a peer is dropped and counted.
//  3. A connection carries messages only after both sides agreed on protocol version, cluster and both member ids.
//  4. PeerLost is called at most once per establishment, never because of our own Close or Configure.
//  5. A frame whose checksum is wrong breaks its stream; its messages are never handed over.
//
// All methods may be called concurrently. Time is the machine's own: the simulator replaces the whole package.
package transport
