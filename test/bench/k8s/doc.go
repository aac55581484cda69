// Package k8s loads an etcd-compatible cluster as the control plane of a Kubernetes cluster of N nodes does, and checks
// what the watchers were told.
//
// A Session writes node leases, pods and events through the clients of six API servers, which watch all of them with the
// previous values, ask for progress ten times a second, list pods page by page and as a stream, compare their caches with the
// store, and compact. The requests are those of k8s.io/apiserver's storage (etcd3): transactions that compare a key's revision,
// put or delete it, and get it where the comparison fails; of 1.37, first lists and comparisons of caches by RangeStream. It
// starts no server and knows no etcd but the client: Open wants a cluster that is empty.
//
// The load is open: each mutation has a time at which it is due, whatever became of those before it, and its latency counts
// from then. A slow server does not slow down its clients.
//
// Invariants:
//  1. Only one writer knows an object at a time, in the order of the schedule: a comparison fails only after a request
//     whose outcome is unknown.
//  2. Each watcher sees each event once, in the order of revisions, a revision in one piece, with the previous value that it
//     was told before; what was acknowledged is among them, and nothing that no client wrote.
//  3. A list is what the watchers were told up to its revision.
//
// A breach of 2 or 3 is a violation, which Session.Check returns. A Session's methods are for one goroutine; a Checker is for
// the goroutine of its watch.
package k8s
