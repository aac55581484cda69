// Package traffic is the page of the console that shows how calls of clients go, member by member: how many there are, how many
// round trips writes take, where the time of a write goes, and which member is slow beside the others.
//
// A member collects what all observe; this package shows it and compares. A number of a member that its build does not tell is
// shown as not told, never as zero.
//
// Invariants:
//  1. A member is compared with the others only: no number of milliseconds is slow by itself.
//  2. Whatever members say is bounded before it is shown: members, points, and numbers.
package traffic
