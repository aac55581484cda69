// Package undelete plans and does the restoring of keys that were deleted, from the history that the cluster keeps.
//
// PlanFrom plans from a former state of a backup instead, for what the cluster's history has no more.
//
// It is a client: Cluster has a connection to any members, and asks quorate.v1.History which keys are gone, and what they were.
// Plan changes nothing. Apply writes what a plan says through etcd's KV service, so that permissions, quotas and watches act as
// for any other write. The command line and the console use it.
//
// Invariants:
//  1. A key that exists is never written: each put is in a transaction that compares create_revision with 0. So applying a plan
//     twice, by two operators, or while clients write, changes nothing that exists.
//  2. A value is written only as it was at the revision that the plan names: a plan that was shown is what is done.
//  3. Each key of a plan has one outcome; what is not known to be written is never said to be.
//
// Leases are not restored: a key that had one is left out unless Request.Leased is set, and is written without then.
//
// A Cluster may be used by any number of goroutines, a Plan and a Result by one at a time.
package undelete
