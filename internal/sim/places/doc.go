// Package places maps the addresses of a simulated world: to the peer port of a machine, its client port, another program, a
// member of another cluster, a process that names nothing, a host that refuses connections, or one that does not answer.
//
// A Map answers what a process sees at an address (Sight). Package identity, which ships, judges what that proves. It does not
// simulate the network: package sim says whether a host is reached, and whether its process runs.
//
// Invariants:
//  1. A lookup changes nothing and draws nothing, so that concurrent lookups give the same results as successive ones.
//
// A Map belongs to one goroutine, except for lookups.
package places
