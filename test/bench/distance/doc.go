// Package distance makes connections far: what is written arrives later, in order, without holding up whoever writes, and a
// proxy passes connections on to an address that is far away. The delay is one way; it drops and reorders nothing. A Link has
// a bandwidth, too, which all connections that use it share, and counts what it carries.
package distance
