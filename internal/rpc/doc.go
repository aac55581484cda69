// Package rpc serves etcd's v3 gRPC API for one member. KV (call*.go, kv*.go), Watch, Lease, Cluster and Maintenance are
// here; Auth is package authapi, Lock and Election are package lockapi.
//
// A service turns etcd's messages into kv commands, hands them to the member, and turns results and errors back into etcd's
// messages, codes and texts. It holds no state of the cluster and decides nothing about it: the answers come from the
// member and the state machine that it gives out. Package access finds the user of a call, and refuses what that user may
// not do.
//
// One road leads to the member: calls of KV begin, are admitted, are proposed or read, and finish (call.go), with users and
// without, by each transport. By default package front serves clients, and puts, transactions and linearizable ranges of one
// key take these steps without a goroutine, as long as none has to wait. All other calls have a goroutine and a context.
//
// The main type is Services, which puts together what stands around them: gate (which calls pass), wire (messages that are
// read and written by hand), validate (what a request says by itself), costly (commands that cost much take turns), etcderr
// (errors on the wire), health, httpapi, gateway (the API as JSON) and metrics, and the native services. NewFront makes the
// server to register them with, or NewGRPCServer; portmux lets gRPC share a port.
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
