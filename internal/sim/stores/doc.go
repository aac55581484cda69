// Package stores opens the storage engines of simulated machines: the one in memory, or the real one, Pebble, on the machine's
// simulated disk.
//
// Pebble has goroutines, and the simulated disk and everything else in the simulator has none. So each machine has a turn: the
// simulation holds it, and gives it away while it calls Pebble. Pebble's goroutines take it for each call of the file system.
//
//  1. Between two calls of its engine, only the simulation itself changes a disk.
//  2. A call of an engine returns once its flushes and LSM compactions are over, if the disk works. So a fault that strikes
//     after n operations of the disk strikes the same call of Pebble, except where two of its goroutines are at work at
//     once: a compaction beside a flush, and the removal of old manifests. Statistics of tables are collected beside them.
//  3. When a process ends, End ends its engines. Their later writes reach a dead disk.
//
// Because of the second law's exceptions a seed may give different runs: a finding is repeated by running its seed several
// times. Stores and its engines belong to the goroutine of the simulation.
package stores
