// Package etcdctl is etcdctl within this program: its commands, flags, environment, formats and exit statuses. They are
// etcd's own code, imported; here is only what ties them to a program.
//
// It is not our own client: that is package ctl, whose commands explain errors and print for people. Which of the two a line
// is for is decided in package ctl.
//
// The entry is Run. One format is added to etcdctl's: readable, which is JSON with keys and values as text.
//
// Invariants:
//  1. A command line that stock etcdctl accepts is accepted, means the same, and prints the same: scripts depend on it.
//  2. Run may end the process, as etcdctl's code does after an error. So it is called last.
//
// One goroutine calls it, once in a process: etcdctl's flags are global variables.
package etcdctl
