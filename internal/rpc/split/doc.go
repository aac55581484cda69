// Package split says where the time of a call went: until it left this member, to a quorum and to disks, and until it was
// applied; and for which member it waited, for its disk or its link.
//
// It only does sums. The times come from the member (proposals.Passage), which measures them for all calls. The gate (rpc/gate)
// asks for a Split when a call was slow, or is recorded by tracing.
//
// The main types are Call, which takes the passage of a call, and Split.
//
// Invariants:
//  1. A Split has no key, no value, and no text of a client.
//  2. The time that another member claims for its disk counts for no more than the time that this member waited.
//
// A Call may be used by any number of goroutines, a Split by one.
package split
