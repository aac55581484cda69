// Command bench measures etcd-compatible servers side by side on one Linux machine.
//
// A command (command.go) is a way to some workloads of one table (workloads.go). A workload takes flags and makes trials:
// things that are done to fresh members under some conditions. The runner (runner.go) does each trial to each server in turn,
// on loopback, with etcd's flags and with fsync, and prints medians over rounds, and ratios between the servers round by round.
// Commands that draw pictures, or print the table of goals, run other commands and print what came of these in their own way.
// It is not a benchmark of a machine: members and clients share its cores, so that throughput is bounded by CPU per operation,
// and that figure is the steadier one.
//
// Invariants:
//  1. All servers get the same flags, load, order of workloads and number of cores.
//  2. Rounds alternate which server goes first; a ratio compares figures of the same round only.
//  3. Only what ends inside the measured window counts, of an open load what is due there; what fails is counted, never
//     dropped.
//  4. Processes and data that a run made are gone when it ends.
//  5. A row has no column but those that the table says of its workload.
package main
