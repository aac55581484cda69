package controller

import (
	"math/rand/v2"
	"sync"
	"time"
)

// share is how many clusters of one namespace are looked at at once, of all workers: members that hang hold up their own
// namespace.
const share = 8

// soon is after how long about a cluster has its turn again for which its namespace had no share.
const soon = 500 * time.Millisecond

// shares counts the looks that are under way.
type shares struct {
	sync.Mutex
	taken map[string]int // by namespace
}

// take begins a look at a cluster of a namespace; false: its share is used. Call done at the end.
func (s *shares) take(namespace string) (done func(), ok bool) {
	s.Lock()
	defer s.Unlock()
	if s.taken[namespace] >= share {
		return nil, false
	}
	if s.taken == nil {
		s.taken = map[string]int{}
	}
	s.taken[namespace]++
	return func() {
		s.Lock()
		defer s.Unlock()
		if s.taken[namespace]--; s.taken[namespace] == 0 {
			delete(s.taken, namespace)
		}
	}, true
}

// later differs from cluster to cluster, so that they do not come back at once.
func later() time.Duration { return soon/2 + rand.N(soon) }
