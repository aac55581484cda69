// Package users has the users of a simulated cluster: clients that act as a user (Person), a member's access control (Gate),
// and the operator who changes users, roles and passwords while others work (Operator).
//
// A Gate has the access.Control and the login.Login that ship, over ports of a simulated process. Calls that block there run as
// routines. The code of an API call around them is repeated here, in a few lines for each: docs/simulation.md lists it.
//
// It is no checker: clients report their answers to package check, with the moment from which on the answers must be right.
//
// Invariants:
//  1. The package draws from a random stream of its own: worlds without users stay as they were.
//  2. The hash of a password is the password with the beginning of a bcrypt hash: no client guesses passwords here, and bcrypt
//     takes longer than a whole run.
//
// Everything belongs to the goroutine of its world.
package users
