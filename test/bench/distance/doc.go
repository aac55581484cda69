// Package distance makes connections far: what is written arrives later, in order, without holding up the writer. The delay is
// one way; nothing is dropped or reordered. Dial connects a client to an address that is far away; Pass is a proxy before an
// address, whose connections use a Link in each direction. A Link has a delay and a bandwidth, which all connections that use
// it share, and counts what it carries.
package distance
