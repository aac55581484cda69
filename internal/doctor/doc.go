// Package doctor judges how a cluster is, from what its members observe of themselves and of each other.
//
// Judge takes the observations of all members that answered (quoratepb.Observation), and what the collector saw when it asked,
// and returns findings in the order in which an operator should look at them. It knows no member, no network and no file: the
// command `quorate doctor` collects, a member that shows the metric quorate_doctor_findings judges what it knows alone, and a
// bundle gives later the verdict that it gave when it was made. JudgeStopped does the same for data directories of members
// that do not run.
//
// The main type is Finding. Its severity is its impact: whether writes stop, whether they would at the next failure, whether
// they are slower than they should be. A finding that another one explains says so in Because and comes after it; the cause
// takes over the severity of its effect.
//
// Invariants:
//  1. Judge is a function of its input: no clock, no I/O, no goroutine, no order of a map.
//  2. A bound is a share of what the cluster was configured with, or of what it does: of an election timeout, of the commits
//     of the window, of a limit. A number of milliseconds is none.
//  3. A field that is zero because its value is not known gives no finding.
//  4. No cure empties, removes or recovers anything while a majority may come back.
//
// All functions may be called concurrently.
package doctor
