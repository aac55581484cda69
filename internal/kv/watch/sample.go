package watch

import (
	"math/rand/v2"
	"strings"
)

// Sampled is a watcher of a sample.
type Sampled struct {
	Client string // of whom the stream was opened; empty: of no name
	User   string // as SetUser said
	Key    string // the first one that it may get
}

// visitCost is a visit of a sample, as a number of watchers visited while the hub is held.
const visitCost = 4

// SetUser says in whose name a stream watches, for Sample.
func (s *Stream) SetUser(name string) {
	s.hub.enter()
	defer s.hub.exit()
	s.user = name
}

// Sample visits about most watchers, or all if there are fewer, and returns for how many each of them stands. Watchers that
// come or go meanwhile may be visited or not. The hub is held while see is called: it must be quick.
func (h *Hub) Sample(most int, see func(Sampled)) (each int) {
	h.enter()
	defer h.exit()
	each = max(1, (h.watchers+most-1)/most)
	next, looked := rand.IntN(each), 0 // the watcher of the stream at hand
	for s := range h.open {
		client := s.account.client
		if strings.HasPrefix(client, nameless) {
			client = ""
		}
		for ; next < len(s.watchers); next += each {
			see(Sampled{Client: client, User: s.user, Key: s.watchers[next].party.start})
			looked += visitCost
			h.pauseAfter(&looked)
		}
		next = max(0, next-len(s.watchers))
		looked++
		h.pauseAfter(&looked)
	}
	return each
}

// pauseAfter lets others have the hub once so much was visited.
func (h *Hub) pauseAfter(looked *int) {
	if *looked >= watchersPerHold {
		h.longest = max(h.longest, *looked)
		*looked = 0
		h.exit()
		h.enter()
	}
}
