// Package membership turns what an operator wants of the members into a plan, and a plan into steps that survive the leader
// that takes them.
//
// A Spec says what the cluster should look like. Draft compares it with a View of the cluster and returns a Plan: the
// steps, how many failures each leaves tolerable, and what stands in the way. A Job is a Spec that the cluster has
// accepted; it is replicated, and whichever member leads calls Next with the current View to learn what to do now. Next never
// relies on what an earlier leader did: it reads from the configuration how far the job is, so that every step can be
// repeated.
//
// It decides and does nothing: no clock, no I/O, no goroutine. Package reconfig decides which changes are allowed; this
// package only foresees that.
package membership
