package rpc

import (
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/status"
)

// counters are the counters of the services. They are plain atomics, because every call updates them; metrics.go turns them
// into Prometheus metrics when they are scraped. The gate counts calls.
type counters struct {
	events                   atomic.Uint64 // delivered to watchers
	pending                  atomic.Int64  // proposals
	failedProposals          atomic.Uint64
	receivedBytes, sentBytes atomic.Uint64 // of messages
	serializable             atomic.Uint64 // ranges that succeeded, and asked no leader
	promoted                 atomic.Uint64
	promoteFailures          sync.Map // text of the error -> *atomic.Uint64; one for each error
}

// promoteFailed counts a refused promotion under the text of its error on the wire, as etcd does.
func (c *counters) promoteFailed(err error) {
	text := status.Convert(err).Message()
	n, _ := c.promoteFailures.LoadOrStore(text, new(atomic.Uint64))
	n.(*atomic.Uint64).Add(1)
}
