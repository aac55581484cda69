// Command bench measures etcd-compatible servers side by side on one Linux machine.
//
// `run` starts a cluster of three members of each server in turn, on loopback and on fresh data, with etcd's flags and
// with fsync; drives both with the same load through the official client; and prints medians over rounds, and ratios
// between the servers round by round. `far` puts members and clients behind proxies that delay (3 or 5 members),
// `routes` counts how often the fast path decides, `k8s` is the load of a Kubernetes control plane with a check of its watches
// (package k8s), `life` is a put until its version is deleted, `etcd` builds the reference. It is not a benchmark of a
// machine: members and clients share its cores, so that throughput is bounded by CPU per operation, and that figure is the
// steadier one.
//
// Invariants:
//  1. Both servers get the same flags, load, order of workloads and number of cores.
//  2. Rounds alternate which server goes first; a ratio compares figures of the same round only.
//  3. Only what ends inside the measured window counts, of an open load what is due there; what fails is counted, never
//     dropped.
//  4. Processes and data that a run made are gone when it ends.
package main
