// Package etcdutl has the commands of etcdutl, for files instead of running members: what a snapshot holds, and making a
// data directory from one. They are our own, because etcd's need its server.
//
// A command that has no meaning for a data directory of this store says so, and what to do instead: no directory is changed by
// a command that was meant for etcd's.
//
// The entry is New, which makes them commands of a program.
package etcdutl
