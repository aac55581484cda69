// Package incoming reads the metadata that a call came with.
//
// Package metadata of gRPC copies what it returns, and looks through all fields for one that is not there. The services look
// for several fields in each call, most of which no client sends. A context from NewContext has its metadata at hand.
//
// Invariants:
//  1. First returns what metadata.ValueFromIncomingContext returns first, as long as no context of a call is made from that of
//     another by gRPC's function, which does not hide what NewContext has set below it: services make them by NewContext.
//  2. Names in the metadata of NewContext are lower-case, as HTTP/2 demands.
//
// All functions may be used by several goroutines at once; the metadata of NewContext must not be changed any more.
package incoming
