// Package distance makes connections far: what is written arrives later, in order, without holding up whoever writes, and a
// proxy passes connections on to an address that is far away. The delay is one way; it drops and reorders nothing.
package distance
