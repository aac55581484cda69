// Package permits is what users may do in a simulated cluster, by the serial history of its log: an oracle that has nothing of
// package auth but its words.
//
// Users is users and roles at one place of the log, as simply as possible. Laws has all of them, one for each change, and
// judges what clients were told.
//
// Invariants:
//  1. What was permitted or refused must have been so at one moment at least between call and return.
//  2. It asks no member anything.
//
// Everything belongs to the goroutine of its world.
package permits
