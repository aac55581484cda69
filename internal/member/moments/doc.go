// Package moments decides, on the leader, when the cluster notes what time it is (kv.MomentOp). The state machine has no clock:
// the moments in its log are all that ties revisions to times.
//
// A Teller proposes a moment every Interval while revisions come, and one more after the last of them. An idle cluster notes
// nothing. It waits for no answer: what was not noted is told with the next one.
//
// The simulator runs it as members do. A Teller is for one goroutine.
package moments
