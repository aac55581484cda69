// Package changes is the page of the console that shows how the members change: what runs, waits and has ended, the plan of any
// change, and a replacement step by step.
//
// A plan is asked for by a form whose fields are the flags of `quorate member`, so that a link says what the command line says.
// The form that starts a plan carries the specification that was planned, and a number that was drawn for it: a form that is
// sent twice makes one job, and one whose cluster has changed meanwhile is refused.
//
// Invariants:
//  1. Nothing is started that was not shown as a plan without blockers.
//  2. Sentences about plans and jobs are those of the command line (internal/ctl/wording, internal/ctl/progress).
//
// The pages may be loaded by many goroutines at once.
package changes
