// Package autopilot is what a leader does for the membership by itself: it accepts jobs and carries them out, replaces
// dead voters, promotes learners, lets processes join, and checks peer URLs before they are changed.
//
// Functions of the time, the rows of jobs and the leader's View decide what to do: a Driver names the next step, and is
// told what became of it. Package membership says what a job does; this package says which job has its turn, what is
// written before a step is taken, and what a failure means. Requests and Runner carry that out over a Cluster and a Finder,
// which are the ports: a member implements them, and so does the explorer of package operators. Addresses checks peer URLs,
// Repair replaces dead voters, RemovedSessions says whose sessions may be retired. Learned is for a member that hears no
// leader: when it asks others for the leader's address, and which answers it believes.
//
// It is not the loop (package member) and no goroutine of its own: the caller of Runner.Turn decides when.
//
// Invariants:
//  1. A row is written before the step that it announces is taken, and only if it still has the version that was read.
//  2. Nothing is remembered that matters: the next leader goes on from the configuration and the rows.
//  3. A step names the configuration that it was decided for, so that of two leaders at most one gets its way.
//
// Requests may be called concurrently; a Driver and a Runner belong to one goroutine.
package autopilot
