// Package rpc serves etcd's v3 gRPC API for one member. KV (call*.go, kv*.go), Watch, Lease, Cluster, Maintenance and
// Auth are here; Lock and Election are package lockapi.
//
// A service turns etcd's messages into kv commands, passes them to the member, and turns results and errors back into etcd's
// messages, codes and texts. It holds no state of the cluster and decides nothing about it: the answers come from the member
// and its state machine. Package access finds the user of a call, and refuses calls that the user may not make.
//
// One path leads to the member: calls of KV begin, are admitted, are proposed or read, and finish (call.go), with users and
// without, on each transport. By default package front serves clients, and puts, transactions and linearizable ranges of one
// key take these steps without a goroutine, as long as none has to wait. All other calls have a goroutine and a context.
//
// The main type is Services, which assembles the services with the parts around them: gate (which calls pass), wire (messages
// with hand-written encodings), validate (checks of a request by itself), costly (turns of costly commands), etcderr (errors on
// the wire), health, httpapi, gateway (the API as JSON) and metrics, and the native services. NewFront makes the server to
// register them with, or NewGRPCServer; portmux lets gRPC share a port.
//
// Invariants:
//  1. A response header's revision is the store's revision at the read or after the write that it answers.
//  2. A linearizable read calls ReadIndex after it arrived and before it looks at the store.
//  3. An error on the wire is one of etcd's, in code and text, where etcd has one.
//  4. A watcher's events leave its stream in revision order, and never before its "created" answer.
//
// All methods may be called concurrently. One goroutine sends on a watch stream and one receives, however many watchers the
// stream holds.
package rpc
