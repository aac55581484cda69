package rpc

import "sync"

// grants counts the grants of leases that this member has proposed and not applied yet.
type grants struct {
	mu       sync.Mutex
	underWay int64
}

// enter reports whether one more may be proposed, beside held leases: at most admits together, and at most this member's share
// of the leases between admits and most. So all members together never grant more than most, however late they apply each
// other's.
func (g *grants) enter(held, admits, most, members int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if held+g.underWay >= admits || g.underWay >= max(1, (most-admits)/max(1, members)) {
		return false
	}
	g.underWay++
	return true
}

func (g *grants) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.underWay--
}
