// Package top is the page of the console that shows which prefixes of keys, and which clients, the members work for most, as
// `quorate top` does.
//
// The member that is asked asks the others; package ranking adds what they answered, and says how far the numbers may be
// wrong. Only root may ask while authentication is enabled.
package top
