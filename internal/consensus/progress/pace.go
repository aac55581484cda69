package progress

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// maxPauseDoublings bounds the pause between two attempts to transfer leadership to 64 election timeouts.
const maxPauseDoublings = 6

// HandoverPace limits how often a cordoned leader tries to transfer leadership. During an attempt the leader takes no
// writes, so the pause doubles after each failure. It is kept across terms: otherwise a voter that can be elected but cannot
// lead would be tried each time that this member leads again. The zero value is ready.
type HandoverPace struct {
	tries     int
	last      consensus.MemberID // the one tried last
	notBefore uint64             // tick of the next attempt
	forgetAt  uint64             // tick from which on the attempts before do not count
}

// Next returns the member of fit to hand over to now, and counts the attempt. It returns NoMember if it is too early or fit
// is empty. Of several it takes the one with most of the log, and the one that was tried last only if there is no other.
func (p *HandoverPace) Next(now uint64, electionTicks int, fit []*Peer) consensus.MemberID {
	if now < p.notBefore || len(fit) == 0 {
		return consensus.NoMember
	}
	if now >= p.forgetAt {
		p.tries, p.last = 0, consensus.NoMember
	}
	best := slices.MaxFunc(fit, func(a, b *Peer) int {
		switch {
		case a.ID == p.last:
			return -1
		case b.ID == p.last || a.Match > b.Match:
			return 1
		case a.Match < b.Match:
			return -1
		}
		return 0
	})
	p.tries, p.last = min(p.tries+1, maxPauseDoublings), best.ID
	pause := uint64(electionTicks) << p.tries
	p.notBefore, p.forgetAt = now+pause, now+2*pause
	return best.ID
}
