// Package doctor is the command `quorate doctor`: it asks all members what they observe, and prints what is wrong, why, and
// which command cures it. The verdict is that of internal/doctor, which knows no network; this package collects and prints.
//
// The main type is patient, one command line. A bundle is what was collected, in a file that others can judge; mutes are a file
// of the operator's; --offline reads the directories of stopped members, by a function that the program brings along.
//
// Invariants:
//  1. Nothing changes: neither a member, nor a data directory. Mutes and bundles are written where the operator says.
//  2. The answers of members, and files, are bounded before they are judged or printed.
//  3. One member that hangs holds the verdict up for --timeout at most, and is part of it.
//
// A command belongs to one goroutine.
package doctor
