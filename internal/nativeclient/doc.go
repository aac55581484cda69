// Package nativeclient is the decision logic of a native client: ids and sessions of its writes, offers to all voters and
// their stamps, when voters have decided a write, retries through one member, and where members are found. Package
// client has the streams and goroutines around it, the simulator has events.
//
// The main type is Table: all writes of one client. Add takes a write; Next and Offer return the messages to send; the
// other methods take what members said. RoundTrip measures how far away a member is, View is what members say of the
// cluster, Book knows where the members are. The messages are those of the service (api/quoratepb); what a write asks for,
// and its response, are opaque.
//
// The package is pure: no clock, no goroutine, no lock. Time is an argument.
//
// Invariants:
//  1. An id belongs to one write for ever. A write gets another id only if it was never applied under the first.
//  2. A write is offered once. Each retry goes through one member, which answers from the log.
//  3. A write counts as decided once the leader and a superquorum hold it at one revision, in one term and configuration.
//  4. A session is not retired before all of its writes are known to be applied, or are given up.
//
// Nothing here may be used concurrently.
package nativeclient
