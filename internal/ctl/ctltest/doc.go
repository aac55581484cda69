// Package ctltest runs command lines of quorate for tests, in the process of the test, and compares what they print.
//
// Only tests import it. The test brings the server that the commands talk to: a fake member, or a cluster.
//
// The main type is Result.
//
// Invariants:
//  1. A command runs exactly as the program would run it: by ctl.Run, with streams and an environment of its own.
//  2. Output is compared as a whole, errors by a part of them.
//
// All functions may be called by several tests at once.
package ctltest
