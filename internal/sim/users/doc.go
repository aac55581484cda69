// Package users is the users of a simulated cluster: those who act in a user's name (Person), a member's access control (Gate),
// and the operator who changes users, roles and passwords while others work (Operator).
//
// A Gate has the access.Control and the login.Login that ship, over ports of a simulated process. Calls that block there run
// as routines. What an API call does around them is written again here, in a few lines for each: docs/simulation.md lists it.
//
// It is no checker: clients tell package check what they were told, with the moment from which on that must be right.
//
// Invariants:
//  1. Nothing here draws from a random stream of others: worlds without users are what they were.
//  2. Hashes of passwords are text that begins like bcrypt's and is the password: nobody guesses here, and bcrypt takes longer
//     than a whole run.
//
// Everything belongs to the goroutine of its world.
package users
