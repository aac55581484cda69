// Package cluster runs servers that take etcd's flags as processes of this machine: clusters on loopback and fresh data, their
// leaders, changes of their members, and what the processes, the device and the machine have spent. Conditions put members
// behind links, slow disks, or limits of memory. It puts no load on them.
//
// Invariants:
//  1. All servers get the same flags, but for those of Server.Flags.
//  2. Processes and data of a cluster are gone after Remove, and the processes also when this one dies.
//
// A Cluster belongs to one goroutine; its Control client may be used by any.
package cluster
