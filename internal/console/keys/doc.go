// Package keys has the pages of the console that show the keys: their tree, a key with its versions, keys that were deleted,
// changes as they come, and leases; and the actions that write them.
//
// A page reads as much as it shows, whatever lies below a prefix: it opens a bounded number of streams of keys, and asks for
// sizes without values. A value is read where it is shown, and not again by itself; only leases and the changes of a prefix
// are kept up to date.
//
// Invariants:
//  1. A key has one text by which pages, links, forms and people name it (nameOf, keyOf); no byte of it is lost.
//  2. Keys and values are shown as printable text: any other character is an escape, and bytes that are no text a hex dump.
//  3. A write compares the revision that its form was made for. A value is written only if a browser keeps all its bytes.
//
// Nothing is kept between two calls, but when a long list of leases was read last.
package keys
