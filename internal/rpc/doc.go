// Package rpc speaks etcd's v3 gRPC API, and the HTTP endpoints beside it, for one member.
//
// It checks requests, turns etcd's messages into kv commands, hands them to the member and turns results and errors
// back into etcd's messages, codes and texts. It holds no state of the cluster and decides nothing about it: the
// answers come from package member and the state machine that it gives out. Authentication is not here yet. Beside
// etcd's services stands the native one, Membership, whose errors are its own.
//
// The main type is Services; NewGRPCServer makes the server to register it with, Handler the HTTP side, and Mux lets
// both share one listener. The messages that matter most never become protobuf messages: internal/rpc/wire reads and writes
// them. Everything else goes through the generated types.
//
// Laws:
//  1. A response header's revision is the store's revision at the read or after the write that it answers.
//  2. A linearizable read calls ReadIndex after it arrived and before it looks at the store.
//  3. An error on the wire is one of etcd's, in code and text; errors.go holds the only table. Native calls have theirs in
//     membership_errors.go.
//  4. A watcher's events leave its stream in revision order, and never before its "created" answer.
//
// All methods may be called concurrently. One goroutine sends on a watch stream and one receives, however many
// watchers the stream holds.
package rpc
