// Package certstest makes certificates for tests.
//
// It is not for servers: everything it makes expires within the hour, and every failure ends the test. An Authority
// issues certificates for addresses and writes them, as a tool that rotates certificates would, by replacing whole
// files.
//
// Invariants:
//  1. Two authorities never trust each other's certificates.
//  2. A file is never seen half written.
//
// An Authority belongs to one test; its methods must not be called concurrently.
package certstest
