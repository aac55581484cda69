// Package gateway forwards connections of clients to members, as etcd's TCP gateway does: clients that cannot be told where
// the members are know one address, on their own machine for example, and the gateway knows the members.
//
// It is not a proxy of requests: it passes bytes on, so TLS and users are between client and member, and members see the
// gateway's address as that of all its clients. It balances connections, not requests. The main type is Gateway.
//
// Invariants:
//  1. A connection goes to a member that accepts it as long as there is one: a member that does not is tried again after a
//     pause, and at once if none is left.
//  2. The open connections of one host are bounded, by less than those of all hosts.
//  3. When Serve returns, every connection is closed.
//
// Serve may be called once; nothing else is concurrent.
package gateway
