// Package permits holds the permissions of users in a simulated cluster, by the serial history of its log: an oracle that
// shares nothing with package auth but its types.
//
// Users are the users and roles at one place of the log, as simply as possible. Laws has all of them, one for each change, and
// judges the answers that clients got.
//
// Invariants:
//  1. An operation that was permitted or refused must have been so at one moment at least between call and return.
//  2. The package never asks a member.
//
// Everything belongs to the goroutine of its world.
package permits
