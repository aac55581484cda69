// Package tlsfiles reads certificates, keys and authorities from files in PEM form.
//
// It decides nothing: whom to trust, when to read again (package reload) and what to demand of the other side is up to those
// who use it, which are servers (package server/certs) and commands. Errors name the flag and the file. The main function is
// Dialing.
//
// Invariants:
//  1. Anything damaged is an error; nothing is left out.
//  2. No error bears a type by which a caller would advise about the data directory.
//
// All functions may be called concurrently.
package tlsfiles
