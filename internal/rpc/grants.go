package rpc

import "sync"

// grants counts the leases that this member has under way to the log, and does not see yet.
type grants struct {
	mu       sync.Mutex
	underWay int64
}

// enter reports whether one more may be under way, beside held ones: at most admits together, and a member's part of what is
// left between admits and most. So all members together never grant more than most, however late they see what the others did.
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
