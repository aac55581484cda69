package witness

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Blame remembers whose proposals were held here and given up because nobody proposed them, and for how long such a proposer
// has nothing held. It bars nobody from the slow way. Times are in ticks. The zero value is ready.
//
// What is given up within one episode counts once: a member that crashes leaves many records, and none again.
type Blame struct {
	owners []blamed // sorted by owner
}

// blamed is one proposer's.
type blamed struct {
	owner   consensus.MemberID
	strikes int
	last    uint64 // when the last strike was
	until   uint64 // nothing is held for it before
}

const (
	// MaxBlamed is how many proposers are remembered; beyond, the one whose last strike is longest ago is forgotten.
	MaxBlamed = 256
	// freeStrikes bar nobody. Each one after them doubles the time, from barredEpisodes, up to maxDoubled times.
	freeStrikes    = 2
	barredEpisodes = 8
	maxDoubled     = 8
	// forgivenAfter is how many times the longest bar must pass without a strike until a proposer starts anew.
	forgivenAfter = 2
)

// Strike notes that a proposal of owner was given up. An episode is so long that what one crash leaves falls into one.
func (b *Blame) Strike(owner consensus.MemberID, now, episode uint64) {
	at, found := b.find(owner)
	if !found {
		if len(b.owners) >= MaxBlamed {
			b.forgetOne()
			at, _ = b.find(owner)
		}
		b.owners = slices.Insert(b.owners, at, blamed{owner: owner, strikes: 1, last: now})
		return
	}
	one := &b.owners[at]
	longest := episode * barredEpisodes << maxDoubled
	switch {
	case now < max(one.last+episode, one.until):
		return // the same episode, or held before it was barred
	case now > one.last+forgivenAfter*longest:
		one.strikes = 0
	}
	one.strikes++
	one.last = now
	if over := one.strikes - freeStrikes; over > 0 {
		one.until = now + episode*barredEpisodes<<min(over-1, maxDoubled)
	}
}

// Bars reports whether nothing of owner is held now.
func (b *Blame) Bars(owner consensus.MemberID, now uint64) bool {
	at, found := b.find(owner)
	return found && now < b.owners[at].until
}

// Len returns how many proposers are remembered.
func (b *Blame) Len() int { return len(b.owners) }

func (b *Blame) find(owner consensus.MemberID) (at int, found bool) {
	return slices.BinarySearchFunc(b.owners, owner, func(o blamed, id consensus.MemberID) int {
		return cmp.Compare(o.owner, id)
	})
}

func (b *Blame) forgetOne() {
	oldest := 0
	for i := range b.owners {
		if b.owners[i].last < b.owners[oldest].last {
			oldest = i
		}
	}
	b.owners = slices.Delete(b.owners, oldest, oldest+1)
}
