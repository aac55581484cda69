// Package incoming reads the metadata that a call came with.
//
// Package metadata of gRPC copies what it returns, and looks through all fields for one that is not there. The services look
// for several fields in each call, most of which no client sends. A context from NewContext has its metadata at hand.
//
// Invariants:
//  1. First agrees with metadata.ValueFromIncomingContext if contexts are made by NewContext, and none of them by
//     metadata.NewIncomingContext.
//  2. Names in the metadata of NewContext are lower-case, as HTTP/2 demands.
//
// All functions may be used by several goroutines at once; the metadata of NewContext must not be changed any more.
package incoming
