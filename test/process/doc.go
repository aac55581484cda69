// Package process tests a cluster of real processes: three members started from the built binary, loaded through the
// official etcd client, killed with SIGKILL, restarted, cut off from each other, and at the end all killed at once.
//
// It has no code but tests. It adds to the simulator everything that the simulator replaces: the kernel's page cache and
// sockets, gRPC, signals, the Go scheduler. It checks that the history of every key is linearizable, with its revisions, and
// that every acknowledged write is there after the last restart. Members are replaced, added and removed by the command line
// of an operator, under that load, and while the members that drive it are killed.
package process
