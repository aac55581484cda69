// Package places says what is at which address of a simulated world: the peer port of a machine, its client port, another
// program, a member of another cluster, a process that names nothing, a host that refuses connections, or one from which
// nothing comes back.
//
// A Map answers what a look at an address meets there (Sight). What that proves is judged by package identity, which ships.
// It knows no network: whether a host is reached, and whether its process runs, package sim says.
//
// Invariants:
//  1. To look changes nothing and draws nothing, so that several looks at once are as good as one after the other.
//
// A Map belongs to one goroutine, but for looks.
package places
